"""The table of methods: what each would cost, what it has earned, and what it says about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.errors import NoReference, SettingError, UnknownClient
from fedforget.federation import FitResult, FitTask, Place, Settings
from fedforget.forgetting import METHODS, Calibration, assess, estimate, method_named, standing
from fedforget.forgetting.methods import merged_taints
from fedforget.plan import Plan, Stage
from strategies import (
    NAMES,
    Federation,
    Here,
    batches_of_leavers,
    calibrations,
    examples_of,
    federations,
    life,
    trained_until,
    wishes,
)


def test_every_row_is_found_by_its_name_and_no_other_is() -> None:
    assert all(method_named(name).name == name for name in METHODS)
    with pytest.raises(SettingError, match="one of exact, clean, calibrated, SE"):
        method_named("magic")


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_client_is_refused_by_name_whatever_the_method(method: str) -> None:
    with pytest.raises(UnknownClient) as refusal:
        Federation.of(4, shards=2, rounds=1).work(method, "a", "nobody")
    assert refusal.value.clients == ("nobody",)


@settings(max_examples=100)
@given(st.data())
def test_the_estimate_is_the_bill_when_nobody_is_lost(data: st.DataObject) -> None:
    """Also over a past that other methods have been at."""
    federation = data.draw(federations())
    asked = data.draw(wishes(federation.plan, ["clean", "calibrated", "exact"]))
    *_, chapter = life(federation, asked)
    now = chapter.after
    if not now.plan.clients:
        return
    leavers = data.draw(batches_of_leavers(now.plan))[0]
    calibration = data.draw(calibrations)
    for name, method in METHODS.items():
        work = now.work(name, *leavers)
        try:
            foreseen = estimate(method, work, now.settings, calibration)
        except NoReference:
            with pytest.raises(NoReference):
                now.rebuilt(name, work, calibration)
            continue
        rounds = now.rebuilt(name, work, calibration)
        assert foreseen.rounds == len(rounds)
        assert foreseen.client_epochs == sum(r.cost.client_epochs for r in rounds)
        assert foreseen.taints == work.taints
        assert foreseen.guarantee == assess(method, work, rounds, calibration)


@settings(max_examples=60)
@given(st.data())
def test_a_batch_costs_one_rebuild_a_shard_and_never_more_than_one_after_another(data: st.DataObject) -> None:
    federation = data.draw(federations(clients=st.integers(4, 9))).trained()
    one, two = data.draw(st.permutations(federation.plan.clients))[:2]
    for method in ("exact", "calibrated"):
        together = federation.rebuilt(method, federation.work(method, one, two))
        assert len({r.place for r in together}) == len(together)
        after = federation.forget(method, one)
        apart = federation.rebuilt(method, federation.work(method, one)) + after.rebuilt(
            method, after.work(method, two)
        )
        assert len(together) <= len(apart)
        if method == "exact":
            assert epochs(together) <= epochs(apart)


def epochs(rounds) -> int:
    return sum(r.cost.client_epochs for r in rounds)


def test_two_of_one_shard_at_once_cost_what_one_of_them_costs() -> None:
    federation = Federation.of(8, shards=2, rounds=4)
    one, two, *rest = federation.plan.present(0, 0)
    both = federation.rebuilt("exact", federation.work("exact", one, two))
    assert epochs(both) == 4 * 2 * len(rest)
    assert {r.place.shard for r in both} == {0}


@pytest.mark.parametrize("method", METHODS)
def test_whoever_is_forgotten_is_in_no_roster_any_more_nor_who_was_before(method: str) -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    a, b = federation.plan.present(0, 0)[0], federation.plan.present(0, 1)[0]
    if METHODS[method].grade == "X3":
        a, b = federation.plan.present(0, 0)[:2]
    after = federation.forget(method, a).forget(method, b)
    assert not {a, b} & {c for place in after.past.by_place for c in after.past.roster(place)}
    assert not {a, b} & set(after.plan.clients)


@settings(max_examples=60)
@given(st.data())
def test_shards_that_are_not_touched_keep_every_bit(data: st.DataObject) -> None:
    federation = data.draw(federations()).trained()
    leavers = data.draw(batches_of_leavers(federation.plan))[0]
    for method in ("exact", "clean", "calibrated"):
        touched = federation.work(method, *leavers).taints
        after = federation.forget(method, *leavers, calibration=Calibration(length=0.5))
        kept = {p: bits for p, bits in federation.trace.items() if p.cell not in touched}
        assert kept.items() <= after.trace.items()


# --- classes ----------------------------------------------------------------------------------------------


def test_the_class_is_the_methods_own() -> None:
    federation = Federation.of(6, shards=2, rounds=3)
    grades = {method: federation.grade(method, "b") for method in METHODS}
    assert {method: guarantee.grade for method, guarantee in grades.items()} == {
        "exact": "X1",
        "clean": "X3",
        "calibrated": "A",
        "SE": "A",
        "SE-uncoded": "A",
        "FE": "A",
        "FR": "X1",
        "RR": "X3",
    }
    assert not any(guarantee.conditions for guarantee in grades.values())


@pytest.mark.parametrize("method", ["exact", "clean", "calibrated"])
def test_who_was_never_drawn_costs_nothing_and_is_x0(method: str) -> None:
    federation = Federation.of(9, shards=1, rounds=2, participants=2)
    idle = next(c for c in federation.plan.clients if federation.plan.first_round(0, 0, {c}) is None)
    work = federation.work(method, idle)
    assert federation.rebuilt(method, work) == ()
    assert federation.grade(method, idle).grade == "X0"
    assert federation.forget(method, idle).trace == federation.trace


def test_so_is_who_was_not_drawn_yet_when_training_stopped() -> None:
    plans = (Plan.of("abcdef", shards=1, rounds=4, participants=1, seed=seed) for seed in range(50))
    plan = next(p for p in plans if p.first_round(0, 0, "a") == 3)
    federation = Federation(plan, {c: examples_of(c, 4) for c in plan.clients}).train(0, 3)
    assert federation.grade("exact", "a").grade == "X0"
    trained_on = federation.forget("exact", "a").train(0, 4)
    assert trained_on.trace == federation.without("a").trained().trace


@dataclass(frozen=True)
class Losing:
    """A cohort that does not hear from one client."""

    inner: Here
    lost: str

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return (reply for reply in self.inner.fit(tasks) if reply.client != self.lost)


def test_a_client_lost_in_the_replay_makes_it_x2_and_is_listed() -> None:
    federation = Federation.of(4, shards=1, rounds=2)
    work = federation.work("exact", "a")
    rounds = federation.rebuilt("exact", work, None, Losing(federation.cohort, "c"))
    guarantee = assess(method_named("exact"), work, rounds)
    assert guarantee.grade == "X2"
    assert guarantee.conditions == tuple(f"c was lost in stage 0, shard 0, round {r} of the replay" for r in (0, 1))
    assert [r.roster for r in rounds] == [("b", "d"), ("b", "d")]


def test_so_does_one_that_had_been_lost_then_but_not_the_leaver_itself() -> None:
    federation = Federation.of(4, shards=1, rounds=2)
    without_c = federation.trained(Losing(federation.cohort, "c"))
    guarantee = without_c.grade("exact", "a")
    assert (guarantee.grade, len(guarantee.conditions)) == ("X2", 2)
    assert guarantee.conditions[0] == "c had been lost in stage 0, shard 0, round 0"
    assert without_c.grade("exact", "c").grade == "X1"


def test_so_does_what_the_engine_knows_to_have_changed() -> None:
    federation = Federation.of(4, shards=1, rounds=2)
    work = federation.work("exact", "a")
    guarantee = assess(method_named("exact"), work, federation.rebuilt("exact", work), conditions=("another BLAS",))
    assert (guarantee.grade, guarantee.conditions) == ("X2", ("another BLAS",))


def test_a_client_refused_for_what_it_sent_is_no_changed_condition() -> None:
    federation = Federation.of(5, shards=1, rounds=2)
    bad = federation.with_examples("c", examples_of("c", 4, scale=1e38)).trained()
    assert [a.client for a in bad.past.by_place[Place(0, 0, 0)].absent] == ["c"]
    assert bad.grade("exact", "a").grade == "X1"


def test_a_reason_names_what_was_restarted_and_not_more_than_a_line_of_it() -> None:
    plan = Plan.of(NAMES[:8], shards=4, rounds=1).next_stage(Stage(1, "merged"))
    federation = Federation(plan, {c: examples_of(c, 3) for c in NAMES}).trained()
    leaver = plan.present(0, 2)[0]
    reason = federation.grade("exact", leaver).reason
    assert reason.startswith("restarted stage 0 shard 2 from round 0, stage 1 shard 0 from round 0, ")
    assert "and 2 more" in reason
    assert "a merged hand-over carried the leavers into shard 0, shard 1, shard 3" in reason


def test_what_a_merged_hand_over_did_not_taint_is_not_said_to_be_tainted_by_it() -> None:
    """The leaver came after the hand-over; or it is another shard's borrowed lengths that spread it."""
    plan = Plan.of(NAMES[:4], shards=2, rounds=2).next_stage(Stage(2, "merged"), join={NAMES[4]: 4, NAMES[5]: 5})
    federation = Federation(plan, {c: examples_of(c, 3) for c in NAMES}).trained()
    assert merged_taints(federation.work("FR", NAMES[4])) == ""
    assert merged_taints(federation.work("FR", NAMES[0])) == f"shard {1 - plan.shard_of(NAMES[0])}"
    federation = Federation.of(9, shards=3, rounds=3)
    borrowed = federation.forget("clean", federation.plan.present(0, 0)[0])
    work = borrowed.work("exact", federation.plan.present(0, 1)[0])
    assert {s for _, s in work.taints} == {0, 1}
    assert merged_taints(work) == ""


