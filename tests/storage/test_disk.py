import errno
import os
import stat
from pathlib import Path

import pytest

from fedforget.errors import StorageFull
from fedforget.storage.disk import Disk


def recorded() -> tuple[Disk, list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    return Disk(lambda operation, target: seen.append((operation, Path(target).name))), seen


def failing(operation: str, code: int) -> Disk:
    def probe(now: str, target: str) -> None:
        if now == operation:
            raise OSError(code, os.strerror(code))

    return Disk(probe)


def test_every_durable_operation_is_announced_in_an_order_that_survives_a_crash(tmp_path: Path):
    disk, seen = recorded()
    disk.write(tmp_path / "a", b"x")
    assert seen == [("write", "a"), ("fsync", ".writing-a"), ("rename", "a"), ("fsync", tmp_path.name)]
    seen.clear()
    disk.delete(tmp_path / "a")
    assert seen == [("delete", "a"), ("fsync", tmp_path.name)]


def test_many_are_all_synced_before_the_first_gets_its_name(tmp_path: Path):
    disk, seen = recorded()
    disk.write_all({tmp_path / name: name.encode() for name in "abc"})
    assert [o for o, _ in seen] == ["write"] * 3 + ["fsync"] * 3 + ["rename"] * 3 + ["fsync"]
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [b"a", b"b", b"c"]


def test_new_folders_are_made_durable_with_what_is_in_them(tmp_path: Path):
    disk, seen = recorded()
    disk.write(tmp_path / "one" / "two" / "a", b"x")
    assert {name for operation, name in seen[3:]} == {"two", "one", tmp_path.name}
    assert {operation for operation, _ in seen[3:]} == {"fsync"}
    seen.clear()
    disk.write(tmp_path / "one" / "two" / "b", b"x")
    assert seen[3:] == [("fsync", "two")]


def test_reading_what_is_not_there_is_none(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    assert Disk().read(tmp_path / "nothing") is None
    assert Disk().read(tmp_path / "file" / "below a file") is None
    assert Disk().read(tmp_path / "file") == b""


def test_deleting_and_erasing_what_is_not_there_touches_nothing(tmp_path: Path):
    disk, seen = recorded()
    disk.delete(tmp_path / "nothing")
    disk.erase(tmp_path / "nothing")
    assert seen == []


def test_a_secret_is_readable_by_its_owner_alone(tmp_path: Path):
    Disk().write(tmp_path / "key", b"secret", mode=0o600)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_erasing_overwrites_the_bytes_where_they_lie(tmp_path: Path):
    """A second name for the same bytes shows what becomes of them."""
    Disk().write(tmp_path / "key", b"secret")
    os.link(tmp_path / "key", tmp_path / "same bytes")
    Disk().erase(tmp_path / "key")
    assert not (tmp_path / "key").exists()
    assert (tmp_path / "same bytes").read_bytes() == bytes(6)


def test_half_written_files_are_not_listed_and_swept(tmp_path: Path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "whole").write_bytes(b"x")
    (tmp_path / "deep" / ".writing-half").write_bytes(b"x")
    (tmp_path / ".writing-other").write_bytes(b"x")
    assert list(Disk().files(tmp_path)) == [tmp_path / "deep" / "whole"]
    assert Disk().sweep(tmp_path) == 2
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["deep", "whole"]
    assert Disk().sweep(tmp_path) == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("operation", ["write", "fsync", "rename", "delete", "erase"])
def test_a_full_disk_is_named_whatever_it_refuses(tmp_path: Path, operation: str, code: int):
    (tmp_path / "old").write_bytes(b"old")
    disk = failing(operation, code)
    work = disk.erase if operation in ("delete", "erase") else lambda path: disk.write(path, b"new")
    with pytest.raises(StorageFull) as caught:
        work(tmp_path / "old")
    assert str(tmp_path) in caught.value.path
    assert caught.value.exit_code == 8
    assert (tmp_path / "old").read_bytes() in (b"old", b"new", bytes(3))


def test_other_faults_of_the_system_are_not_called_a_full_disk(tmp_path: Path):
    with pytest.raises(OSError, match="Input/output error"):
        failing("fsync", errno.EIO).write(tmp_path / "a", b"x")


def test_a_refused_write_leaves_the_old_file_as_it_was(tmp_path: Path):
    Disk().write(tmp_path / "a", b"old")
    with pytest.raises(StorageFull):
        failing("fsync", errno.ENOSPC).write(tmp_path / "a", b"new")
    assert Disk().read(tmp_path / "a") == b"old"
