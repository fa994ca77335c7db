"""RMIA: against the definition's double loop, and where the answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.evaluation.curves import auc
from fedforget.evaluation.rmia import Population, rmia


def sample(seed, models=6, n=5, m=7):
    random = np.random.default_rng(seed)
    members = np.array([random.permutation(models) < models // 2 for _ in range(n)]).T
    p = random.uniform(0.01, 1, (models + 1, n))
    z = random.uniform(0.01, 1, (models + 1, m))
    return p[0], p[1:], members, Population(z[0], z[1:])


@given(st.integers(0, 10**6), st.sampled_from([None, 0.0, 0.3, 1.0]), st.sampled_from([0.5, 1.0, 2.0]))
def test_is_the_definition(seed, offline, gamma):
    p, refs, members, population = sample(seed)
    found = rmia(p, refs, members, population, gamma=gamma, offline=offline)
    for i in range(5):
        out, inside = refs[~members[:, i], i].mean(), refs[members[:, i], i].mean()
        px = (out + inside) / 2 if offline is None else ((1 + offline) * out + (1 - offline)) / 2
        wins = 0
        for j in range(7):
            z_out = population.references[:, j].mean()
            pz = z_out if offline is None else ((1 + offline) * z_out + (1 - offline)) / 2
            wins += (p[i] / px) / (population.target[j] / pz) >= gamma
        assert found[i] == pytest.approx(wins / 7)


def test_by_hand():
    """x has grown 0.9/0.6 = 1.5 fold, the three z 2, 1 and 0.5 fold: it dominates two of them."""
    members = np.array([[True], [False]])
    z = Population(np.array([0.8, 0.5, 0.1]), np.array([[0.4, 0.5, 0.2]] * 2))
    assert rmia(np.array([0.9]), np.array([[0.8], [0.4]]), members, z) == pytest.approx(2 / 3)
    assert rmia(np.array([0.9]), np.array([[0.8], [0.4]]), members, z, gamma=2.0) == pytest.approx(1 / 3)


def world(lift, n=600, models=8, seed=0):
    random = np.random.default_rng(seed)
    hardness = random.uniform(0.05, 0.5, n)

    def answers(seen):
        return np.clip(hardness * lift**seen * np.exp(0.1 * random.standard_normal(n)), 0, 1)

    members = np.array([random.permutation(models) < models // 2 for _ in range(n)]).T
    refs = np.array([answers(row) for row in members])
    z = np.clip(0.3 * np.exp(0.1 * random.standard_normal((models + 1, 400))), 0, 1)
    population = Population(z[0], z[1:])
    scores = [rmia(answers(np.full(n, seen)), refs, members, population) for seen in (True, False)]
    return np.concatenate(scores), np.repeat([True, False], n)


def test_memory_and_blindness():
    assert auc(*world(lift=2.0)) > 0.99
    assert auc(*world(lift=1.0)) == pytest.approx(0.5, abs=0.04)


def test_offline_needs_no_model_that_has_seen_it():
    p, refs, members, population = sample(0)
    assert rmia(p, refs, np.zeros_like(members), population, offline=0.5).shape == (5,)
    with pytest.raises(SettingError, match="0 with example 0"):
        rmia(p, refs, np.zeros_like(members), population)
    with pytest.raises(SettingError, match="0 without example 0"):
        rmia(p, refs, np.ones_like(members), population, offline=0.5)


def test_refusals():
    p, refs, members, population = sample(0)
    with pytest.raises(SettingError, match="gamma"):
        rmia(p, refs, members, population, gamma=0.0)
    with pytest.raises(SettingError, match="offline"):
        rmia(p, refs, members, population, offline=1.5)
    with pytest.raises(SettingError, match="shapes"):
        rmia(p[1:], refs, members, population)
    with pytest.raises(SettingError, match="population"):
        rmia(p, refs, members, Population(population.target, population.references[1:]))
    with pytest.raises(SettingError, match="probabilities"):
        rmia(-p, refs, members, population)