def test_clean_says_whose_lengths_it_took() -> None:
    federation = Federation.of(6, shards=2, rounds=3)
    leaver = federation.plan.present(0, 1)[0]
    assert "step lengths from shard 1 by shard 0" in federation.grade("clean", leaver).reason


# --- retraining from scratch ------------------------------------------------------------------------------


def test_retraining_from_scratch_makes_everything_again_sharded_or_not() -> None:
    for shards in (1, 2):
        federation = Federation.of(6, shards=shards, rounds=2)
        assert federation.forget("FR", "b").trace == federation.without("b").trained().trace
        assert len(federation.rebuilt("FR", federation.work("FR", "b"))) == 2 * shards


def test_rapid_retraining_is_the_same_by_another_solver_and_says_so() -> None:
    federation = Federation.of(6, shards=1, rounds=2)
    after = federation.forget("RR", "b")
    fisher = replace(federation.without("b"), settings=replace(federation.settings, solver="fisher")).trained()
    assert after.trace == fisher.trace
    assert {r.kind for r in after.past.by_place.values()} == {"retrained"}
    assert standing(after.plan, after.past) == {0: "X3"}
    assert "(fisher)" in federation.grade("RR", "b").reason
    assert {r.kind for r in fisher.forget("RR", "c").past.by_place.values()} == {"plain"}


