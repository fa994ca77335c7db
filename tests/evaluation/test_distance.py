"""Distances, against NumPy's and SciPy's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from fedforget.errors import SettingError
from fedforget.evaluation.distance import parameter_distance, prediction_distance
from fedforget.params import Params


def params(a, b, seen=0) -> Params:
    return Params.of({"a": np.array(a, np.float32), "b": np.array(b, np.float32), "seen": np.array([seen])})


def test_by_hand():
    found = parameter_distance(params([3, 4], [0.0], 7), params([0, 0], [12.0], 9))
    assert found.layers == {"a": 5.0, "b": 12.0}
    assert found.l2 == 13.0
    assert found.relative == pytest.approx(13 / 12)
    assert found.cosine == 0.0


def test_counters_are_no_distance():
    assert parameter_distance(params([1, 2], [3], 0), params([1, 2], [3], 500)).l2 == 0.0


def test_of_random_models():
    random = np.random.default_rng(1)
    x, y = random.standard_normal((2, 50)).astype(np.float32)
    found = parameter_distance(Params.of({"w": x}), Params.of({"w": y}))
    assert found.l2 == pytest.approx(np.linalg.norm(x - y), rel=1e-6)
    assert found.relative == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(y), rel=1e-6)
    assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-5)


def test_nothing_has_no_direction():
    zero, one = Params.of({"w": np.zeros(2)}), Params.of({"w": np.ones(2)})
    assert parameter_distance(zero, zero).relative == 0.0
    assert parameter_distance(one, zero).relative == np.inf
    assert parameter_distance(one, zero).cosine is None


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_predictions_agree_with_scipy_and_keep_their_laws(seed, classes):
    p, q = np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), size=(2, 20))
    found = prediction_distance(forgot=q, retrained=p)
    assert found.kl == pytest.approx(np.mean(entropy(p, q, axis=1)), rel=1e-6, abs=1e-12)
    assert found.js == pytest.approx(np.mean(jensenshannon(p, q, axis=1) ** 2), rel=1e-6, abs=1e-12)
    assert found.total_variation == pytest.approx(np.abs(p - q).sum() / 40)
    assert found.agreement == np.mean(p.argmax(axis=1) == q.argmax(axis=1))
    assert 0 <= found.js <= np.log(2) + 1e-12
    assert found.total_variation <= np.sqrt(found.kl / 2) + 1e-9, "Pinsker"
    assert prediction_distance(p, q).js == pytest.approx(found.js)


def test_same_predictions_are_no_distance_apart_and_opposite_ones_all_the_way():
    p = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    same = prediction_distance(p, p)
    assert (same.agreement, same.kl, same.js, same.total_variation) == (1, 0, 0, 0)
    far = prediction_distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    assert (far.agreement, far.total_variation) == (0, 1)
    assert far.js == pytest.approx(np.log(2))
    assert np.isfinite(far.kl)


def test_refusals():
    with pytest.raises(SettingError, match="layout"):
        parameter_distance(Params.of({"w": np.zeros(2)}), Params.of({"v": np.zeros(2)}))
    with pytest.raises(SettingError, match="shapes"):
        prediction_distance(np.ones((1, 2)), np.ones((2, 2)))
    with pytest.raises(SettingError, match="shapes"):
        prediction_distance(np.ones((0, 2)), np.ones((0, 2)))
