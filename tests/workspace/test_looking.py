"""Looking without the lock: what was read is of one moment, and another's change is never called damage."""

from pathlib import Path

import numpy as np
import pytest
from small import make, opened, small_task, trained

from fedforget.engines.local import LocalCohort
from fedforget.errors import Damaged
from fedforget.examples import Examples
from fedforget.federation import Cohort
from fedforget.learners.linear import Softmax
from fedforget.workspace import FederationSettings, Task, Workspace


def test_a_reader_whose_ground_moved_reads_again(room: Path) -> None:
    make(room / "w").close()
    seen: list[int] = []

    with opened(room / "w") as space:

        def read() -> int:
            seen.append(space.ledger.height())
            if len(seen) == 1:
                with opened(room / "w") as other:
                    other.train()
                raise Damaged("a slice", "one", "another")
            return seen[-1]

        assert space._steady(read) == space.ledger.height()
    assert len(seen) == 2


def test_what_fails_on_steady_ground_is_said(room: Path) -> None:
    with opened(trained(room / "w")) as space:

        def read() -> int:
            raise Damaged("a slice", "one", "another")

        with pytest.raises(Damaged):
            space._steady(read)


def test_closing_ends_the_engine(room: Path) -> None:
    closed: list[str] = []

    class Engine(LocalCohort):
        def close(self) -> None:
            closed.append("engine")

    def make_engine(task: Task, settings: FederationSettings, workers: int | None) -> Cohort:
        return Engine(task.learner, task.examples)

    make(room / "w").close()
    with Workspace.open(room / "w", task=small_task(), make_cohort=make_engine) as space:
        space.train()
    assert closed == ["engine"]


def test_a_device_that_does_not_repeat_itself_is_a_changed_condition(room: Path) -> None:
    class Shaky(Softmax):
        deterministic = False

    trained(room / "w")
    task = small_task()
    learner = Shaky(task.learner.features, task.learner.classes, task.learner.descent)  # type: ignore[attr-defined]
    with Workspace.open(room / "w", task=Task(task.dataset, learner, task.examples)) as space:
        guarantee = space.forget(["client-000"]).guarantee
        assert (guarantee.grade, guarantee.conditions) == ("X2", ("the device's kernels are not deterministic",))


def test_all_retained_examples_are_asked_where_they_are_few(room: Path) -> None:
    with opened(trained(room / "few", clients=4, holders=2), seats=4) as space:
        few = space.evaluate().score("ensemble")
        mine = space.task.examples.values()
        said = [ensemble(space, examples) for examples in mine]
        assert sum(len(e) for e in mine) <= len(space.task.test)
        assert few.retained_accuracy == sum(said) / sum(len(e) for e in mine)
        assert few.forgotten_accuracy is None


def ensemble(space: Workspace, examples: Examples) -> int:
    """How many the mean of the shard models' probabilities gets right."""
    models = space.state().served().values()
    mean = sum(space.learner.predict(model, examples.x) for model in models)
    return int((np.argmax(mean, axis=1) == examples.y).sum())
