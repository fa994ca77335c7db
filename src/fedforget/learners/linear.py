"""Softmax regression in NumPy: the smallest learner that learns, and the one the tests trust."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..examples import Examples
from ..federation import Solver
from ..params import Params
from .descent import Descent, Gradient, flat, softmax


@dataclass(frozen=True)
class Softmax:
    """x·W + b, trained by minibatch SGD with momentum."""

    features: int
    classes: int
    descent: Descent = field(default_factory=Descent)

    def init(self, seed: int) -> Params:
        rng = np.random.Generator(np.random.PCG64(seed))
        scale = 0.01
        return Params.of(
            {
                "weight": (scale * rng.standard_normal((self.features, self.classes))).astype(np.float32),
                "bias": np.zeros(self.classes, np.float32),
            }
        )

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        return self.descent.run(self._gradient, params, examples, epochs, seed, solver)

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[np.float32]:
        return softmax(flat(x) @ params["weight"] + params["bias"])

    def _gradient(self, w: dict[str, NDArray[np.float32]], x: NDArray[Any], y: NDArray[Any]) -> Gradient:
        rows = flat(x)
        slope = softmax(rows @ w["weight"] + w["bias"])
        slope[np.arange(len(y)), y] -= 1.0
        square = slope * slope
        n = np.float32(len(y))
        return Gradient(
            {"weight": rows.T @ slope / n, "bias": slope.sum(axis=0) / n},
            lambda: {"weight": (rows * rows).T @ square / n, "bias": square.sum(axis=0) / n},
        )
