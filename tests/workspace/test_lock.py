"""One process at a time: the second is told who works, the first never notices, and the dead hold nothing."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from small import assert_in_order, client, every_digest, make, opened, trained
from worlds import refused, world_without

from fedforget.errors import WorkspaceBusy
from fedforget.workspace.lock import locked

_WORKERS = multiprocessing.get_context("forkserver")
_WORKERS.set_forkserver_preload(["fedforget.workspace", "llvmlite.binding", "pytest"])


def _train_and_forget(path: Path, other: Connection) -> None:
    with opened(path) as space:
        other.send("at work")
        space.train()
        space.forget([client(0)])


def _train_half_way_and_wait(path: Path, other: Connection) -> None:
    """Train; half-way say so, and go on when told."""

    def wait(what: str, done: int, total: int) -> None:
        if 2 * done == total:
            other.send(os.getpid())
            other.recv()

    with opened(path) as space:
        space.train(wait)
    other.send("done")


@contextmanager
def _at_work(
    path: Path, work: Callable[[Path, Connection], None] = _train_half_way_and_wait
) -> Iterator[tuple[Connection, multiprocessing.Process]]:
    mine, theirs = _WORKERS.Pipe()
    process = _WORKERS.Process(target=work, args=(path, theirs))
    process.start()
    theirs.close()
    try:
        yield mine, process
    finally:
        process.kill()
        process.join()
        mine.close()


def test_whoever_comes_second_is_told_who_works_and_the_first_is_unharmed(room: Path) -> None:
    path = room / "w"
    with make(path, rounds=4) as space:
        world = world_without(space)
    with _at_work(path) as (other, process), opened(path) as space:
        worker = other.recv()
        for verb in (space.train, space.open_stage, space.repair, lambda: space.forget([client(0)])):
            with refused(path, WorkspaceBusy, str(path), f"process {worker}", "nothing was changed"):
                verb()
        assert [s.rounds for s in space.status().shards] == [2, 2]
        assert space.evaluate().scores
        assert space.plan([client(0)]).rounds
        other.send("go on")
        assert other.recv() == "done"
        process.join()
        assert process.exitcode == 0
        assert every_digest(space) == world
        assert_in_order(space)


def test_looking_while_another_works_sees_one_moment_and_never_a_false_alarm(room: Path) -> None:
    path = room / "w"
    make(path, rounds=40).close()
    looked = busy = 0
    with _at_work(path, _train_and_forget) as (other, process), opened(path) as space:
        other.recv()
        while process.is_alive():
            rounds = [s.rounds for s in space.status().shards]
            assert rounds[0] == rounds[1]
            space.evaluate()
            space.plan([client(1)])
            try:
                assert space.verify().passed
            except WorkspaceBusy:
                busy += 1
            looked += 1
        assert process.exitcode == 0
        assert looked >= busy > 0
        assert_in_order(space)


def test_those_who_only_look_for_long_share_the_lock_and_keep_workers_out(room: Path) -> None:
    path = trained(room / "w")
    with locked(path, shared=True), opened(path) as space:
        assert space.verify().passed
        with refused(path, WorkspaceBusy):
            space.train()
        with refused(path, WorkspaceBusy):
            space.scrub()
    with locked(path), opened(path) as space, refused(path, WorkspaceBusy):
        space.verify()


def test_what_may_not_be_written_may_be_looked_at(room: Path) -> None:
    room.chmod(0o555)
    nobody, me = 65534, os.geteuid()
    try:
        if me == 0:
            os.seteuid(nobody)
        with locked(room, shared=True):
            pass
        with pytest.raises(PermissionError), locked(room):
            pass
    finally:
        os.seteuid(me)
        room.chmod(0o755)
    assert list(room.iterdir()) == []


def test_a_dead_process_holds_no_lock(room: Path) -> None:
    path = room / "w"
    make(path, rounds=4).close()
    with _at_work(path) as (other, process):
        other.recv()
        process.kill()
        process.join()
        with opened(path) as space:
            assert space.train().resumed_at == 4
            assert_in_order(space)


def test_the_lock_is_given_back_after_work_and_after_failure(room: Path) -> None:
    with locked(room):
        pass
    with pytest.raises(ZeroDivisionError), locked(room):
        raise ZeroDivisionError
    with locked(room):
        with pytest.raises(WorkspaceBusy, match=f"process {os.getpid()}"), locked(room):
            pass
        with pytest.raises(WorkspaceBusy), locked(room):
            pass


def test_two_workspaces_do_not_wait_for_one_another(room: Path) -> None:
    one, two = (trained(room / name) for name in "ab")
    with opened(one) as space, locked(two):
        space.forget([client(0)])


def test_a_lock_whose_holder_has_not_signed_yet_still_holds(room: Path) -> None:
    with locked(room):
        (room / "lock").write_bytes(b"")
        with pytest.raises(WorkspaceBusy, match="another process"), locked(room):
            pass
