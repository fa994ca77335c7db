"""Compare: how far from the retrained model, of what is served and of what forgetting would come to."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import client, copied, make, opened, small_settings, small_task

from fedforget.engines.local import LocalCohort
from fedforget.errors import NoReference, SettingError
from fedforget.federation import Cohort
from fedforget.workspace import FederationSettings, Task, Workspace
from fedforget.workspace.audit import BEFORE, SERVED
from fedforget.workspace.compare import AGAIN, NEVER, compare_report
from fedforget.workspace.progress import silent


@pytest.fixture(scope="module")
def base(shared_room: Path) -> Path:
    with make(shared_room / "base", participants=0) as space:
        space.train()
    return shared_room / "base"


def ask(space: Workspace, *clients: str, **more: Any):  # type: ignore[no-untyped-def]
    return compare_report(space, clients, **{"relearn": 3, "progress": silent, **more})


def test_what_was_forgotten_exactly_is_the_retrained_model(base: Path, room: Path) -> None:
    with opened(copied(base, room / "w")) as space:
        space.forget([client(0)])
        report = ask(space)
        assert report.served
        assert [row.world for row in report.rows] == [BEFORE, NEVER, SERVED, AGAIN]
        served, never, before, again = (report.row(w) for w in (SERVED, NEVER, BEFORE, AGAIN))
        assert served.identical
        assert (served.relative, served.divergence, served.agreement) == (0, 0, 1)
        assert served.relearn == never.relearn
        assert not before.identical
        assert before.relearn == 0, "the goal is how well it was fitted before"
        assert before.relative > 0
        assert again.relative > 0
        assert not again.identical
        assert never.client_epochs == 3 * 3 * 2
        with pytest.raises(SettingError, match="world"):
            report.row("elsewhere")


def test_what_forgetting_would_come_to(base: Path) -> None:
    with opened(base) as space:
        row = space.state().plan.present(0, 0)
        report = ask(space, *row[:2], relearn=0)
        assert not report.served
        assert [r.world for r in report.rows] == [BEFORE, NEVER, "exact", "clean", "calibrated", AGAIN]
        assert report.row("exact").identical
        assert report.row("calibrated").relative > 0
        assert report.forgotten == row[:2]
        assert all(r.relearn is None for r in report.rows)
        assert report.backdoor == ()


def test_a_goal_not_met_within_the_limit_is_no_number(base: Path) -> None:
    with opened(base) as space:
        found = {limit: ask(space, client(0), methods=["exact"], relearn=limit).row(NEVER).relearn for limit in (1, 30)}
        assert found[30] is None or found[30] > 1
        assert found[1] is None


def test_a_trigger_only_the_leavers_had_goes_with_them(room: Path) -> None:
    """Features enough to hold a trigger; the engine over planted data is ended again."""
    closed: list[str] = []

    class Engine(LocalCohort):
        def close(self) -> None:
            closed.append("engine")

    def engine(task: Task, settings: FederationSettings, workers: int | None) -> Cohort:
        return Engine(task.learner, task.examples)

    make(room / "w", participants=0).close()
    for maker in (engine, None):
        given: Mapping[str, Any] = {"make_cohort": maker} if maker else {}
        with Workspace.open(room / "w", task=small_task(features=9), **given) as space:
            report = ask(space, client(0), client(2), backdoor=True, relearn=0)
            assert {b.world for b in report.backdoor} >= {BEFORE, NEVER, "exact", "calibrated"}
            never, exact = (next(b for b in report.backdoor if b.world == w) for w in (NEVER, "exact"))
            assert (never.shard, never.served) == (exact.shard, exact.served)
            assert all(0 <= b.shard <= 1 and 0 <= b.served <= 1 for b in report.backdoor)
    assert closed == ["engine", "engine"]


def test_a_backdoor_in_what_is_served_is_tried_by_every_method(room: Path) -> None:
    with Workspace.init(room / "w", small_settings(participants=0), task=small_task(features=9)) as space:
        space.train()
        space.forget([client(0)])
        report = ask(space, backdoor=True, relearn=0)
        assert [b.world for b in report.backdoor] == [BEFORE, NEVER, "exact", "clean", "calibrated"]


def test_clean_without_lengths_to_borrow_is_left_out_unless_asked_for(base: Path) -> None:
    with opened(base) as space:
        shards = {space.state().plan.shard_of(client(i)): client(i) for i in range(8)}
        report = ask(space, *shards.values(), relearn=0)
        assert "clean is left out" in report.notes[0]
        with pytest.raises(NoReference):
            ask(space, *shards.values(), methods=["clean"])


def test_shards_that_ended_are_passed_over_but_one_must_be_left(base: Path) -> None:
    with opened(base) as space:
        plan = space.state().plan
        report = ask(space, *plan.present(0, 0), plan.present(0, 1)[0], methods=["exact"], relearn=0)
        assert report.row("exact").identical
        with pytest.raises(SettingError, match="somebody is left in a shard of theirs"):
            ask(space, *plan.present(0, 0), methods=["exact"])


def test_with_nobody_beside_them_there_are_no_retained(base: Path) -> None:
    with opened(base) as space:
        report = ask(space, *space.state().plan.present(0, 0)[:-1], methods=["exact"], relearn=0)
        assert report.retained == ()
        assert report.row("exact").retained_accuracy is None


def test_refusals(base: Path) -> None:
    with opened(base) as space:
        with pytest.raises(SettingError, match="relearn"):
            ask(space, client(0), relearn=-1)
        text = replace(space.task, dataset=replace(space.task.dataset, kind="text"))
        space.__dict__["task"] = text
        with pytest.raises(SettingError, match="pictures"):
            ask(space, client(0), backdoor=True)
