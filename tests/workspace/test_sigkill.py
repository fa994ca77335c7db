"""Killed at any moment and started again, training and forgetting end where an undisturbed run ends.

The workers are real processes, forked from a server that has imported everything already, and die of SIGKILL
after a random part of the time an undisturbed one takes; some directories see several deaths in a row.
"""

import multiprocessing
import random
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from small import EVERY_KEEPING, METHODS, assert_in_order, client, copied, digests, every_digest, make, opened, trained

from fedforget.errors import AlreadyForgotten

_SIZE = {"clients": 12, "shards": 3, "rounds": 6}
_LEAVERS = (client(1), client(4))  # of two shards; the third lends its lengths to clean forgetting
_WORKERS = multiprocessing.get_context("forkserver")
_WORKERS.set_forkserver_preload(["fedforget.workspace", "llvmlite.binding", "pytest"])


def train(path: Path) -> None:
    with opened(path, seats=12) as space:
        space.train()


def forget(method: str, path: Path) -> None:
    """What a user does who does not know how far it came: ask for the same again."""
    with opened(path, seats=12) as space:
        try:
            space.forget(_LEAVERS, method)
        except AlreadyForgotten:
            assert space.status().forgotten == _LEAVERS


@dataclass(frozen=True)
class Job:
    """Work on a directory that looks like `pristine` before it, and what it comes to when nobody disturbs it."""

    name: str
    pristine: Path
    work: partial[None]
    seconds: float
    ends_in: tuple[Mapping[object, object], Mapping[int, str]]

    @staticmethod
    def of(name: str, pristine: Path, work: partial[None]) -> "Job":
        undisturbed = copied(pristine, pristine.with_name(f"{pristine.name}-{name}"))
        victim = Victim(work, undisturbed)
        began = time.perf_counter()
        victim.process.join()
        seconds = time.perf_counter() - began
        assert victim.process.exitcode == 0
        return Job(name, pristine, work, seconds, _end(undisturbed))


@dataclass
class Victim:
    """A process at work, past its imports."""

    work: partial[None]
    path: Path
    process: multiprocessing.Process = field(init=False)

    def __post_init__(self) -> None:
        ready, says = _WORKERS.Pipe(duplex=False)
        self.process = _WORKERS.Process(target=_labour, args=(says, self.work, self.path))
        self.process.start()
        says.close()
        assert ready.recv() == "at work"
        ready.close()

    def killed_after(self, seconds: float) -> bool:
        """Whether it was still at work then."""
        time.sleep(seconds)
        self.process.kill()
        self.process.join()
        assert self.process.exitcode in (0, -signal.SIGKILL)
        return self.process.exitcode == -signal.SIGKILL


def _labour(says: Connection, work: partial[None], path: Path) -> None:
    says.send("at work")
    says.close()
    work(path)


def _end(path: Path) -> tuple[Mapping[object, object], Mapping[int, str]]:
    with opened(path, seats=12) as space:
        assert_in_order(space)
        return every_digest(space), digests(space)


def _kill(job: Job, moments: random.Random, room: Path, times: int) -> int:
    """Kill work on one directory `times` times, then let it finish; how many kills came before its end."""
    path = copied(job.pristine, room / "killed")
    landed = 0
    for _ in range(times):
        landed += Victim(job.work, path).killed_after(moments.uniform(0, job.seconds))
    job.work(path)
    assert _end(path) == job.ends_in, f"{job.name}, {job.pristine.name}, killed {landed} times"
    return landed


def _kill_often(jobs: list[Job], room: Path, kills: int) -> None:
    """Until so many kills have come before the end, over all jobs in turn."""
    moments = random.Random(2024)
    landed = at = 0
    while landed < kills:
        folder = room / f"try-{at}"
        folder.mkdir()
        landed += _kill(jobs[at % len(jobs)], moments, folder, times=1 + at % 3)
        at += 1
        assert at < 10 * kills, "the workers are always done before they are killed"


@pytest.fixture(scope="module")
def training(shared_room: Path) -> list[Job]:
    jobs = []
    for layout, keep in EVERY_KEEPING:
        path = shared_room / f"new-{layout}-{keep}"
        make(path, layout, keep, **_SIZE).close()
        jobs.append(Job.of("train", path, partial(train)))
    return jobs


@pytest.fixture(scope="module")
def forgetting(shared_room: Path) -> list[Job]:
    jobs = []
    for (layout, keep), method in zip(EVERY_KEEPING, cycle(METHODS)):
        path = trained(shared_room / f"trained-{layout}-{keep}", layout, keep, **_SIZE)
        jobs.append(Job.of(method, path, partial(forget, method)))
    return jobs


def test_training_killed_at_fifty_random_moments_ends_in_the_same_models(training: list[Job], room: Path) -> None:
    _kill_often(training, room, 50)


def test_forgetting_killed_at_fifty_random_moments_ends_in_the_same_models(forgetting: list[Job], room: Path) -> None:
    _kill_often(forgetting, room, 50)
