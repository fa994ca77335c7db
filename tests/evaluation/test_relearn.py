"""Relearn time, on a learner whose progress is known by construction and on a real one."""

from dataclasses import dataclass

import numpy as np
import pytest

from fedforget.errors import SettingError
from fedforget.evaluation.quality import Quality
from fedforget.evaluation.relearn import Goal, Relearn, epochs_until, relearn
from fedforget.examples import Examples
from fedforget.learners.linear import Softmax
from fedforget.params import Params


@dataclass(frozen=True)
class Staircase:
    """Knows one more of its examples after each epoch: the parameter counts them."""

    def init(self, seed):
        return Params.of({"known": np.zeros(1)})

    def fit(self, params, examples, *, epochs, seed, solver="sgd"):
        return Params.of({"known": params["known"] + epochs})

    def predict(self, params, x):
        right = np.arange(len(x)) < params["known"][0]
        return np.stack([np.where(right, 0.9, 0.1), np.where(right, 0.1, 0.9)], axis=1)


TEN = Examples(np.zeros((10, 1)), np.zeros(10, int))


@pytest.mark.parametrize(("known", "epochs"), [(0, 8), (3, 5), (8, 0), (10, 0)])
def test_one_more_is_known_an_epoch(known, epochs):
    begin = Params.of({"known": np.array([float(known)])})
    assert epochs_until(Staircase(), begin, TEN, Goal(accuracy=0.8)) == epochs


def test_the_goal_may_be_a_loss():
    goal = Goal(loss=float(-(5 * np.log(0.9) + 5 * np.log(0.1)) / 10) + 1e-9)
    assert epochs_until(Staircase(), Staircase().init(0), TEN, goal) == 5
    assert epochs_until(Staircase(), Staircase().init(0), TEN, Goal(accuracy=0.7, loss=goal.loss)) == 7


def test_the_limit_is_the_last_epoch_tried():
    begin = Staircase().init(0)
    assert epochs_until(Staircase(), begin, TEN, Goal(accuracy=0.8), limit=8) == 8
    assert epochs_until(Staircase(), begin, TEN, Goal(accuracy=0.8), limit=7) is None


def test_who_remembers_is_faster():
    x = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)
    data = Examples(x, (x[:, 0] > 0).astype(np.int64))
    learner = Softmax(5, 2)
    fresh = learner.init(0)
    remembers = learner.fit(fresh, data, epochs=20, seed=1)
    found = relearn(learner, remembers, fresh, data, Goal(loss=0.3), limit=100)
    assert found.forgot == 0
    assert found.never_saw is not None
    assert found.never_saw > 0
    assert found.ratio == 0
    assert relearn(learner, fresh, fresh, data, Goal(loss=0.3), limit=100).ratio == 1


def test_a_ratio_that_cannot_be_said():
    assert Relearn(None, 3, 9).ratio is None
    assert Relearn(3, None, 9).ratio is None
    assert Relearn(0, 0, 9).ratio is None


def test_refusals():
    with pytest.raises(SettingError, match="goal"):
        Goal()
    assert Goal(accuracy=1.0).met(Quality(1.0, 9.0, 1))
