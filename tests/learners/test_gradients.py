"""Gradients of the NumPy learners against finite differences, and squared ones against example by example."""

from typing import Any

import numpy as np
import pytest

from fedforget.learners.linear import Softmax
from fedforget.learners.mlp import MLP

LEARNERS: dict[str, Any] = {"softmax": Softmax(3, 4), "perceptron": MLP(3, 4, hidden=5)}
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 3)), np.array([0, 1, 2, 3, 0, 1])


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Any:
    return LEARNERS[request.param]


def weights_of(learner: Any) -> dict[str, np.ndarray]:
    return {name: RNG.standard_normal(a.shape) for name, a in learner.init(0).arrays().items()}


def loss(learner: Any, weights: dict[str, np.ndarray]) -> float:
    """Cross entropy in float64, by the formula."""
    z = X
    if "hidden.weight" in weights:
        z = np.maximum(z @ weights["hidden.weight"] + weights["hidden.bias"], 0)
        z = z @ weights["out.weight"] + weights["out.bias"]
    else:
        z = z @ weights["weight"] + weights["bias"]
    z = z - z.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(Y)), Y]))


def test_the_gradient_is_the_slope_of_the_cross_entropy(learner: Any) -> None:
    weights = weights_of(learner)
    single = {name: value.astype(np.float32) for name, value in weights.items()}
    found = learner._gradient(single, X.astype(np.float32), Y).mean
    for name, value in weights.items():
        for at in np.ndindex(value.shape):
            step = np.zeros_like(value)
            step[at] = 1e-6
            up, down = ({**weights, name: value + sign * step} for sign in (1, -1))
            slope = (loss(learner, up) - loss(learner, down)) / 2e-6
            assert found[name][at] == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_the_squares_are_the_mean_of_each_examples_squared_gradient(learner: Any) -> None:
    weights = {name: value.astype(np.float32) for name, value in weights_of(learner).items()}
    x = X.astype(np.float32)
    found = learner._gradient(weights, x, Y).squares()
    each = [learner._gradient(weights, x[i : i + 1], Y[i : i + 1]).mean for i in range(len(Y))]
    for name, value in found.items():
        assert value == pytest.approx(np.mean([g[name] ** 2 for g in each], axis=0), rel=1e-4, abs=1e-7)
