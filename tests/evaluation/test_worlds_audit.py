"""The audit of worlds, on log-odds made by hand."""

import numpy as np
import pytest
from scipy.stats import norm

from fedforget.errors import SettingError
from fedforget.evaluation.audit import Evidence, audit


def setting(d, n=1200, trainings=2, seed=0):
    """Log-odds are N(0, 1) for who never saw an example and N(d, 1) for who did."""
    random = np.random.default_rng(seed)
    members = np.array([random.permutation(128) < 64 for _ in range(n)]).T
    evidence = Evidence(random.standard_normal((128, n)) + d * members, members, np.arange(n) // 60)
    draw = lambda shift: random.standard_normal((trainings, n)) + shift  # noqa: E731
    return evidence, draw


def test_worlds_are_told_apart_as_far_as_they_are():
    evidence, draw = setting(1.0)
    never = draw(0)
    found = audit(
        {"with": draw(1.0), "exact": never, "half": draw(0.5), "less": draw(-0.5)}, never, evidence, resamples=200
    )
    assert found["with"].auc == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.02)
    assert found["exact"].auc == 0.5
    assert found["exact"].rate(0.01).tpr == pytest.approx(0.01, abs=1e-3)
    assert found["half"].auc == pytest.approx(norm.cdf(0.5 / np.sqrt(2)), abs=0.02)
    assert found["less"].auc == pytest.approx(norm.cdf(-0.5 / np.sqrt(2)), abs=0.02)
    assert found["less"].apart == pytest.approx(found["half"].apart, abs=0.08)
    low, high = found["with"].interval
    assert low < found["with"].auc < high


def test_the_other_mode_and_a_single_training_do_too():
    evidence, draw = setting(2.0, trainings=1)
    found = audit({"with": draw(2.0)[0]}, draw(0)[0], evidence, mode="offline", variance="each", resamples=20)
    assert found["with"].auc == pytest.approx(norm.cdf(np.sqrt(2)), abs=0.03)
    assert found["with"].members == found["with"].others == 1200


def test_intervals_know_that_a_clients_scores_move_together():
    """A shift shared by all examples of a client under a model is one draw, not sixty."""
    evidence, draw = setting(1.0)
    random = np.random.default_rng(5)
    shared = np.repeat(random.normal(0, 1, (2, 20)), 60, axis=1)
    loose = audit({"w": draw(0.5) + shared}, draw(0), evidence, resamples=200)["w"].interval
    tight = audit({"w": draw(0.5)}, draw(0), evidence, resamples=200)["w"].interval
    assert loose[1] - loose[0] > 2 * (tight[1] - tight[0])


def test_refusals():
    evidence, draw = setting(1.0, n=60)
    with pytest.raises(SettingError, match="world w"):
        audit({"w": draw(0)[:, 1:]}, draw(0), evidence)
    with pytest.raises(SettingError, match="owners"):
        audit({"w": draw(0)[:, 1:]}, draw(0)[:, 1:], evidence)
