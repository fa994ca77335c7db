"""Worlds: the never-joined one against the core's own training of it, and forgetting against both."""

from dataclasses import replace

import numpy as np
import pytest

from fedforget.engines.local import LocalCohort
from fedforget.errors import UnknownClient
from fedforget.evaluation.worlds import Scene, differing, mates, together, trial
from fedforget.examples import Examples
from fedforget.federation import Settings, train_all
from fedforget.learners.linear import Softmax
from fedforget.plan import Plan, Stage

NAMES = [f"c{i}" for i in range(9)]
LEARNER = Softmax(3, 2)


def scene(*handovers, participants=2, shards=3):
    random = np.random.default_rng(0)
    x = random.standard_normal((9, 6, 3)).astype(np.float32)
    data = {c: Examples(x[i], (x[i, :, 0] > 0).astype(np.int64)) for i, c in enumerate(NAMES)}
    plan = Plan.of(NAMES, shards=shards, rounds=3, seed=2, participants=participants)
    plan = replace(plan, stages=(Stage(3), *(Stage(2, h) for h in handovers)))
    return Scene(LocalCohort(LEARNER, data), LEARNER, plan, Settings(epochs=1))


def trained(there, plan):
    """The served models of that plan, by the core's own loop."""
    last = len(plan.stages) - 1
    finals = {r.place.cell: r.model for r in train_all(there.cohort, plan, there.learner, there.settings)}
    return {s: finals[last, s] for s in plan.living_shards(last)}


@pytest.mark.parametrize("handovers", [(), ("lineage",), ("fresh",), ("merged",), ("lineage", "merged")])
def test_worlds_are_those_the_core_trains(handovers):
    there = scene(*handovers)
    made = trial(there)
    assert made.everybody == trained(there, there.plan)
    for leavers in (["c0"], ["c1", "c4"]):
        never = made.without(leavers)
        assert never.models == trained(there, there.plan.without(leavers))
        assert made.after("exact", leavers).models == never.models
        assert never.cost.client_epochs >= made.after("exact", leavers).cost.client_epochs
        assert differing(made.everybody, never.models) or handovers == ("fresh",), "drawn before the new start only"


def test_exact_forgetting_needs_no_uploads_and_the_others_do():
    there = scene(participants=None)
    assert trial(there, keep_uploads=False).after("exact", ["c0"]).models == trial(there).without(["c0"]).models
    made = trial(there)
    for method in ("clean", "calibrated"):
        shard = there.plan.shard_of("c0")
        assert differing(made.after(method, ["c0"]).models, made.without(["c0"]).models) == (shard,)
    assert made.cost.client_epochs == 9 * 3


def test_other_randomness_is_another_training_of_the_same_federation():
    there = scene()
    one, two = trial(there.reseeded(1)), trial(there.reseeded(2))
    assert len(differing(one.everybody, two.everybody)) == 3
    assert trial(there.reseeded(1)).everybody == one.everybody
    assert trial(there.reseeded(None)).everybody == trial(there).everybody
    assert one.after("exact", ["c3"]).models == one.without(["c3"]).models


@pytest.mark.parametrize("stages", [(), ("lineage",)])
def test_a_shard_nobody_is_left_in_serves_no_more_or_serves_what_it_was_handed(stages):
    there = scene(*stages)
    shard = there.plan.shard_of("c0")
    leavers = there.plan.present(0, shard)
    made = trial(there)
    assert set(made.without(leavers).models) == set(range(3)) - {shard}
    assert made.after("exact", leavers).models == made.without(leavers).models


def test_a_shard_whose_clients_came_to_a_later_stage_serves_what_it_was_handed():
    there = scene("lineage")
    shard = there.plan.shard_of("c0")
    row = there.plan.present(0, shard)
    members = tuple(
        replace(m, left=1) if m.client in row[1:] else replace(m, joined=1) if m.client == row[0] else m
        for m in there.plan.members
    )
    there = replace(there, plan=replace(there.plan, members=members))
    made = trial(there)
    for found in (made.without([row[0]]), made.after("exact", [row[0]])):
        assert found.models == trained_or_handed(there, row[0])


def trained_or_handed(there, leaver):
    plan = there.plan.without([leaver])
    finals = {r.place.cell: r.model for r in train_all(there.cohort, plan, there.learner, there.settings)}
    return {s: finals.get((1, s), finals.get((0, s))) for s in plan.living_shards(1)}


def test_a_shard_with_nobody_from_the_start_has_no_round():
    there = scene("lineage")
    shard = there.plan.shard_of("c0")
    members = tuple(replace(m, joined=1) if there.plan.shard_of(m.client) == shard else m for m in there.plan.members)
    late = replace(there, plan=replace(there.plan, members=members))
    assert trial(late).everybody == trained(late, late.plan)


def test_mates_stay_and_leave_somebody_to_train():
    plan = scene().plan
    row = plan.present(0, plan.shard_of("c0"))
    assert len(row) == 3
    assert mates(plan, row[:1]) == (row[1],)
    assert mates(plan, row[:1], each=5) == tuple(row[1:2])
    assert mates(plan, row[:2]) == (), "the last one is needed to train"
    assert mates(plan, row) == ()
    assert mates(plan, []) == ()
    assert together([("b", "a"), ("c", "a")]) == ("a", "b", "c")


def test_who_is_not_there_cannot_have_been_missing():
    with pytest.raises(UnknownClient):
        trial(scene()).without(["nobody"])
