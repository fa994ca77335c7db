"""Accounting: how many bytes lie where and cross the wire, exactly, from the plan alone.

`account` adds up what `Keeper` would place, record by record; a test checks it against the files a real run leaves.
Four numbers always, since each alone misleads: the server, the fullest holder, all together, the wire.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..coding import block_length
from ..federation import Place
from ..plan import Cell, Change, Plan, Taint
from ..sealing import TAG
from ..slices import ALL_SHARDS, HEAD, SERVER
from .keep import Keeper

Sizes = Callable[[Place], list[int]]  # a round's records, sealed


@dataclass(frozen=True)
class Model:
    """What matters of a model here: the bytes of its file, and how many layers its inner products have."""

    bytes: int
    layers: int


@dataclass(frozen=True)
class Traffic:
    """Messages and their bytes; the paper's time is 0.1 s a message and 8·bytes/rate."""

    messages: int = 0
    bytes: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.messages + other.messages, self.bytes + other.bytes)

    def seconds(self, rate: float) -> float:
        """One message after another, at `rate` bits a second."""
        return 0.1 * self.messages + 8 * self.bytes / rate


@dataclass(frozen=True)
class Account:
    plain: int  # the uploads as they are, once
    server: int
    holder: int  # the fullest
    total: int
    record: Traffic  # slices going out
    recall: Traffic  # k slices of every round: what the paper's recall of one shard's (or all) uploads moves
    forget: Traffic  # see `forgetting`


@dataclass(frozen=True)
class Sliced:
    """A round's slices, before there are any: how wide, at whom, and how many give it back."""

    place: Place
    width: int
    holders: tuple[str, ...]
    k: int

    @property
    def placed(self) -> Traffic:
        return self.slices(len(self.holders))

    @property
    def read(self) -> Traffic:
        return self.slices(self.k)

    def slices(self, count: int) -> Traffic:
        return Traffic() if self.holders == (SERVER,) else Traffic(count, count * self.width)


def account(keeper: Keeper, model: Model, change: Change | None = None) -> Account:
    """Everything for training every stage of the keeper's plan, and for forgetting `change` exactly."""
    held: dict[str, int] = {}
    record = recall = Traffic()
    bundles = tuple(_bundles(keeper, model))
    taints = keeper.plan.affected(change) if change else {}
    touched = {cell[1] for cell in taints}
    for bundle in bundles:
        for holder in bundle.holders:
            held[holder] = held.get(holder, 0) + bundle.width
        record += bundle.placed
        if bundle.place.shard == ALL_SHARDS or bundle.place.shard in touched or not change:
            recall += bundle.read
    heads = sum(_even(model.bytes + TAG) for _ in range(keeper.plan.shards))
    server = held.pop(SERVER, 0) + heads
    assert HEAD not in held
    return Account(
        _plain(keeper.plan, model),
        server,
        max(held.values(), default=0),
        server + sum(held.values()),
        record,
        recall,
        forgetting(keeper, model, bundles, change, taints) if change else Traffic(),
    )


def forgetting(
    keeper: Keeper, model: Model, bundles: tuple[Sliced, ...], change: Change, taints: Mapping[Cell, Taint]
) -> Traffic:
    """What an exact forget moves: the checkpoint it restarts from is read twice (to see that it can be, and to use
    it), the new generation is placed, holders delete the old one, and what leavers held of the rest is made again.

    A message with a slice each, and one a holder with everything it has to delete.
    """
    after = replace(keeper, plan=keeper.plan.changed(change))
    moved, asked = Traffic(), set[str]()
    fresh = {bundle.place: bundle for bundle in _remade(keeper, after, model, taints)}
    for bundle in bundles:
        first = _taint(taints, bundle.place)
        if first is None or bundle.place.round < first:
            moved += _rehoused(bundle, after, change.leave, lambda at: record_sizes(keeper, model, at))
            continue
        asked.update(bundle.holders)
        if bundle.place.shard == ALL_SHARDS and bundle.place in fresh:
            moved += bundle.read  # the lanes that stay as they are
        moved += fresh[bundle.place].placed if bundle.place in fresh else Traffic()
    by_place = {bundle.place: bundle for bundle in bundles}
    for place in _checkpoints(keeper, after, taints):
        kept = by_place.get(place) or by_place[place._replace(shard=ALL_SHARDS)]
        moved += kept.read + kept.read
    return moved + Traffic(len(asked - {SERVER}))


def _checkpoints(keeper: Keeper, after: Keeper, taints: Mapping[Cell, Taint]) -> Iterator[Place]:
    """The round whose records give the model a cell restarts from: the one before, or (lean) that very one."""
    for (stage, shard), taint in taints.items():
        if taint.round and after.plan.present(stage, shard):
            yield Place(stage, shard, taint.round - (keeper.keeping.keep == "full"))


