"""The process dies just before every single durable operation; the same command afterwards ends as if it had not."""

import errno
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from small import (
    EVERY_KEEPING,
    METHODS,
    Died,
    assert_in_order,
    client,
    copied,
    dies_before,
    every_digest,
    make,
    opened,
    operations,
    trained,
)

from fedforget.errors import StorageFull
from fedforget.manifest import Keep, Layout
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace

# Drawn first in round 1, and a holder of the slices of round 0: these stay and have to move.
LEAVER = client(7)


@dataclass(frozen=True)
class Story:
    """A workspace, what is done to it, and how it ends."""

    base: Path
    work: Callable[[Workspace], None]
    steps: int
    ends: Mapping[tuple[int, int, int], tuple[str, str]]

    @staticmethod
    def of(base: Path, work: Callable[[Workspace], None]) -> "Story":
        straight = copied(base, base.with_name("straight"))

        def run(disk: Disk) -> None:
            with opened(straight, disk=disk) as space:
                work(space)

        steps = len(operations(run))
        with opened(straight) as space:
            assert_in_order(space)
            ends = every_digest(space)
        shutil.rmtree(straight)
        return Story(base, work, steps, ends)

    def ends_well_after(self, *deaths: int) -> None:
        """Die at each of these steps in turn, every time in the command that would go on; then finish."""
        path = copied(self.base, self.base.with_name("broken"))
        for step in deaths:
            try:
                with opened(path, disk=dies_before(step)) as space:
                    go_on(space, self.work)
            except Died:
                pass
        with opened(path) as space:
            go_on(space, self.work)
            assert_in_order(space)
            assert every_digest(space) == self.ends
        shutil.rmtree(path)


def go_on(space: Workspace, work: Callable[[Workspace], None]) -> None:
    """What an operator does who finds it as it is: finish a forget that is open, train where all is done, or begin."""
    if any(r.state == "rebuilding" for r in space.ledger.requests()):
        space.forget()
    elif any(r.state == "executed" for r in space.ledger.requests()):
        space.train()
    else:
        work(space)


def forgetting(method: str, *leavers: str) -> Callable[[Workspace], None]:
    return lambda space: space.forget(leavers, method) and None


def training(space: Workspace) -> None:
    space.train()


def forget_story(room: Path, layout: Layout, keep: Keep, method: str, *leavers: str) -> Story:
    return Story.of(trained(room / "base", layout, keep), forgetting(method, *(leavers or (LEAVER,))))


def train_story(room: Path, layout: Layout, keep: Keep) -> Story:
    make(room / "base", layout, keep).close()
    return Story.of(room / "base", training)


@pytest.mark.parametrize(("layout", "keep", "method"), [("shard", "full", "exact"), ("cross", "lean", "clean")])
def test_a_forget_interrupted_at_every_operation(room: Path, layout: Layout, keep: Keep, method: str):
    story = forget_story(room, layout, keep, method)
    assert story.steps > 50
    for step in range(story.steps):
        story.ends_well_after(step)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_a_forget_interrupted_at_every_operation_in_every_keeping(room: Path, layout: Layout, keep: Keep, method: str):
    story = forget_story(room, layout, keep, method)
    for step in range(story.steps):
        story.ends_well_after(step)


@pytest.mark.parametrize("layout", ["shard", "cross"])
def test_a_forget_that_empties_a_shard_interrupted_at_every_fourth_operation(room: Path, layout: Layout):
    story = forget_story(room, layout, "full", "exact", client(1), client(2), client(4), client(7))
    for step in range(0, story.steps, 4):
        story.ends_well_after(step)


def test_training_interrupted_at_every_fourth_operation(room: Path):
    story = train_story(room, "shard", "full")
    for step in range(0, story.steps, 4):
        story.ends_well_after(step)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_training_interrupted_at_every_operation_in_every_keeping(room: Path, layout: Layout, keep: Keep):
    story = train_story(room, layout, keep)
    for step in range(story.steps):
        story.ends_well_after(step)


@pytest.mark.parametrize("layout", ["shard", "cross"])
def test_dying_again_and_again(room: Path, layout: Layout):
    story, source = forget_story(room, layout, "full", "calibrated"), random.Random(0)
    for _ in range(12):
        story.ends_well_after(*(source.randrange(story.steps) for _ in range(source.choice([2, 2, 3, 5]))))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_dying_again_and_again_in_every_keeping(room: Path, layout: Layout, keep: Keep, method: str):
    story, source = forget_story(room, layout, keep, method), random.Random(f"{layout} {keep} {method}")
    for _ in range(60):
        story.ends_well_after(*(source.randrange(story.steps) for _ in range(source.choice([2, 2, 3, 5]))))


def test_a_repair_interrupted_at_every_operation(room: Path):
    """A holder has gone for good, another's slice is altered; repeated, the same repair ends the same."""
    base = trained(room / "base", threshold=1)
    with opened(base) as space:
        gone, altered = space.state().history[0].holders[:2]
        before = every_digest(space)
        some = next(space.store.keys(altered))
        space.store.path(some).write_bytes(b"altered")
    shutil.rmtree(base / "holders" / gone)

    def mend(disk: Disk, path: Path) -> None:
        with opened(path, disk=disk) as space:
            space.repair(gone=[gone])

    straight = copied(base, room / "straight")
    steps = len(operations(lambda disk: mend(disk, straight)))
    for step in range(steps):
        path = copied(base, room / "broken")
        with pytest.raises(Died):
            mend(dies_before(step), path)
        mend(Disk(), path)
        with opened(path) as space:
            report = space.verify()
            assert report.passed, report
            assert report.findings == ()
            assert every_digest(space) == before
            assert not any(gone in bundle.holders for bundle in space.state().bundles)
            assert {key.holder for key in space.ledger.debts()} == {gone}
        shutil.rmtree(path)


class Full:
    """A disk that is full at one operation and has room again afterwards."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, operation: str, target: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)


@pytest.mark.parametrize("layout", ["shard", "cross"])
def test_a_full_disk_stops_the_command_by_name_and_the_same_command_goes_on(room: Path, layout: Layout):
    story = forget_story(room, layout, "full", "exact")
    for step in range(0, story.steps, 6):
        path = copied(story.base, room / "full")
        with opened(path, disk=Disk(Full(step))) as space, pytest.raises(StorageFull) as caught:
            space.forget([LEAVER])
        assert str(path) in caught.value.path
        with opened(path) as space:
            go_on(space, story.work)
            assert_in_order(space)
            assert every_digest(space) == story.ends
        shutil.rmtree(path)


def test_a_full_disk_while_training(room: Path):
    story = train_story(room, "cross", "lean")
    for step in range(0, story.steps, 7):
        path = copied(story.base, room / "full")
        with opened(path, disk=Disk(Full(step))) as space, pytest.raises(StorageFull):
            space.train()
        with opened(path) as space:
            space.train()
            assert_in_order(space)
            assert every_digest(space) == story.ends
        shutil.rmtree(path)
