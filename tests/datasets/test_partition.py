"""Laws of the partitions: no example at two clients, the same for the same seed, sizes as promised."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedforget.datasets import Dataset, load
from fedforget.datasets.partition import buckets, by_class, client_names, iid, left_over, partition
from fedforget.errors import SettingError
from fedforget.examples import Examples

SEEDS = st.integers(-(2**63), 2**63)
LABELS = st.lists(st.integers(0, 9), min_size=1, max_size=300).map(np.array)


def text(windows: int = 40) -> Dataset:
    examples = Examples(np.zeros((windows, 4), np.uint8), np.zeros((windows, 4), np.int64))
    return Dataset("text", "text", examples, examples, tuple("ab"))


def dealt(parts: dict[str, np.ndarray], examples: int, clients: int) -> np.ndarray:
    """Checks what holds for every partition, and returns the sizes."""
    assert tuple(parts) == client_names(clients) == tuple(sorted(parts))
    rows = np.concatenate(list(parts.values()))
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < examples
    for part in parts.values():
        assert part.dtype == np.intp
        assert (np.diff(part) > 0).all()
    sizes = np.array([len(part) for part in parts.values()])
    assert (sizes > 0).all()
    assert left_over(parts, examples) == examples - sizes.sum()
    return sizes


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(first[name], second[name]) for name in first)


@given(st.integers(1, 500), st.integers(1, 100), SEEDS)
def test_iid(examples: int, clients: int, seed: int) -> None:
    assume(clients <= examples)
    parts = iid(examples, clients, seed)
    sizes = dealt(parts, examples, clients)
    assert sizes.sum() == examples
    assert np.ptp(sizes) <= 1
    assert same(parts, iid(examples, clients, seed))


@given(st.integers(2, 1000), st.integers(1, 100), SEEDS, st.integers(1, 50))
def test_buckets(examples: int, clients: int, seed: int, spread: int) -> None:
    assume(2 * clients <= examples)
    parts = buckets(examples, clients, seed, spread=spread)
    sizes = dealt(parts, examples, clients)
    assert sizes.sum() == examples
    assert (sizes >= 2).all()
    for part in parts.values():
        assert (np.diff(part) != 1).sum() <= 1  # two buckets, or one where they are neighbours
    spare = examples - 2 * clients
    assert sizes.max() - 2 <= np.ceil(2 * spread * spare / (2 * spread + 2 * clients - 2)) + 1
    assert same(parts, buckets(examples, clients, seed, spread=spread))


def test_buckets_are_unequal_and_no_spread_makes_them_equal() -> None:
    sizes = [len(part) for part in buckets(15_443, 100, 0).values()]
    assert max(sizes) > 4 * min(sizes)
    assert np.ptp([len(part) for part in buckets(15_443, 100, 0, spread=1).values()]) <= 2


@given(LABELS, st.integers(1, 60), SEEDS, st.floats(0.5, 1.0))
def test_by_class(labels: np.ndarray, clients: int, seed: int, share: float) -> None:
    assume(clients <= len(labels))
    parts = by_class(labels, clients, seed, share=share)
    sizes = dealt(parts, len(labels), clients)
    assert np.ptp(sizes) <= 1
    for part in parts.values():
        own = np.floor(share * len(part) + 0.5)
        # The primary class is one the client has exactly its share of.
        assert own in np.bincount(labels[part])
    assert same(parts, by_class(labels, clients, seed, share=share))


@given(st.integers(2, 10), st.integers(5, 40), st.integers(1, 8), SEEDS)
def test_by_class_deals_out_even_classes(classes: int, each: int, per_class: int, seed: int) -> None:
    assume(per_class <= each)
    labels = np.tile(np.arange(classes), each)
    clients = classes * per_class
    parts = by_class(labels, clients, seed)
    dealt(parts, len(labels), clients)
    primary = [np.bincount(labels[part]).argmax() for part in parts.values() if len(part) > 2]
    if len(primary) == clients:
        assert np.bincount(primary).tolist() == [per_class] * classes
    if each % per_class == 0:
        # A fraction of an example is lost to rounding for a client, if anything.
        assert left_over(parts, len(labels)) <= clients


@pytest.mark.parametrize("clients", [1, 4, 7, 10, 15, 20, 23, 100, 500, 1437])
def test_by_class_on_digits(clients: int) -> None:
    labels = load("digits").train.y
    parts = by_class(labels, clients, 3)
    sizes = dealt(parts, len(labels), clients)
    assert np.ptp(sizes) <= 1
    if clients in (10, 20, 100, 500, 1437):
        assert left_over(parts, len(labels)) == 0
    for part in parts.values():
        assert np.bincount(labels[part]).max() == np.floor(0.8 * len(part) + 0.5)


def test_others_are_from_everywhere() -> None:
    labels = np.tile(np.arange(10), 6000)
    for part in by_class(labels, 10, 0).values():
        others = np.sort(np.bincount(labels[part]))[:-1]
        assert others.sum() == 1200
        assert others.min() > 80  # 133 expected


@pytest.mark.parametrize(
    "deal",
    [
        lambda seed: iid(400, 8, seed),
        lambda seed: buckets(400, 8, seed),
        lambda seed: by_class(np.tile(np.arange(10), 40), 8, seed),
    ],
)
def test_another_seed_another_partition(deal: object) -> None:
    partitions = [deal(seed) for seed in range(20)]  # type: ignore[operator]
    first = {tuple(parts["client-000"].tolist()) for parts in partitions}
    assert len(first) == 20


def test_labels_may_be_any_numbers() -> None:
    labels = np.array([7, -3] * 20)
    assert same(by_class(labels, 4, 0), by_class((labels == 7).astype(np.int64), 4, 0))


def test_more_clients_than_examples() -> None:
    for deal, most in ((iid, 9), (buckets, 4)):
        assert len(deal(9, most, 0)) == most
        with pytest.raises(SettingError, match=f"at most {most}"):
            deal(9, most + 1, 0)
    with pytest.raises(SettingError, match="at most 3"):
        by_class(np.array([0, 1, 2]), 4, 0)


def test_settings_it_cannot_have() -> None:
    labels = np.tile(np.arange(10), 4)
    with pytest.raises(SettingError, match="clients"):
        client_names(0)
    with pytest.raises(SettingError, match="spread"):
        buckets(40, 4, 0, spread=0)
    with pytest.raises(SettingError, match="share"):
        by_class(labels, 4, 0, share=1.5)
    with pytest.raises(SettingError, match="labels"):
        by_class(labels.reshape(2, 20), 4, 0)
    with pytest.raises(SettingError, match="share"):
        by_class(np.zeros(40, np.int64), 4, 0, share=0.2)  # all others would have to be of another class


def test_names_are_in_the_order_of_seats() -> None:
    assert client_names(2) == ("client-000", "client-001")
    assert client_names(1000)[-1] == "client-999"
    names = client_names(1001)
    assert names[0] == "client-0000"
    assert list(names) == sorted(names)


def test_by_name() -> None:
    digits = load("digits")
    examples = len(digits.train)
    assert same(partition(digits, "iid", 7, 1), iid(examples, 7, 1))
    assert same(partition(digits, "non-iid", 7, 1), by_class(digits.train.y, 7, 1))
    assert same(partition(digits, "by-class", 7, 1), by_class(digits.train.y, 7, 1))
    assert same(partition(text(), "non-iid", 7, 1), buckets(40, 7, 1))
    assert same(partition(text(), "iid", 7, 1), iid(40, 7, 1))
    with pytest.raises(SettingError, match="iid, by-class, buckets or non-iid"):
        partition(digits, "dirichlet", 7, 1)
    with pytest.raises(SettingError, match="one of iid, buckets or non-iid"):
        partition(text(), "by-class", 7, 1)
