"""Conditions that changed are not forgotten: no later forget, status or comparison takes X2 for X1."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import make, small_task

from fedforget.engines.local import LocalCohort
from fedforget.examples import Examples
from fedforget.federation import Cohort, FitResult, FitTask, Learner
from fedforget.params import Params
from fedforget.storage import tables
from fedforget.workspace import Task, Workspace
from fedforget.workspace.reports import Check
from fedforget.workspace.tasks import bits

Lost = set[tuple[tuple[int, int, int], str]]


@dataclass(frozen=True)
class Machine:
    """A learner on a machine of its own: other libraries, and bits that differ by `off`."""

    inner: Learner
    numerics: str
    off: float = 0.0

    def init(self, seed: int) -> Params:
        return self.inner.init(seed)

    def predict(self, params: Params, x: Any) -> Any:
        return self.inner.predict(params, x)

    def fit(self, params: Params, examples: Examples, **how: Any) -> Params:
        made = self.inner.fit(params, examples, **how)
        return Params(made.layout, made.vector * np.float32(1 + self.off))


@dataclass(frozen=True)
class Losing:
    """An engine that loses clients where told; silent about its numerics."""

    inner: Cohort
    lost: Lost

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return self.inner.fit([t for t in tasks if (tuple(t.place), t.client) not in self.lost])


@dataclass(frozen=True)
class Device:
    """An engine that runs elsewhere than the learner it was given, and does not repeat itself to the last bit."""

    inner: Cohort
    calls: list[int] = field(default_factory=list)
    numerics: str = "a device"
    deterministic: bool = False

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for result in self.inner.fit(tasks):
            self.calls.append(1)
            noise = np.float32(1 + 1e-6 * len(self.calls))
            yield replace(result, params=Params(result.params.layout, result.params.vector * noise))


def losing(path: Path, lost: Lost) -> Workspace:
    def engine(task: Task, *_: Any) -> Cohort:
        return Losing(LocalCohort(task.learner, task.examples), lost)

    return Workspace.open(path, task=small_task(), make_cohort=engine)


def on(path: Path, machine: str) -> Workspace:
    task = small_task()
    off = 1e-6 if machine == "B" else 0.0
    return Workspace.open(path, task=replace(task, learner=Machine(task.learner, machine, off)))


def grades(space: Workspace) -> list[str]:
    return [shard.standing for shard in space.status().shards]


def never_joined(space: Workspace) -> Check:
    report = space.verify(never_joined=True)
    assert report.passed, report
    return report.checks[-1]


@pytest.fixture
def path(room: Path) -> Path:
    make(room / "w", rounds=4).close()
    return room / "w"


def first(space: Workspace, fits: Callable[[int], bool], shard: int = 0) -> str:
    """A client of the shard whose first round fits."""
    plan = space.state().plan
    drawn = {c: plan.first_round(0, shard, [c]) for c in plan.present(0, shard)}
    return next(c for c, at in drawn.items() if at is not None and fits(at))


def test_whoever_was_lost_in_training_is_lost_in_the_world_it_is_compared_with(path: Path) -> None:
    lost: Lost = set()
    with losing(path, lost) as space:
        lost.add(((0, 0, 0), space.state().plan.cohort(0, 0, 0)[0]))
        space.train()
        lost.clear()
        assert grades(space) == ["X1", "X1"]
        assert never_joined(space).detail.startswith("8 models bit-identical")
        assert space.forget([first(space, lambda at: at > 0)]).guarantee.grade == "X1"
        assert never_joined(space).detail.startswith("8 models bit-identical")


def test_what_a_replay_lost_no_later_forget_and_no_status_forgets(path: Path) -> None:
    lost: Lost = set()
    with losing(path, lost) as space:
        space.train()
        leaver = first(space, lambda at: at == 0)
        lost.add(((0, 0, 1), space.state().plan.without([leaver]).cohort(0, 0, 1)[0]))
        assert space.forget([leaver]).guarantee.grade == "X2"
        lost.clear()
        assert grades(space) == ["X2", "X1"]
        assert never_joined(space).detail.endswith("not claimed where shard 0 is X2")
        later = space.forget([first(space, lambda at: at > 1)]).guarantee
        assert later.grade == "X2"
        assert any("had been made again under changed conditions" in why for why in later.conditions)
        assert grades(space) == ["X2", "X1"]


def test_another_machine_is_remembered_with_the_rounds_it_made(path: Path) -> None:
    with on(path, "A") as space:
        space.train()
        leaver, late = first(space, lambda at: at == 0), first(space, lambda at: at > 1)
    with on(path, "B") as space:
        assert space.forget([leaver]).guarantee.grade == "X2"
        check = space.verify(replay=2).checks[-1]
        assert (check.passed, check.detail) == (True, "2 rounds trained again, bit for bit the same")
    with on(path, "A") as space:
        assert grades(space) == ["X2", "X1"]
        again = space.forget([late]).guarantee
        assert again.grade == "X2"
        assert "trained under B, replayed under A" in again.conditions
        assert never_joined(space).detail.startswith("4 models")
        assert space.forget([first(space, lambda at: True, shard=1)]).guarantee.grade == "X1"


def test_training_that_went_on_on_another_machine_is_no_run_of_either(path: Path) -> None:
    class Stopped(Exception): ...

    def half_way(what: str, done: int, total: int) -> None:
        if done == 4:
            raise Stopped

    with on(path, "A") as space, pytest.raises(Stopped):
        space.train(half_way)
    with on(path, "B") as space:
        space.train()
        assert grades(space) == ["X2", "X2"]
        check = never_joined(space)
        assert (check.passed, check.detail) == (None, "nothing to compare: shard 0 is X2, shard 1 is X2")


def test_on_another_machine_what_differs_is_named_and_neither_held_nor_failed(path: Path) -> None:
    with on(path, "A") as space:
        space.train()
    with on(path, "B") as space:
        check = never_joined(space)
        assert check.passed is None
        assert check.detail == "nothing to compare: models were made under A, not B"
        assert space.verify(replay=3).checks[-1] == Check(
            "replay", None, "nothing to train again: no round was made under B"
        )


def test_rounds_of_a_version_that_did_not_note_their_numerics_go_by_what_was_noted(path: Path) -> None:
    with on(path, "A") as space:
        space.train()
        with space.ledger.transaction("test") as db:
            for row in db.execute(tables.rounds.select()).mappings().all():
                body = {k: v for k, v in row["body"].items() if k not in ("numerics", "deterministic")}
                db.execute(tables.rounds.update().where(tables.rounds.c.id == row["id"]).values(body=body))
    with on(path, "B") as space:
        leaver = first(space, lambda at: at == 0)
        assert space.forget([leaver]).guarantee.conditions == ("trained under A, replayed under B",)


def test_the_engine_says_where_it_runs_not_the_learner_it_was_given(path: Path) -> None:
    def engine(task: Task, *_: Any) -> Cohort:
        return Device(LocalCohort(task.learner, task.examples))

    with Workspace.open(path, task=small_task(), make_cohort=engine) as space:
        assert never_joined(space).passed is None
        space.train()
        assert space.ledger.noted("numerics") == ("a device",)
        assert grades(space) == ["X2", "X2"]
        guarantee = space.forget([first(space, lambda at: at == 0)]).guarantee
        assert (guarantee.grade, guarantee.conditions) == ("X2", ("the device's kernels are not deterministic",))
        check = never_joined(space)
        assert (check.passed, check.detail) == (
            None,
            "nothing to compare: the device's kernels are not deterministic",
        )
    with Workspace.open(path, task=small_task()) as space:  # here they are, but were not when these were made
        leaver = first(space, lambda at: at == 0)
        assert "the device's kernels are not deterministic" in space.forget([leaver]).guarantee.conditions


def test_nothing_is_compared_where_nothing_was_trained_or_nothing_is_claimed(path: Path) -> None:
    with losing(path, set()) as space:
        check = never_joined(space)
        assert (check.passed, check.detail) == (None, "nothing to compare: no round was trained")
        assert space.verify(replay=1).checks[-1] == Check("replay", None, "nothing to train again")
        space.train()
        for shard in (0, 1):
            space.forget([first(space, lambda at: at == 0, shard)], "calibrated")
        check = never_joined(space)
        assert (check.passed, check.detail) == (None, "nothing to compare: shard 0 is A, shard 1 is A")


def test_a_cohort_that_says_nothing_computes_as_its_learner() -> None:
    task = small_task()
    local = LocalCohort(task.learner, task.examples)
    assert bits(Losing(local, set()), task.learner) == bits(local, task.learner) == (local.numerics, True)
    assert bits(Losing(local, set()), Machine(task.learner, "A")) == ("A", True)
