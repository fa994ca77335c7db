"""Rebuilding: what is made again and from where, and going on after an interruption."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.errors import NoReference
from fedforget.federation import Place
from fedforget.forgetting import Calibration
from fedforget.forgetting.rebuild import touched, touched_back_to_plain, with_ancestors
from fedforget.plan import Change, Plan, Stage, Taint
from strategies import NAMES, Federation, batches_of_leavers, examples_of, federations, trace


@settings(max_examples=60)
@given(st.data())
def test_an_interrupted_rebuild_goes_on_from_any_round_to_the_same_end(data: st.DataObject) -> None:
    federation = data.draw(federations()).trained()
    leavers = data.draw(batches_of_leavers(federation.plan))[0]
    method = data.draw(st.sampled_from(["exact", "clean", "calibrated", "FR", "RR"]))
    work = federation.work(method, *leavers)
    calibration = Calibration(interval=data.draw(st.sampled_from([1, 2])))
    try:
        rounds = federation.rebuilt(method, work, calibration)
    except NoReference:
        calibration = replace(calibration, length=0.5)
        rounds = federation.rebuilt(method, work, calibration)
    for at in range(len(rounds) + 1):
        done = {r.place.cell: (r.place.round + 1, r.model) for r in rounds[:at]}
        rest = federation.rebuilt(method, replace(work, done=done), calibration)
        assert trace((*rounds[:at], *rest)) == trace(rounds)
        assert len(rest) == len(rounds) - at


def test_only_what_is_recorded_is_touched() -> None:
    plan = Plan.of(NAMES[:4], shards=2, rounds=3).next_stage(Stage(2, "merged"))
    federation = Federation(plan, {c: examples_of(c, 4) for c in NAMES}).train(0, 2)
    shard = plan.shard_of(NAMES[0])
    assert touched(plan, federation.past, Change(frozenset({NAMES[0]}))) == {(0, shard): Taint(0)}
    assert len(federation.rebuilt("exact", federation.work("exact", NAMES[0]))) == 2


def test_a_lineage_goes_through_a_stage_that_nobody_was_in() -> None:
    plan = Plan.of(NAMES[:4], shards=2, rounds=2)
    shard = 1
    away = plan.present(0, shard)
    plan = plan.next_stage(Stage(2), leave=away).next_stage(Stage(2), join={NAMES[4]: 4, NAMES[5]: 5})
    federation = Federation(plan, {c: examples_of(c, 4) for c in NAMES}).trained()
    assert federation.past.rounds((1, shard)) == 0
    assert federation.past.checkpoint(Place(2, shard, 0)) == federation.past.final((0, shard))
    after = federation.forget("exact", away[0])
    assert after.trace == federation.without(away[:1]).trained().trace
    assert after.past.checkpoint(Place(2, shard, 0)) != federation.past.checkpoint(Place(2, shard, 0))
    emptied = federation.forget("exact", *away)
    assert emptied.trace == federation.without(away).trained().trace


def test_a_shard_that_everybody_left_ends_and_the_others_serve_on() -> None:
    federation = Federation.of(6, shards=3, rounds=2)
    leavers = federation.plan.present(0, 1)
    after = federation.forget("exact", *leavers)
    assert after.plan.living_shards(0) == (0, 2)
    assert {p.shard for p in after.past.by_place} == {0, 2}
    again = after.work("exact", federation.plan.present(0, 0)[0])
    assert {s for _, s in again.taints} == {0}


def test_everybody_leaving_everywhere_leaves_nothing() -> None:
    federation = Federation.of(4, shards=2, rounds=2)
    after = federation.forget("exact", *federation.plan.clients)
    assert (after.trace, after.plan.clients, after.plan.living_shards(0)) == ({}, (), ())


def test_ancestors_are_followed_to_where_a_lineage_began() -> None:
    plan = Plan.of(NAMES[:4], shards=2, rounds=1)
    plan = plan.next_stage(Stage(1)).next_stage(Stage(1, "merged")).next_stage(Stage(1)).next_stage(Stage(1, "fresh"))
    assert with_ancestors(plan, [(1, 0)]) == {(1, 0), (0, 0)}
    assert with_ancestors(plan, [(3, 1)]) == {(3, 1), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1)}
    assert with_ancestors(plan, [(4, 1)]) == {(4, 1)}


@pytest.mark.parametrize("first", ["calibrated", "clean", "RR"])
def test_exact_goes_back_to_before_the_first_round_that_plain_training_did_not_make(first: str) -> None:
    federation = Federation.of(9, shards=3, rounds=4)
    one, two, _ = federation.plan.present(0, 0)
    after = federation.forget(first, one)
    taints = touched_back_to_plain(after.plan, after.past, Change(frozenset({two})))
    assert taints == {(0, 0): Taint(0)}
    twice = after.forget("exact", two)
    never = federation.without({one, two}).trained()
    assert {p: b for p, b in twice.trace.items() if p.shard == 0} == {
        p: b for p, b in never.trace.items() if p.shard == 0
    }


def test_also_where_the_odd_rounds_are_an_ancestors() -> None:
    """Shard 0 was calibrated before the shards were merged; whoever leaves any shard later restarts shard 0 too."""
    plan = Plan.of(NAMES[:6], shards=2, rounds=2).next_stage(Stage(2, "merged"), join={NAMES[6]: 6, NAMES[7]: 7})
    federation = Federation(plan, {c: examples_of(c, 4) for c in NAMES})
    one = plan.present(0, 0)[0]
    newcomer = next(c for c in NAMES[6:8] if plan.shard_of(c) == 1)
    after = federation.train(0, 2).forget("calibrated", one).train(1, 2)
    assert set(after.work("calibrated", newcomer).taints) == {(1, 1)}
    assert set(after.work("exact", newcomer).taints) == {(0, 0), (1, 0), (1, 1)}
    assert after.forget("exact", newcomer).trace == federation.without({one, newcomer}).trained().trace