def _rehoused(bundle: Sliced, after: Keeper, leave: frozenset[str], sizes: Sizes) -> Traffic:
    """The slices leavers hold of what stays, made again: for somebody new or, where nobody is, for fewer."""
    gone = leave.intersection(bundle.holders)
    if not gone:
        return Traffic()
    shards = range(after.plan.shards) if bundle.place.shard == ALL_SHARDS else (bundle.place.shard,)
    present = {c for s in shards for c in after.plan.present(bundle.place.stage, s)}
    if len(present.difference(bundle.holders)) >= len(gone):
        return bundle.read + bundle.slices(len(gone)) + Traffic(len(gone))
    holders = after.holders(bundle.place.stage, bundle.place.shard)
    return bundle.read + _narrowed(bundle, after, holders, sizes).placed + Traffic(len(bundle.holders))


def _narrowed(bundle: Sliced, after: Keeper, holders: tuple[str, ...], sizes: Sizes) -> Sliced:
    """The same records for those holders: of a shard's own k there may be fewer, and slices are wider for it."""
    if bundle.place.shard == ALL_SHARDS:
        return replace(bundle, holders=holders)
    k = after.code_of(bundle.place.stage, bundle.place.shard).k
    return replace(bundle, holders=holders, k=k, width=sum(block_length(size, k) for size in sizes(bundle.place)))


def _remade(keeper: Keeper, after: Keeper, model: Model, taints: Mapping[Cell, Taint]) -> Iterator[Sliced]:
    """The new generation: rounds of tainted cells without the leavers; in cross, beside the others' lanes."""
    if keeper.keeping.layout != "cross":
        for bundle in _bundles(after, model):
            taint = taints.get(bundle.place.cell)
            if taint is not None and bundle.place.round >= taint.round:
                yield bundle
        return

    def sizes(place: Place) -> list[int]:
        taint = taints.get(place.cell)
        return record_sizes(keeper if taint is None or place.round < taint.round else after, model, place)

    for bundle in _crossed(after, sizes):
        first = _taint(taints, bundle.place)
        if first is not None and bundle.place.round >= first:
            yield bundle


def _taint(taints: Mapping[Cell, Taint], place: Place) -> int | None:
    found = [t.round for (stage, s), t in taints.items() if stage == place.stage and place.shard in (s, ALL_SHARDS)]
    return min(found, default=None)


def _plain(plan: Plan, model: Model) -> int:
    return sum(len(plan.cohort(*place)) * model.bytes for place in _places(plan))


def _places(plan: Plan) -> Iterator[Place]:
    for stage, row in enumerate(plan.stages):
        for round in range(row.rounds):
            yield from (Place(stage, shard, round) for shard in range(plan.shards) if plan.present(stage, shard))


def _bundles(keeper: Keeper, model: Model) -> Iterator[Sliced]:
    """Each round's slices; in cross, of all shards together."""
    if keeper.keeping.layout == "cross":
        yield from _crossed(keeper, lambda place: record_sizes(keeper, model, place))
        return
    for place in _places(keeper.plan):
        code = keeper.code_of(place.stage, place.shard)
        width = sum(block_length(size, code.k) for size in record_sizes(keeper, model, place))
        if width:
            yield Sliced(place, width, keeper.holders(place.stage, place.shard), code.k)


def _crossed(keeper: Keeper, sizes: Sizes) -> Iterator[Sliced]:
    plan = keeper.plan
    for stage, row in enumerate(plan.stages):
        lanes = [s for s in range(plan.shards) if plan.present(stage, s)]
        for round in range(row.rounds):
            longest = max((sum(sizes(Place(stage, s, round))) for s in lanes), default=0)
            if longest:
                holders = keeper.holders(stage, ALL_SHARDS)
                yield Sliced(Place(stage, ALL_SHARDS, round), _even(longest), holders, len(lanes))


def record_sizes(keeper: Keeper, model: Model, place: Place) -> list[int]:
    """Sealed bytes of each record `Keeper` makes of a plain round in which nobody is lost."""
    cohort = keeper.plan.cohort(*place)
    if not keeper.plan.present(place.stage, place.shard):
        return []
    lean = keeper.keeping.keep == "lean"
    first = lean and bool(keeper.plan.newcomers(*place))
    sizes = [8 * model.layers * len(cohort) ** 2]
    if not lean or first:
        sizes += [model.bytes] * len(cohort)
    if first and place.round > 0:
        sizes.append(model.bytes)
    return [size + TAG for size in sizes]


def _even(size: int) -> int:
    return block_length(size, 1)
