"""Reference federations: half with each candidate, the same wherever the series begins, and blind to who is out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.engines.local import LocalCohort
from fedforget.errors import SettingError, UnknownClient
from fedforget.evaluation.references import example_members, memberships, references, train_again
from fedforget.examples import Examples
from fedforget.federation import Settings
from fedforget.learners.linear import Softmax
from fedforget.plan import Plan, Stage

NAMES = [f"c{i}" for i in range(6)]
LEARNER = Softmax(3, 2)
PLAN = Plan.of(NAMES, shards=2, rounds=2, seed=4)
SETTINGS = Settings(epochs=1)


def data(seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((6, 8, 3)).astype(np.float32)
    return {c: Examples(x[i], (x[i, :, 0] > 0).astype(np.int64)) for i, c in enumerate(NAMES)}


def series(examples=None, plan=PLAN, candidates=("c0", "c3"), **more):
    cohort = LocalCohort(LEARNER, examples or data())
    return list(references(cohort, LEARNER, plan, SETTINGS, candidates, **{"count": 6, "seed": 1, **more}))


@given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 1000))
def test_each_candidate_is_in_half_and_a_longer_series_begins_like_a_shorter(candidates, half, seed):
    mask = memberships(candidates, 2 * half, seed)
    assert mask.shape == (2 * half, candidates)
    assert (mask.sum(axis=0) == half).all()
    assert np.array_equal(memberships(candidates, 2 * half + 2, seed)[: 2 * half], mask)


def test_candidates_are_drawn_apart_from_each_other():
    mask = memberships(2, 2000, 0)
    assert np.mean(mask[:, 0] == mask[:, 1]) == pytest.approx(0.5, abs=0.05)


def test_goes_on_from_any_index():
    whole, rest = series(), series(start=4)
    assert [r.index for r in rest] == [4, 5]
    for one, two in zip(whole[4:], rest, strict=True):
        assert one.models == two.models
        assert np.array_equal(one.members, two.members)


def test_who_is_out_leaves_no_trace_and_who_is_in_does():
    other = data()
    other["c0"] = replace(other["c0"], y=1 - other["c0"].y)
    shard = PLAN.shard_of("c0")
    seen = set()
    for one, two in zip(series(), series(other), strict=True):
        seen.add(bool(one.members[0]))
        assert (one.models[shard] == two.models[shard]) is not bool(one.members[0])
        assert one.models[1 - shard] == two.models[1 - shard], "shards are isolated"
    assert seen == {True, False}


def test_no_two_federations_train_alike():
    shard = PLAN.shard_of("c0")
    assert len({r.models[shard].digest for r in series()}) == 6


def test_a_shard_nobody_is_in_has_no_model():
    plan = Plan.of(NAMES[:2], shards=2, rounds=1)
    for one in series(plan=plan, candidates=NAMES[:1]):
        assert set(one.models) == ({0, 1} if one.members[0] else {plan.shard_of("c1")})


def test_stages_are_walked_through_to_the_last():
    two = replace(PLAN, stages=(Stage(1), Stage(1)))
    cohort = LocalCohort(LEARNER, data())
    assert set(train_again(cohort, LEARNER, two, SETTINGS, 7)) == {0, 1}
    assert train_again(cohort, LEARNER, two, SETTINGS, 7) == train_again(cohort, LEARNER, two, SETTINGS, 7)


def test_the_reseeded_learner_predicts_and_fits_as_its_own():
    from fedforget.evaluation.references import ReseededLearner

    learner = ReseededLearner(LEARNER, 3)
    mine = data()["c0"]
    fitted = learner.fit(learner.init(0), mine, epochs=1, seed=2)
    assert fitted == LEARNER.fit(learner.init(0), mine, epochs=1, seed=2)
    assert np.array_equal(learner.predict(fitted, mine.x), LEARNER.predict(fitted, mine.x))
    assert learner.init(0) != LEARNER.init(0)


def test_an_example_is_where_its_owner_is():
    masks = np.array([[True, False], [False, False]])
    assert example_members(masks, np.array([1, 0, 0])).tolist() == [[False, True, True], [False, False, False]]


def test_refusals():
    with pytest.raises(UnknownClient):
        series(candidates=("nobody",))
    with pytest.raises(SettingError, match="candidates"):
        series(candidates=("c0", "c0"))
    with pytest.raises(SettingError, match="candidates"):
        series(candidates=())
    with pytest.raises(SettingError, match="count"):
        series(count=5)
