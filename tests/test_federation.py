"""Federated averaging: the round, the order of replies, who is refused, and how stages hand over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.federation import (
    Absence,
    Averaging,
    Cohort,
    Cost,
    FitResult,
    FitTask,
    Leg,
    Place,
    Settings,
    average,
    handed_over,
    initial_model,
    march,
    sift,
    train,
)
from fedforget.forgetting import METHODS, Calibration
from fedforget.params import Params, mean
from fedforget.plan import Plan, Stage
from fedforget.seeds import derive
from strategies import (
    NAMES,
    SOFTMAX,
    Federation,
    Here,
    batches_of_leavers,
    calibrations,
    examples_of,
    federations,
    finished,
    trace,
)


@dataclass(frozen=True)
class Shuffled:
    """Replies in any order, some of them twice, among others that nobody asked for."""

    inner: Cohort
    seed: int

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        replies = list(self.inner.fit(tasks))
        noise = [
            stray
            for reply in replies[:2]
            for stray in (
                reply,
                replace(reply, client="nobody"),
                replace(reply, place=reply.place._replace(round=99)),
                replace(reply, place=reply.place._replace(shard=reply.place.shard + 1)),
            )
        ]
        shuffled = replies + noise
        Random(self.seed).shuffle(shuffled)
        return iter(shuffled)


@settings(max_examples=60)
@given(st.data())
def test_the_order_of_replies_changes_no_bit_nor_do_replies_sent_twice_or_never_asked_for(data: st.DataObject) -> None:
    federation = data.draw(federations())
    shuffled = Shuffled(federation.cohort, data.draw(st.integers(0, 99)))
    trained = federation.trained()
    assert federation.trained(shuffled).trace == trained.trace
    leavers = data.draw(batches_of_leavers(federation.plan))[0]
    calibration = replace(data.draw(calibrations), length=0.5)
    for method in METHODS:
        work = trained.work(method, *leavers)
        straight = trained.rebuilt(method, work, calibration)
        assert trace(trained.rebuilt(method, work, calibration, shuffled)) == trace(straight)


@settings(max_examples=60)
@given(federations(max_stages=2))
def test_a_round_is_the_mean_of_what_its_cohort_sends_from_the_model_before(federation: Federation) -> None:
    past = federation.trained().past
    for place, round in past.by_place.items():
        assert round.roster == federation.plan.cohort(*place)
        if place.round:
            assert round.start == past.by_place[place._replace(round=place.round - 1)].model
        for upload in round.uploads:
            mine = federation.examples[upload.client]
            seed = derive(federation.plan.seed, "fit", *place, upload.client)
            again = federation.learner.fit(round.start, mine, epochs=federation.settings.epochs, seed=seed)
            assert (upload.params, upload.examples) == (again, len(mine))
        weights = [u.examples if federation.settings.weighted else 1 for u in round.uploads]
        expected = np.average([u.params.vector.astype(np.float64) for u in round.uploads], axis=0, weights=weights)
        assert round.model.vector == pytest.approx(expected, rel=1e-6, abs=1e-7)
        assert round.cost.client_epochs == federation.settings.epochs * len(round.uploads)


@settings(max_examples=40)
@given(federations(), st.data())
def test_a_shard_is_blind_to_the_others_until_they_are_merged(federation: Federation, data: st.DataObject) -> None:
    plan = replace(federation.plan, stages=tuple(replace(s, handover="lineage") for s in federation.plan.stages))
    federation = replace(federation, plan=plan)
    client = data.draw(st.sampled_from(plan.clients))
    other = federation.with_examples(client, examples_of("other", 7)).trained()
    for place, bits in federation.trained().trace.items():
        assert bits == other.trace[place] or place.shard == plan.shard_of(client)


@settings(max_examples=40)
@given(federations(), st.data())
def test_training_may_stop_after_any_round_and_go_on(federation: Federation, data: st.DataObject) -> None:
    stage = data.draw(st.integers(0, len(federation.plan.stages) - 1))
    until = data.draw(st.integers(0, federation.plan.stages[stage].rounds))
    stopped = federation
    for earlier in range(stage):
        stopped = stopped.train(earlier, federation.plan.stages[earlier].rounds)
    assert finished(stopped.train(stage, until)).trace == federation.trained().trace


# --- who is in a round and who is not -----------------------------------------------------------------------


def small_plan() -> Plan:
    return Plan.of("abc", shards=1, rounds=1)


def reply(task: FitTask, params: Params | None = None, examples: int = 3, seconds: float = 0.0) -> FitResult:
    return FitResult(task.place, task.client, task.params if params is None else params, examples, seconds)


START = Params.of({"w": np.zeros(2, np.float32), "seen": np.array(1)})


@pytest.mark.parametrize(
    ("params", "examples", "why"),
    [
        (Params.of({"w": np.array([np.nan, 0], np.float32), "seen": np.array(1)}), 3, "it holds NaN or infinity"),
        (Params.of({"w": np.array([np.inf, 0], np.float32), "seen": np.array(1)}), 3, "it holds NaN or infinity"),
        (Params.of({"v": np.zeros(2, np.float32), "seen": np.array(1)}), 3, "its tensors are not the model's"),
        (Params.of({"w": np.zeros((2, 1), np.float32), "seen": np.array(1)}), 3, "its tensors are not the model's"),
        (Params.of({"w": np.zeros(2, np.float32), "seen": np.float32(1)}), 3, "its tensors are not the model's"),
        (START, 0, "it claims 0 examples"),
        (START, -5, "it claims -5 examples"),
    ],
)
def test_an_upload_no_model_can_be_made_of_is_refused_by_name_and_the_round_goes_on(
    params: Params, examples: int, why: str
) -> None:
    recipe, place = Averaging(small_plan(), Settings(epochs=2)), Place(0, 0, 0)
    a, b, c = recipe.ask(place, START)
    moved = Params.of({"w": np.ones(2, np.float32), "seen": np.array(3)})
    round = recipe.fold(place, START, [reply(c, moved), reply(b, params, examples), reply(a, moved)])
    assert round.absent == (Absence("b", f"refused: {why}"),)
    assert not round.absent[0].lost
    assert (round.roster, round.model) == (("a", "c"), moved)
    assert round.cost.client_epochs == 6  # it did train


def test_a_client_that_says_nothing_is_lost_by_name() -> None:
    recipe, place = Averaging(small_plan(), Settings()), Place(0, 0, 0)
    a, _, c = recipe.ask(place, START)
    round = recipe.fold(place, START, [reply(c), reply(a)])
    assert round.absent == (Absence("b", "lost"),)
    assert round.absent[0].lost
    assert round.cost.client_epochs == 20


def test_with_nobody_in_it_a_round_leaves_the_model_as_it_was() -> None:
    recipe, place = Averaging(small_plan(), Settings()), Place(0, 0, 0)
    round = recipe.fold(place, START, [])
    assert (round.model, round.uploads, round.cost) == (START, (), Cost())
    assert average(START, (), weighted=True) is START


def test_of_two_replies_of_one_client_the_first_counts() -> None:
    tasks = Averaging(small_plan(), Settings()).ask(Place(0, 0, 0), START)
    (a, *_), _, _ = sift(tasks, START, [reply(tasks[0], examples=1), reply(tasks[0], examples=2)])
    assert a.examples == 1


def test_uploads_are_in_the_order_of_names_however_they_were_asked_for() -> None:
    a, b, c = Averaging(small_plan(), Settings()).ask(Place(0, 0, 0), START)
    uploads, absent, _ = sift([c, a, b], START, [reply(c), reply(a)])
    assert [u.client for u in uploads] == ["a", "c"]
    assert [missing.client for missing in absent] == ["b"]


def test_a_cohort_that_holds_only_refused_clients_goes_on_round_after_round() -> None:
    bad = {c: examples_of(c, 3, scale=1e38) for c in "abcd"}
    federation = Federation(Plan.of("abcd", shards=2, rounds=2), bad).trained()
    assert all(r.model == r.start and len(r.absent) == 2 for r in federation.past.by_place.values())


# --- settings, seeds, costs, places -------------------------------------------------------------------------


def test_every_task_has_a_seed_of_its_own_that_depends_on_its_place_and_client_alone() -> None:
    plan = Plan.of(NAMES, shards=2, rounds=3)
    seeds = {}
    for shard in (0, 1):
        for round in range(3):
            for task in Averaging(plan, Settings()).ask(Place(0, shard, round), START):
                seeds[task.place, task.client] = task.seed
    assert len(set(seeds.values())) == len(seeds) == 33
    fewer = Averaging(plan.without({NAMES[0]}), Settings())
    for task in fewer.ask(Place(0, plan.shard_of(NAMES[1]), 2), START):
        assert task.seed == seeds[task.place, task.client]


def test_epochs_and_solver_reach_the_clients() -> None:
    (task, *_) = Averaging(small_plan(), Settings(epochs=7, solver="fisher")).ask(Place(0, 0, 0), START)
    assert (task.epochs, task.solver, task.params) == (7, "fisher", START)


def test_no_epochs_at_all_is_no_training() -> None:
    with pytest.raises(SettingError, match="epochs is 0"):
        Settings(epochs=0)


def test_costs_add_up_one_after_another_and_side_by_side() -> None:
    tasks = Averaging(small_plan(), Settings(epochs=2)).ask(Place(0, 0, 0), START)
    _, _, cost = sift(tasks, START, [reply(t, seconds=s) for t, s in zip(tasks, (1.0, 3.0, 2.0), strict=True)])
    assert cost == Cost(client_epochs=6, seconds=6.0, slowest=3.0)
    assert cost + cost == Cost(12, 12.0, 6.0)


def test_a_place_reads_as_one() -> None:
    assert str(Place(1, 2, 3)) == "stage 1, shard 2, round 3"
    assert Place(1, 2, 3).cell == (1, 2)


# --- the march ----------------------------------------------------------------------------------------------


def test_shards_may_march_different_stretches_and_all_of_a_round_are_asked_at_once() -> None:
    federation = Federation.of(6, shards=3, rounds=4)
    asked: list[set[Place]] = []

    @dataclass(frozen=True)
    class Counted:
        inner: Here

        def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
            asked.append({task.place for task in tasks})
            return self.inner.fit(tasks)

    model = federation.past.checkpoint(Place(0, 0, 0))
    legs = {0: Leg(2, model, 4), 2: Leg(1, model, 3), 1: Leg(4, model, 4)}
    rounds = list(march(Counted(federation.cohort), 0, legs, Averaging(federation.plan, federation.settings)))
    assert [r.place for r in rounds] == [Place(0, 2, 1), Place(0, 0, 2), Place(0, 2, 2), Place(0, 0, 3)]
    assert asked == [{Place(0, 2, 1)}, {Place(0, 0, 2), Place(0, 2, 2)}, {Place(0, 0, 3)}]


def test_with_no_leg_nobody_marches() -> None:
    federation = Federation.of(2, shards=1, rounds=1)
    assert list(march(federation.cohort, 0, {}, Averaging(federation.plan, federation.settings))) == []


def test_one_model_for_all_shards_starts_all_that_have_clients() -> None:
    plan = Plan.of("abc", shards=3, rounds=2)
    empty = plan.without({plan.present(0, 1)[0]})
    federation = Federation(empty, {c: examples_of(c, 4) for c in "abc"})
    initial = initial_model(SOFTMAX, empty, 0)
    rounds = list(train(federation.cohort, empty, initial, federation.settings))
    assert trace(rounds) == federation.trained().trace
    assert {r.place.shard for r in rounds} == {0, 2}


# --- stages -------------------------------------------------------------------------------------------------


def two_stages(handover: str) -> Federation:
    plan = Plan.of("abcdef", shards=3, rounds=2)
    gone = plan.present(0, 2)
    plan = replace(plan, members=tuple(m for m in plan.members if m.client not in gone))  # shard 2 never lived
    plan = plan.next_stage(Stage(1, handover), join={"g": 6, "h": 7, "i": 8})
    return Federation(plan, {c: examples_of(c, 4) for c in "abcdefghi"}).trained()


def test_by_lineage_a_shard_goes_on_from_itself_and_one_that_never_lived_from_the_beginning() -> None:
    past = two_stages("lineage").past
    assert [past.checkpoint(Place(1, s, 0)) for s in (0, 1)] == [past.final((0, s)) for s in (0, 1)]
    assert past.checkpoint(Place(1, 2, 0)) == past.checkpoint(Place(0, 0, 0))


def test_afresh_all_begin_from_a_new_model_the_same_for_all() -> None:
    federation = two_stages("fresh")
    starts = {federation.past.checkpoint(Place(1, s, 0)) for s in range(3)}
    assert starts == {initial_model(SOFTMAX, federation.plan, 1)} != {initial_model(SOFTMAX, federation.plan, 0)}


def test_merged_all_begin_from_the_mean_of_the_shards_that_lived() -> None:
    past = two_stages("merged").past
    merged = mean([past.final((0, 0)), past.final((0, 1))])
    assert {past.checkpoint(Place(1, s, 0)) for s in range(3)} == {merged}


def test_with_nobody_left_to_hand_over_a_stage_begins_where_its_last_fresh_one_did() -> None:
    plan = Plan.of("ab", shards=2, rounds=1).next_stage(Stage(1, "fresh")).next_stage(Stage(1, "merged"))
    nobody = plan.without({"a", "b"})
    initial = initial_model(SOFTMAX, nobody, 2)
    assert initial == initial_model(SOFTMAX, nobody, 1) != initial_model(SOFTMAX, nobody, 0)
    assert handed_over(nobody, (2, 0), {}.__getitem__, initial) == initial


def test_forgetting_leaves_the_settings_of_training_as_they_were() -> None:
    """The same federation, its uploads weighted evenly: another mean, the same laws."""
    federation = Federation.of(4, shards=1, rounds=2)
    even = replace(federation, settings=replace(federation.settings, weighted=False)).trained()
    assert even.trace != federation.trace
    assert even.forget("exact", "b").trace == even.without("b").trained().trace
    again = even.forget("calibrated", "b", calibration=Calibration(ratio=1))
    assert again.past.final((0, 0)) != even.past.final((0, 0))
