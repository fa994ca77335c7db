"""Which client has which examples: pure functions of a seed, no example at two clients.

A partition is always over all C seats. In a world one client never joined, its seat stays empty and
the others keep their rows: nothing here can know who is going to leave.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..seeds import generator
from .dataset import Dataset

Rows = NDArray[np.intp]
KINDS = ("iid", "by-class", "buckets")


def partition(dataset: Dataset, how: str, clients: int, seed: int) -> dict[str, Rows]:
    """Rows of the training set by client; `non-iid` is by-class for pictures and buckets for text."""
    if how == "non-iid":
        how = "by-class" if dataset.kind == "image" else "buckets"
    if how == "iid":
        return iid(len(dataset.train), clients, seed)
    if how == "by-class" and dataset.kind == "image":
        return by_class(dataset.train.y, clients, seed)
    if how == "buckets":
        return buckets(len(dataset.train), clients, seed)
    allowed = [kind for kind in KINDS if kind != "by-class" or dataset.kind == "image"]
    raise SettingError("partition", how, f"one of {', '.join(allowed)} or non-iid for {dataset.name}")


def client_names(clients: int) -> tuple[str, ...]:
    """client-000, client-001, …: padded so that the order of names is the order of seats."""
    if clients < 1:
        raise SettingError("clients", clients, "1 or more")
    width = max(3, len(str(clients - 1)))
    return tuple(f"client-{seat:0{width}d}" for seat in range(clients))


def iid(examples: int, clients: int, seed: int) -> dict[str, Rows]:
    """Every example to a client drawn at random, as many to each as to any other, or one more."""
    names = _seats(examples, clients)
    order = generator(seed, "partition/iid").permutation(examples)
    return _deal(names, np.array_split(order, clients))


def buckets(examples: int, clients: int, seed: int, *, spread: int = 10) -> dict[str, Rows]:
    """The paper's non-IID text: consecutive buckets of unequal sizes, two to each client.

    The text is cut into 2C buckets whose sizes are as whole numbers drawn from 1 to `spread`, so the
    longest is about `spread` times the shortest. Sizes are computed in integers, so they are the same
    on every machine; everything is dealt out.
    """
    names = _seats(examples, clients, least=2)
    if spread < 1:
        raise SettingError("spread", spread, "1 or more")
    random = generator(seed, "partition/buckets")
    weights = random.integers(1, spread + 1, size=2 * clients)
    # One example each, so that no bucket is empty; the rest by weight.
    spare = examples - 2 * clients
    ends = np.cumsum(weights) * spare // weights.sum() + np.arange(1, 2 * clients + 1)
    cut = np.split(np.arange(examples), ends[:-1])
    order = random.permutation(2 * clients)
    pairs = zip(order[::2], order[1::2], strict=True)
    return _deal(names, [np.concatenate([cut[first], cut[second]]) for first, second in pairs])


def by_class(labels: NDArray[Any], clients: int, seed: int, *, share: float = 0.8) -> dict[str, Rows]:
    """The paper's non-IID pictures: `share` of a client's examples from its primary class, none of the rest.

    The share is kept to the nearest example and all clients have the same number of them, or one
    more. Both together can leave examples over (`show.summary` counts them): with fewer clients than
    classes the classes nobody has as primary are wanted only in part, with 15 clients and 10 classes
    the classes two clients share run out first. Where clients are a multiple of evenly filled
    classes, about everything is used.
    """
    if labels.ndim != 1:
        raise SettingError("labels", f"of shape {labels.shape}", "one class for each example")
    if not 0 <= share <= 1:
        raise SettingError("share", share, "between 0 and 1")
    names = _seats(len(labels), clients)
    random = generator(seed, "partition/by-class")
    _, kinds = np.unique(labels, return_inverse=True)
    counts = np.bincount(kinds)
    primary = random.permutation(_primaries(counts, clients, random))
    sizes = _sizes(counts, primary, share, random)

    pools = [random.permutation(np.flatnonzero(kinds == kind)) for kind in range(len(counts))]
    wanted = _own(sizes, share)
    parts: list[list[Rows]] = []
    for kind, want in zip(primary, wanted, strict=True):
        parts.append([pools[kind][:want]])
        pools[kind] = pools[kind][want:]
    rest = random.permutation(np.concatenate(pools))
    # One slot for each example a client still wants; what is beyond the slots is left over.
    slots = np.repeat(np.arange(clients), sizes - wanted)
    rest = _swapped(rest, kinds, primary[slots], random)
    for seat, rows in enumerate(np.split(rest[: len(slots)], np.cumsum(sizes - wanted)[:-1])):
        parts[seat].append(rows)
    return _deal(names, [np.concatenate(part) for part in parts])


def _own(sizes: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """How many of `sizes` examples come from the primary class: the nearest whole number."""
    own: NDArray[np.int64] = np.floor(share * sizes + 0.5).astype(np.int64)
    return own


def _primaries(counts: NDArray[np.intp], clients: int, random: np.random.Generator) -> NDArray[np.int64]:
    """A primary class for each client: every next one to the class with most examples per client.

    That makes the scarcest class last as long as it can, hence the clients as large as they can be.
    """
    taken = np.zeros(len(counts), dtype=np.int64)
    tie = random.permutation(len(counts))
    for _ in range(clients):
        taken[tie[np.argmax(counts[tie] / (taken[tie] + 1))]] += 1
    return np.repeat(np.arange(len(counts), dtype=np.int64), taken)


def _fits(counts: NDArray[np.intp], primary: NDArray[np.int64], sizes: NDArray[np.int64], share: float) -> bool:
    """Whether clients of these sizes can be served without one getting its primary class beyond its share."""
    own = _own(sizes, share)
    kinds = len(counts)
    spent = np.bincount(primary, weights=own, minlength=kinds)
    others = np.bincount(primary, weights=sizes - own, minlength=kinds)
    left = counts - spent
    # Hall's condition: what a class's clients want of others must lie outside of that class. For
    # clients of two classes or more every example will do, so only the total counts.
    return bool((left >= 0).all() and (others + left <= left.sum()).all() and others.sum() <= left.sum())


def _sizes(
    counts: NDArray[np.intp], primary: NDArray[np.int64], share: float, random: np.random.Generator
) -> NDArray[np.int64]:
    """The largest equal sizes that fit, then one more for as many clients as can have it."""
    clients = len(primary)
    low, high = 0, int(counts.sum()) // clients  # what fits is monotone: a larger size needs more of each
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(counts, primary, np.full(clients, middle), share):
            low = middle
        else:
            high = middle - 1
    if low == 0:
        raise SettingError("share", share, "such that every client can get an example; these classes allow none")
    sizes = np.full(clients, low)
    for seat in random.permutation(clients):
        sizes[seat] += 1
        if not _fits(counts, primary, sizes, share):
            sizes[seat] -= 1
    return sizes


def _swapped(rest: Rows, kinds: NDArray[np.intp], banned: NDArray[np.int64], random: np.random.Generator) -> Rows:
    """`rest` reordered so that the example in slot i is not of class `banned[i]`.

    An example that is in a wrong slot changes places with a random one for which both fit. There always
    is one: unfit are only those in a slot banned for the class or of that class themselves, and
    `_fits` has seen to it that together they are fewer than all.
    """
    rest = rest.copy()
    kind = kinds[rest]
    ban = np.full(len(rest), -1)
    ban[: len(banned)] = banned
    for slot in np.flatnonzero(kind == ban):
        if kind[slot] != ban[slot]:  # an earlier swap has put it right
            continue
        partners = np.flatnonzero((kind != kind[slot]) & (ban != kind[slot]))
        other = partners[random.integers(len(partners))]
        rest[[slot, other]] = rest[[other, slot]]
        kind[[slot, other]] = kind[[other, slot]]
    return rest


def _seats(examples: int, clients: int, least: int = 1) -> tuple[str, ...]:
    names = client_names(clients)
    if examples < least * clients:
        raise SettingError("clients", clients, f"at most {examples // least}, for there are {examples} examples")
    return names


def _deal(names: Sequence[str], parts: Sequence[NDArray[Any]]) -> dict[str, Rows]:
    return {name: np.sort(part).astype(np.intp) for name, part in zip(names, parts, strict=True)}


def left_over(parts: Mapping[str, Rows], examples: int) -> int:
    """How many examples no client has."""
    return examples - sum(len(rows) for rows in parts.values())
