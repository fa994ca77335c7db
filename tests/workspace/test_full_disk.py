"""A full disk: an error of its own, nothing lost, and the same command goes on once there is room."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import METHODS, assert_in_order, client, copied, digests, every_digest, make, opened, small_task, trained
from worlds import world_without

from fedforget.errors import AlreadyForgotten, StorageFull
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace


def full_after(writes: int) -> Disk:
    """A disk with room for so many files."""
    left = iter(range(writes))

    def probe(operation: str, target: str) -> None:
        if operation == "write" and next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    return Disk(probe)


def test_training_goes_on_once_there_is_room(room: Path) -> None:
    make(room / "new").close()
    with opened(room / "new") as space:
        world = world_without(space)
    for writes in range(0, 24, 3):
        path = copied(room / "new", room / str(writes))
        with opened(path, disk=full_after(writes)) as space:
            with pytest.raises(StorageFull, match=r"no space left to write .*; free some and run the same command"):
                space.train()
            kept = space.status().shards[0].rounds
        with opened(path) as space:
            assert space.status().shards[0].rounds == kept
            assert space.train().resumed_at == 2 * kept
            assert every_digest(space) == world
            assert_in_order(space)


@pytest.mark.parametrize("method", METHODS)
def test_forgetting_goes_on_once_there_is_room(room: Path, method: str) -> None:
    trained(room / "old")
    with opened(copied(room / "old", room / "twin")) as space:
        space.forget([client(2)], method)
        end = every_digest(space)
    for writes in range(0, 36, 6):
        path = copied(room / "old", room / str(writes))
        filled = False
        with opened(path, disk=full_after(writes)) as space:
            served = digests(space)
            try:
                space.forget([client(2)], method)
            except StorageFull:
                filled = True
                assert space.status().forgotten or digests(space) == served
        assert filled or writes > 10
        with opened(path) as space:
            try:
                space.forget([client(2)], method)
            except AlreadyForgotten:
                space.train()
            assert every_digest(space) == end
            assert_in_order(space)


@pytest.fixture
def little_room(room: Path) -> Iterator[Path]:
    """A file system of its own with 400 KB in it."""
    place = room / "little"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system needs the right to mount one")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_file_system_that_is_really_full(little_room: Path, room: Path) -> None:
    """Slices as well as the database run into it, one or the other first."""
    with make(room / "twin", rounds=30) as twin:
        world = world_without(twin)
    path = little_room / "w"
    make(path, rounds=30).close()
    with Workspace.open(path, task=small_task()) as space:
        for _ in range(2):
            with pytest.raises(StorageFull, match="no space left"):
                space.train()
        rounds = space.status().shards[0].rounds
        assert 0 < rounds < 30
    subprocess.run(["mount", "-o", "remount,size=10m", str(little_room)], check=True)
    with Workspace.open(path, task=small_task()) as space:
        assert space.train().resumed_at == 2 * rounds
        assert every_digest(space) == world
        assert_in_order(space)