def test_the_solver_hook_reaches_the_learner() -> None:
    federation = Federation.of(4, shards=1, rounds=1)
    federation = replace(federation, settings=Settings(1, solver="hutchinson"))
    with pytest.raises(SettingError, match="solver is 'hutchinson'"):
        federation.trained()


# --- what a lineage is worth ------------------------------------------------------------------------------


def test_a_shard_stands_as_its_worst_round_and_as_what_was_handed_over_to_it() -> None:
    plan = Plan.of(NAMES[:9], shards=3, rounds=3).next_stage(Stage(1, "merged"))
    federation = trained_until(Federation(plan, {c: examples_of(c, 3) for c in NAMES}), 0, 3)
    a, b = plan.present(0, 0)[0], plan.present(0, 1)[0]
    assert standing(plan, federation.past) == {0: "X1", 1: "X1", 2: "X1"}
    clean = federation.forget("clean", a)
    assert standing(clean.plan, clean.past) == {0: "X3", 1: "X1", 2: "X1"}
    both = federation.forget("calibrated", b).forget("clean", a)
    assert standing(both.plan, both.past) == {0: "X3", 1: "A", 2: "X1"}
    merged = both.train(1, 1)
    assert standing(merged.plan, merged.past) == {0: "A", 1: "A", 2: "A"}


def test_a_shard_of_one_prepared_round_is_not_the_run_the_leaver_never_joined() -> None:
    """Nobody stepped in for the leaver there: its influence is gone, its place is not."""
    plans = (Plan.of("abcdef", shards=1, rounds=3, participants=2, seed=seed) for seed in range(100))
    plan = next(p for p in plans if p.first_round(0, 0, "a") == 2)
    federation = Federation(plan, {c: examples_of(c, 4) for c in plan.clients}).trained()
    after = federation.forget("calibrated", "a")
    assert [after.past.kind(Place(0, 0, r)) for r in range(3)] == ["plain", "plain", "prepared"]
    assert after.trace != federation.without("a").trained().trace
    assert standing(after.plan, after.past) == {0: "X3"}
