"""What every slice store promises, asked of each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fedforget.slices import ALL_SHARDS, HEAD, SliceKey, SliceStore
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.memory import MemoryStore

HERE = SliceKey(0, 1, 2, 3, "client-1")
THERE = HERE._replace(holder="client-2")
OLDER = HERE._replace(generation=2)
MIXED = HERE._replace(shard=ALL_SHARDS)
SERVED = HERE._replace(holder=HEAD)
ALL = {key: str(key).encode() for key in (HERE, THERE, OLDER, MIXED, SERVED)}


def _on_flower(root: Path, delivered: bool) -> SliceStore:
    """Nodes for holders; `delivered`: what is put goes to them at once, else it waits for a message to ride on."""
    pytest.importorskip("flwr")
    from flower_twin import grid_store

    return grid_store(root, ("client-1", "client-2"), delivered)


MAKE: dict[str, Callable[[Path], SliceStore]] = {
    "memory": lambda _: MemoryStore(),
    "directory": lambda root: DirectoryStore(root / "holders"),
    "flower, on the way": lambda root: _on_flower(root, delivered=False),
    "flower, delivered": lambda root: _on_flower(root, delivered=True),
}


@pytest.fixture(params=MAKE)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SliceStore:
    return MAKE[request.param](tmp_path)


def test_what_was_put_together_is_got_one_by_one(store: SliceStore):
    store.put(ALL)
    assert {key: store.get(key) for key in ALL} == ALL


def test_nothing_is_put_and_deleted_without_complaint(store: SliceStore):
    store.put({})
    assert store.delete([]) == frozenset()
    assert list(store.keys()) == []
    assert list(store.keys("client-1")) == []


def test_a_slice_never_put_is_none(store: SliceStore):
    assert store.get(HERE) is None
    store.put({HERE: b"x"})
    for other in (THERE, OLDER, MIXED, HERE._replace(stage=1), HERE._replace(round=3)):
        assert store.get(other) is None


@pytest.mark.parametrize("blob", [b"", b"\0", bytes(range(256)) * 300])
def test_any_bytes_come_back_as_they_were(store: SliceStore, blob: bytes):
    store.put({HERE: blob})
    assert store.get(HERE) == blob


def test_putting_again_replaces(store: SliceStore):
    store.put({HERE: b"a long first slice"})
    store.put({HERE: b"short"})
    assert store.get(HERE) == b"short"
    assert list(store.keys()) == [HERE]


def test_a_buffer_changed_after_put_changes_no_slice(store: SliceStore):
    buffer = bytearray(b"before")
    store.put({HERE: buffer})
    buffer[:] = b"after!"
    assert store.get(HERE) == b"before"


def test_keys_of_all_and_of_one_holder(store: SliceStore):
    store.put(ALL)
    assert sorted(store.keys()) == sorted(ALL)
    assert sorted(store.keys("client-1")) == sorted([HERE, OLDER, MIXED])
    assert list(store.keys("nobody")) == []


def test_deleted_slices_are_acknowledged_and_gone_and_no_other(store: SliceStore):
    store.put(ALL)
    assert store.delete([HERE, SERVED]) == {HERE, SERVED}
    assert sorted(store.keys()) == sorted(set(ALL) - {HERE, SERVED})


def test_what_is_said_ahead_comes_as_ever(store: SliceStore):
    store.put(ALL)
    store.ahead([([HERE, THERE], 1), ([OLDER], 5), ([SERVED], 1), ([HERE._replace(stage=7)], 1)])
    assert {key: store.get(key) for key in ALL} == ALL
    assert store.get(HERE._replace(stage=7)) is None
    store.put({HERE: b"new"})
    assert store.get(HERE) == b"new"
    store.delete([THERE])
    assert store.get(THERE) is None


def test_deleting_again_is_acknowledged_again(store: SliceStore):
    store.put(ALL)
    store.delete([HERE])
    assert store.delete([HERE, THERE]) == {HERE, THERE}
