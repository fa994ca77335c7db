"""Training: to its end, in any number of pieces, whatever clients send."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import (
    EVERY_KEEPING,
    FEATURES,
    assert_in_order,
    client,
    every_digest,
    make,
    opened,
    small_settings,
    small_task,
)
from worlds import world_without

from fedforget.examples import Examples
from fedforget.forgetting import Calibration
from fedforget.learners.descent import Descent
from fedforget.learners.linear import Softmax
from fedforget.workspace import Task, Workspace


class Interrupted(Exception):
    """Ctrl-C, as it were."""


@dataclass
class Stops:
    """A progress listener that ends the run after so many reports."""

    after: int

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.after == 0:
            raise Interrupted
        self.after -= 1


def given(path: Path, task: Task, **changes: Any) -> Workspace:
    return Workspace.init(path, replace(small_settings(), **changes), task=task)


def with_examples(task: Task, name: str, examples: Examples) -> Task:
    return replace(task, examples={**task.examples, name: examples})


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_a_workspace_adds_nothing_to_training_but_memory(room: Path, layout: Any, keep: Any) -> None:
    with make(room / "w", layout, keep) as space:
        report = space.train()
        assert every_digest(space) == world_without(space)
        assert report.rounds == 6
        assert report.resumed_at == 0
        assert report.client_epochs == 3 * 2 * 2 * 2
        assert report.absent == ()
        served = {str(s.shard): s.digest for s in space.status().shards}
        assert report.digests == served
        assert_in_order(space)


def test_training_what_is_trained_does_nothing(room: Path) -> None:
    with make(room / "w") as space:
        first = space.train()
        again = space.train()
        assert (again.rounds, again.resumed_at, again.client_epochs) == (0, 6, 0)
        assert again.digests == first.digests


def test_progress_counts_shard_rounds_up_to_all_of_them(room: Path) -> None:
    with make(room / "w") as space:
        told: list[tuple[str, int, int]] = []
        space.train(lambda *now: told.append(now))
        assert told == [("training", done, 6) for done in (0, 2, 4, 6)]


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_training_in_pieces_ends_where_training_in_one_go_does(room: Path, layout: Any, keep: Any) -> None:
    with make(room / "w", layout, keep, rounds=4) as space:
        rounds = []
        for after in (0, 1, 2):
            with pytest.raises(Interrupted):
                space.train(Stops(after))
            rounds.append(space.status().shards[0].rounds)
        assert rounds == [0, 1, 3]
        told: list[tuple[str, int, int]] = []
        report = space.train(lambda *now: told.append(now))
        assert report.resumed_at == 6
        assert told[0] == ("training", 6, 8)
        assert every_digest(space) == world_without(space)
        assert_in_order(space)


def test_another_process_goes_on_where_the_last_one_stopped(room: Path) -> None:
    with make(room / "w") as space, pytest.raises(Interrupted):
        space.train(Stops(2))
    with opened(room / "w") as space:
        report = space.train()
        assert (report.rounds, report.resumed_at) == (2, 4)
        assert every_digest(space) == world_without(space)


def test_all_clients_of_a_shard_every_round(room: Path) -> None:
    with make(room / "w", participants=0) as space:
        report = space.train()
        assert report.client_epochs == 3 * 8 * 2
        assert every_digest(space) == world_without(space)


def test_a_cohort_drawn_once_a_stage_is_the_same_in_every_round(room: Path) -> None:
    with make(room / "w", draw="stage") as space:
        space.train()
        rosters = {(r.place.shard, r.roster) for r in space.state().rows.values()}
        assert len(rosters) == 2


def test_an_update_with_nan_in_it_is_refused_and_named_and_the_round_goes_on(room: Path) -> None:
    task = small_task()
    bad = task.examples[client(3)]
    task = with_examples(task, client(3), Examples(np.full_like(bad.x, np.nan), bad.y))
    with given(room / "w", task, participants=0) as space:
        report = space.train()
        assert {who for who, _, _ in report.absent} == {client(3)}
        assert len(report.absent) == 3
        (_, where, why) = report.absent[0]
        assert where.startswith("stage 0, shard ")
        assert "NaN" in why
        assert client(3) not in {c for r in space.state().rows.values() for c in r.roster}
        assert every_digest(space) == world_without(space)
        assert_in_order(space)


def test_whoever_sends_nan_does_not_change_the_world_it_is_forgotten_from(room: Path) -> None:
    task = small_task()
    bad = task.examples[client(3)]
    task = with_examples(task, client(3), Examples(np.full_like(bad.x, np.inf), bad.y))
    with given(room / "w", task, participants=0) as space:
        space.train()
        world = world_without(space, client(3))
        report = space.forget([client(3)])
        assert report.guarantee.grade == "X1"
        assert every_digest(space) == world
        assert_in_order(space)


def test_a_client_without_examples_is_lost_and_the_round_goes_on(room: Path) -> None:
    task = small_task()
    none = Examples(np.zeros((0, FEATURES), np.float32), np.zeros(0, np.int64))
    with given(room / "w", with_examples(task, client(5), none), participants=0) as space:
        report = space.train()
        assert {(who, why) for who, _, why in report.absent} == {(client(5), "lost")}
        assert space.verify(never_joined=True).passed


def test_a_round_nobody_answers_leaves_the_model_where_it_was(room: Path) -> None:
    task = small_task()
    none = Examples(np.zeros((0, FEATURES), np.float32), np.zeros(0, np.int64))
    empty = replace(task, examples=dict.fromkeys(task.examples, none))
    with given(room / "w", empty) as space:
        report = space.train()
        assert report.client_epochs == 0
        assert len(set(report.digests.values())) == 1
        forgot = space.forget([client(0)])
        assert forgot.guarantee.grade == "X2"
        assert any("lost" in c for c in forgot.guarantee.conditions)
        assert_in_order(space)


@pytest.mark.parametrize("method", ["exact", "clean", "calibrated"])
def test_updates_of_length_zero_are_no_obstacle(room: Path, method: str) -> None:
    task = small_task()
    still = replace(task, learner=Softmax(FEATURES, 3, Descent(lr=1e-50, batch=4)))
    with given(room / "w", still) as space:
        before = space.train().digests
        assert len(set(before.values())) == 1
        space.forget([client(0)], method)
        assert {s.digest for s in space.status().shards} == set(before.values())
        assert_in_order(space)


def test_an_update_of_length_zero_that_should_get_a_length_is_left_out_and_named(room: Path) -> None:
    task = small_task()
    still = replace(task, learner=Softmax(FEATURES, 3, Descent(lr=1e-50, batch=4)))
    with given(room / "w", still) as space:
        before = space.train().digests
        space.forget([client(0)], "clean", Calibration(length=0.5))
        absent = {a.why for r in space.state().rows.values() if r.kind == "clean" for a in r.absent}
        assert absent == {"refused: an update of length zero has no direction"}
        assert {s.digest for s in space.status().shards} == set(before.values())
        assert_in_order(space)


def test_a_federation_that_diverges_says_so_and_keeps_its_last_good_model(room: Path) -> None:
    task = small_task()
    wild = replace(task, learner=Softmax(FEATURES, 3, Descent(lr=3e38, momentum=0.99, batch=1)))
    with given(room / "w", wild, participants=0) as space:
        report = space.train()
        assert report.absent
        assert all("NaN" in why for _, _, why in report.absent)
        assert all(model.is_finite for model in space.state().served().values())
        assert all(np.isfinite(score.test_loss) for score in space.evaluate().scores)
        assert_in_order(space)
