"""The audit of a workspace: what it asks, of whom, and that exact forgetting leaves it nothing to find."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import client, copied, make, opened, small_task

from fedforget.errors import AlreadyForgotten, NoReference, NotTrained, SettingError, UnknownClient
from fedforget.evaluation.audit import ATTACKS
from fedforget.examples import Examples
from fedforget.workspace import Workspace
from fedforget.workspace.audit import BEFORE, SERVED, audit_report, docket
from fedforget.workspace.progress import silent


@pytest.fixture(scope="module")
def base(shared_room: Path) -> Path:
    """Trained, everybody taking part in every round."""
    with make(shared_room / "base", participants=0) as space:
        space.train()
    return shared_room / "base"


def ask(space: Workspace, *clients: str, **more: object):  # type: ignore[no-untyped-def]
    return audit_report(space, clients, **{"references": 4, "resamples": 20, "progress": silent, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "same"), [("exact", True), ("calibrated", False)])
def test_what_is_served_is_held_against_the_run_they_never_joined(
    base: Path, room: Path, method: str, same: bool
) -> None:
    with opened(copied(base, room / "w")) as space:
        space.forget([client(0), client(1)], method)
        before = space.ledger.height()
        report = ask(space)
        assert space.ledger.height() == before, "an audit changes nothing"
        assert report.served
        assert report.together
        assert report.forgotten == (client(0), client(1))
        assert not set(report.retained) & set(report.forgotten)
        assert report.identical == {SERVED: same}
        assert report.drawn == "examples of these clients, these very models"
        count = sum(len(space.task.examples[c]) for c in report.forgotten)
        assert report.examples["forgotten"] == count
        for view in ("shard", "served"):
            for attack in ATTACKS:
                found = report.finding("forgotten", SERVED, view, attack).result
                assert found.members == found.others == count
                if same:
                    assert found.auc == 0.5
                    assert found.interval == (0.5, 0.5)
        assert {f.world for f in report.findings} == {BEFORE, SERVED}
        assert {f.data for f in report.findings} == {"forgotten", "retained"}
        if same:  # of those who stay nothing changed but their mates
            assert report.finding("retained", SERVED).result.members == report.examples["retained"]


def test_the_world_without_the_forgotten_is_trained_not_believed(base: Path, room: Path) -> None:
    """A workspace that serves other models than it should is not called identical."""
    with opened(copied(base, room / "w")) as space:
        space.forget([client(0)])
        assert ask(space).identical == {SERVED: True}
        altered = replace(space.settings, seed=99)
        object.__setattr__(space, "settings", altered)
        assert ask(space).identical == {SERVED: False}


def test_each_alone_and_together_over_several_trainings(base: Path) -> None:
    said: list[str] = []
    with opened(base) as space:
        each = ask(
            space, client(0), client(1), each=True, trainings=2, progress=lambda what, done, total: said.append(what)
        )
        together = ask(space, client(0), client(1), methods=["exact"])
        assert {*said} == {"reference models", "trainings"}
        assert (each.together, together.together, each.served) == (False, True, False)
        assert each.drawn == "trainings and examples of these clients"
        assert each.identical == {"exact": True, "clean": False, "calibrated": False}
        assert together.identical == {"exact": True}
        assert each.finding("forgotten", "exact").result.auc == 0.5
        assert each.finding("forgotten", BEFORE).result.members == 2 * each.examples["forgotten"]
        with pytest.raises(SettingError, match="finding"):
            together.finding("forgotten", "clean")
        assert ask(space, client(0), client(1), each=True, trainings=2).findings == each.findings, "a seed fixes it"


def test_clean_forgetting_without_lengths_to_borrow_is_left_out_and_said_unless_asked_for(base: Path) -> None:
    with opened(base) as space:
        shards = {space.state().plan.shard_of(client(i)): client(i) for i in range(8)}
        report = ask(space, *shards.values())
        assert set(report.identical) == {"exact", "calibrated"}
        assert "clean is left out" in report.notes[0]
        with pytest.raises(NoReference):
            ask(space, *shards.values(), methods=["clean"])


def test_with_nobody_to_look_at_beside_them_the_retained_are_left_out(base: Path) -> None:
    with opened(base) as space:
        row = space.state().plan.present(0, 0)
        report = ask(space, *row[:-1], methods=["exact"])
        assert report.retained == ()
        assert {f.data for f in report.findings} == {"forgotten"}
        with pytest.raises(SettingError, match="shards somebody is left in"):
            ask(space, *row, methods=["exact"])


def test_a_client_without_examples_is_not_asked_about(room: Path) -> None:
    task = small_task()
    empty = replace(
        task, examples={**task.examples, client(2): Examples(np.zeros((0, 3), np.float32), np.zeros(0, int))}
    )
    with make(room / "w", participants=0) as space:
        object.__setattr__(space, "_given", empty)
        space.__dict__.pop("task", None)
        report = ask(space, client(2), client(3), each=True, methods=["exact"])
        assert report.finding("forgotten", "exact").result.members == len(task.examples[client(3)])


def test_refusals(base: Path, room: Path) -> None:
    with opened(base) as space:
        with pytest.raises(SettingError, match="nobody was forgotten"):
            ask(space)
        with pytest.raises(UnknownClient):
            ask(space, "nobody")
        with pytest.raises(SettingError, match="method"):
            ask(space, client(0), methods=["magic"])
        with pytest.raises(SettingError, match="trainings"):
            ask(space, client(0), trainings=0)
        with pytest.raises(SettingError, match="count"):
            ask(space, client(0), references=3)
    with opened(copied(base, room / "w")) as space:
        space.forget([client(0)])
        with pytest.raises(AlreadyForgotten):
            ask(space, client(0))
        assert docket(space, [client(1)], ["exact"]).served is None
        space.open_stage()
        with pytest.raises(NotTrained):
            ask(space)
