"""A multilayer perceptron with one hidden layer of rectified units, in NumPy."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..examples import Examples
from ..federation import Solver
from ..params import Params
from .descent import Descent, Gradient, flat, softmax


@dataclass(frozen=True)
class MLP:
    features: int
    classes: int
    hidden: int = 32
    descent: Descent = field(default_factory=Descent)

    def init(self, seed: int) -> Params:
        rng = np.random.Generator(np.random.PCG64(seed))
        into, out = np.sqrt(2.0 / self.features), np.sqrt(1.0 / self.hidden)
        return Params.of(
            {
                "hidden.weight": (into * rng.standard_normal((self.features, self.hidden))).astype(np.float32),
                "hidden.bias": np.zeros(self.hidden, np.float32),
                "out.weight": (out * rng.standard_normal((self.hidden, self.classes))).astype(np.float32),
                "out.bias": np.zeros(self.classes, np.float32),
            }
        )

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        return self.descent.run(self._gradient, params, examples, epochs, seed, solver)

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[np.float32]:
        active = np.maximum(flat(x) @ params["hidden.weight"] + params["hidden.bias"], 0.0)
        return softmax(active @ params["out.weight"] + params["out.bias"])

    def _gradient(self, w: dict[str, NDArray[np.float32]], x: NDArray[Any], y: NDArray[Any]) -> Gradient:
        rows = flat(x)
        active = np.maximum(rows @ w["hidden.weight"] + w["hidden.bias"], 0.0)
        slope = softmax(active @ w["out.weight"] + w["out.bias"])
        slope[np.arange(len(y)), y] -= 1.0
        back = (slope @ w["out.weight"].T) * (active > 0)
        n = np.float32(len(y))

        def squares() -> dict[str, NDArray[np.float32]]:
            s, b = slope * slope, back * back
            return {
                "hidden.weight": (rows * rows).T @ b / n,
                "hidden.bias": b.sum(axis=0) / n,
                "out.weight": (active * active).T @ s / n,
                "out.bias": s.sum(axis=0) / n,
            }

        mean = {
            "hidden.weight": rows.T @ back / n,
            "hidden.bias": back.sum(axis=0) / n,
            "out.weight": active.T @ slope / n,
            "out.bias": slope.sum(axis=0) / n,
        }
        return Gradient(mean, squares)
