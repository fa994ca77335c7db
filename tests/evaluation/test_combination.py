"""Combining shard models, against sums done by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from fedforget.errors import SettingError
from fedforget.evaluation.combination import COMBINES, combine, pool
from fedforget.learners.linear import Softmax
from fedforget.params import Params

LEARNER = Softmax(features=2, classes=3)


def model(weight, bias=(0, 0, 0)) -> Params:
    return Params.of({"weight": np.array(weight, np.float32), "bias": np.array(bias, np.float32)})


def test_average_is_the_model_of_mean_parameters():
    one, two = model([[2, 0, 0], [0, 1, 0]]), model([[0, 4, 0], [0, 1, 2]], (0, 0, 2))
    x = np.array([[1.0, 0.0], [0.5, -1.0]], np.float32)
    by_hand = softmax(x @ np.array([[1, 2, 0], [0, 1, 1]]) + np.array([0, 0, 1]), axis=1)
    assert np.allclose(combine("average", LEARNER, [one, two], x), by_hand, atol=1e-6)


def test_ensemble_is_the_mean_of_probabilities():
    a, b = np.array([[0.8, 0.2, 0.0]]), np.array([[0.1, 0.3, 0.6]])
    assert np.allclose(pool("ensemble", [a, b]), [[0.45, 0.25, 0.3]])


def test_vote_counts_heads_not_certainty():
    votes = pool("vote", [np.array([[0.51, 0.49]]), np.array([[0.51, 0.49]]), np.array([[0.0, 1.0]])])
    assert np.allclose(votes, [[2 / 3, 1 / 3]], atol=1e-5)
    assert pool("ensemble", [np.array([[0.51, 0.49]]), np.array([[0.51, 0.49]]), np.array([[0.0, 1.0]])]).argmax() == 1


def test_a_tie_goes_to_the_larger_summed_probability():
    votes = pool("vote", [np.array([[0.6, 0.4, 0.0]]), np.array([[0.1, 0.0, 0.9]])])
    assert votes.argmax() == 2
    assert np.allclose(votes, [[0.5, 0.0, 0.5]], atol=1e-5)


@pytest.mark.parametrize("kind", COMBINES)
def test_one_model_answers_for_itself(kind):
    one, x = model([[3, 0, 0], [0, 1, 0]]), np.array([[1.0, 0.0], [-1.0, 2.0]], np.float32)
    alone = LEARNER.predict(one, x)
    found = combine(kind, LEARNER, [one], x)
    assert np.array_equal(found.argmax(axis=1), alone.argmax(axis=1))
    if kind != "vote":
        assert np.allclose(found, alone)


@pytest.mark.parametrize("kind", ["ensemble", "vote"])
def test_text_has_a_length_axis_and_nothing_else_changes(kind):
    flat = [np.random.default_rng(s).dirichlet(np.ones(5), size=12) for s in range(3)]
    text = [p.reshape(4, 3, 5) for p in flat]
    assert np.array_equal(pool(kind, text).reshape(12, 5), pool(kind, flat))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(2, 6))
def test_laws(seed, models, classes):
    ps = list(np.random.default_rng(seed).dirichlet(np.ones(classes), size=(models, 7)))
    for kind in ("ensemble", "vote"):
        assert np.allclose(pool(kind, ps).sum(axis=-1), 1)
    heads = np.array([np.bincount(np.argmax([p[i] for p in ps], axis=1), minlength=classes) for i in range(7)])
    vote = pool("vote", ps)
    assert np.allclose(vote, heads / models, atol=2**-18)
    assert (heads[np.arange(7), vote.argmax(axis=1)] == heads.max(axis=1)).all(), "the tie-break outvoted somebody"


def test_refusals():
    with pytest.raises(SettingError, match="models"):
        combine("average", LEARNER, [], np.zeros((1, 2)))
    with pytest.raises(SettingError, match="probabilities"):
        pool("vote", [])
    with pytest.raises(SettingError, match="combine"):
        pool("best", [np.ones((1, 1))])
    with pytest.raises(SettingError, match="combine"):
        pool("average", [np.ones((1, 1))])
