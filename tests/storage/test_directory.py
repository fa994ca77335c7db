from pathlib import Path

import pytest

from fedforget.slices import ALL_SHARDS, SliceKey
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.disk import Disk

KEY = SliceKey(0, 1, 7, 0, "client-1")


class Died(Exception):
    pass


def test_where_a_slice_lies(tmp_path: Path):
    store = DirectoryStore(tmp_path)
    assert store.path(KEY) == tmp_path / "client-1/stage-0/shard-1/round-0007.generation-0.slice"
    mixed = KEY._replace(shard=ALL_SHARDS, round=12345, generation=12)
    store.put({mixed: b"x"})
    assert store.path(mixed).name == "round-12345.generation-12.slice"
    assert list(store.keys()) == [mixed]


def test_a_holder_whose_folder_is_gone_acknowledges_nothing(tmp_path: Path):
    store, there = DirectoryStore(tmp_path), KEY._replace(holder="client-2")
    store.put({KEY: b"a", there: b"b"})
    (tmp_path / "client-1").rename(tmp_path.parent / "away")
    assert store.get(KEY) is None
    assert store.delete([KEY, there]) == {there}
    (tmp_path.parent / "away").rename(tmp_path / "client-1")
    assert store.get(KEY) == b"a"
    assert store.delete([KEY]) == {KEY}
    assert store.get(KEY) is None


def test_files_that_are_no_slices_are_not_listed(tmp_path: Path):
    store = DirectoryStore(tmp_path)
    store.put({KEY: b"a"})
    folder = store.path(KEY).parent
    for name in (".writing-round-0008.generation-0.slice", "note.txt", "round-x.generation-0.slice"):
        (folder / name).write_bytes(b"?")
    (tmp_path / "stray.slice").write_bytes(b"?")
    assert list(store.keys()) == [KEY]


@pytest.mark.parametrize("step", range(7))
def test_a_slice_is_there_whole_or_not_at_all_wherever_the_process_dies(tmp_path: Path, step: int):
    seen: list[str] = []

    def probe(operation: str, target: str) -> None:
        seen.append(operation)
        if len(seen) > step:
            raise Died(operation)

    old, new = {KEY: b"old" * 100}, {KEY: b"new" * 50, KEY._replace(round=8): b"more"}
    DirectoryStore(tmp_path).put(old)
    with pytest.raises(Died):
        DirectoryStore(tmp_path, Disk(probe)).put(new)
    store = DirectoryStore(tmp_path)
    assert store.get(KEY) in (old[KEY], new[KEY])
    assert store.get(KEY._replace(round=8)) in (None, b"more")
    assert set(store.keys()) <= set(new)
    Disk().sweep(tmp_path)
    assert not list(tmp_path.rglob(".writing-*"))
    store.put(new)
    assert {key: store.get(key) for key in new} == new
