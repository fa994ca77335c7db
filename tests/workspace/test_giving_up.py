"""A forget that fails for good is given up and nothing stays locked; one that was only stopped may be given up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small import (
    Died,
    assert_in_order,
    client,
    copied,
    dies_before,
    every_digest,
    opened,
    operations,
    small_task,
    trained,
)

from fedforget.engines.local import LocalCohort
from fedforget.errors import FedForgetError, SettingError, StorageFull, TrainingFailed, Unfinished
from fedforget.federation import Cohort, FitResult, FitTask
from fedforget.storage.disk import Disk
from fedforget.workspace import Task, Workspace

LEAVER, OTHER = client(1), client(2)


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "w")


@dataclass
class Failing:
    """An engine that fails at the second round it is asked for, where told how."""

    inner: Cohort
    faults: list[BaseException]
    asked: list[int] = field(default_factory=list)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        self.asked.append(1)
        if self.faults and len(self.asked) > 1:
            raise self.faults[0]
        return self.inner.fit(tasks)


def failing(path: Path, *faults: BaseException) -> tuple[Workspace, list[BaseException]]:
    told = list(faults)

    def engine(task: Task, *_: Any) -> Cohort:
        return Failing(LocalCohort(task.learner, task.examples), told)

    return Workspace.open(path, task=small_task(), make_cohort=engine), told


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (ValueError("no\nsuch solver"), TrainingFailed),
        (RuntimeError("the learner failed at stage 0"), TrainingFailed),
        (SettingError("solver", "fisher", "one the learner has"), SettingError),
    ],
    ids=lambda it: getattr(it, "__name__", type(it).__name__),
)
def test_what_would_fail_again_gives_the_forget_up_and_locks_nothing(
    pristine: Path, room: Path, fault: Exception, raised: type[FedForgetError]
) -> None:
    path = copied(pristine, room / "w")
    space, told = failing(path, fault)
    with space:
        before = every_digest(space)
        with pytest.raises(raised) as caught:
            space.forget([LEAVER])
        assert str(fault).split("\n")[-1] in str(caught.value)
        assert "\n" not in str(caught.value)
        assert space.status().unfinished == ()
        assert every_digest(space) == before
        assert_in_order(space)
        assert space.ledger.requests()[-1].state == "refused"
        told.clear()
        assert space.forget([OTHER]).guarantee.grade == "X1"
        assert_in_order(space)


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), StorageFull("W"), ConnectionError("gone"), MemoryError()], ids=repr
)
def test_what_may_pass_does_not_and_the_same_forget_goes_on(pristine: Path, room: Path, fault: BaseException) -> None:
    path = copied(pristine, room / "w")
    space, told = failing(path, fault)
    with space:
        with pytest.raises(type(fault)):
            space.forget([LEAVER])
        assert space.status().unfinished == (LEAVER,)
        told.clear()
        assert space.forget().rounds > 1
        assert_in_order(space)


def test_a_worker_gives_a_forget_up_that_fails_and_says_why(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path, disk=dies_before(_second_round(pristine, room))) as space, pytest.raises(Died):
        space.forget([LEAVER])
    space, _ = failing(path, ValueError("no such solver"))
    with space:
        space.engine().asked.append(1)  # type: ignore[attr-defined]
        report = space.requests.run()
        assert report.executed == ()
        assert space.status().unfinished == ()
        (said,) = space.requests.list().requests
        assert (said.state, "no such solver" in said.reason) == ("rejected", True)


def test_one_that_was_stopped_may_be_given_up(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path, disk=dies_before(_second_round(pristine, room))) as space, pytest.raises(Died):
        space.forget([LEAVER])
    with opened(path) as space:
        before = every_digest(space)
        with pytest.raises(Unfinished, match="--abandon"):
            space.train()
        space.store.delete(space.state().history[0].keys[:1])
        assert len(space.repair().repaired) == 1  # meanwhile too
        report = space.abandon()
        assert (report.request, report.scope, report.method, report.debts) == (1, LEAVER, "exact", 0)
        assert every_digest(space) == before
        assert_in_order(space)
        with pytest.raises(SettingError, match="abandon"):
            space.abandon()
        assert space.forget([LEAVER], "clean").guarantee.grade == "X3"


def test_past_its_tombstones_it_may_not(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    steps = _steps(pristine, room)
    with opened(path, disk=dies_before(steps.index(("commit", "switch")))) as space, pytest.raises(Died):
        space.forget([LEAVER])
    with opened(path) as space:
        with pytest.raises(SettingError, match="only ever finished"):
            space.abandon()
        space.forget()
        assert_in_order(space)


def _steps(pristine: Path, room: Path) -> list[tuple[str, str]]:
    def work(disk: Disk) -> None:
        with opened(copied(pristine, room / "counted"), disk=disk) as space:
            space.forget([LEAVER])

    return operations(work)


def _second_round(pristine: Path, room: Path) -> int:
    entered = [at for at, step in enumerate(_steps(pristine, room)) if step == ("commit", "enter")]
    return entered[1]
