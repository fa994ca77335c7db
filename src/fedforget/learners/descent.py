"""Descent: minibatch SGD with momentum, and RapidRetrain's step, over any gradient in NumPy.

RapidRetrain preconditions by the diagonal of the empirical Fisher matrix: with g the mean gradient of a batch and
f the mean of the squared gradients of its examples, m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)f, both bias-corrected,
w ← w − lr·m̂ / (√v̂ + ε).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..examples import Examples
from ..federation import Solver
from ..params import Params
from ..seeds import generator

Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Gradient:
    """The mean gradient of a batch and, for those who ask, the mean of its examples' squared gradients."""

    mean: Tensors
    squares: Callable[[], Tensors]


GradientOf = Callable[[Tensors, NDArray[Any], NDArray[Any]], Gradient]


@dataclass(frozen=True)
class Descent:
    lr: float = 0.05
    momentum: float = 0.9
    batch: int = 16
    fisher_lr: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise SettingError("batch", self.batch, "1 or more")
        if not self.lr > 0:
            raise SettingError("lr", self.lr, "above 0")
        if not 0 <= self.momentum < 1:
            raise SettingError("momentum", self.momentum, "from 0 up to, not including, 1")

    def run(
        self, gradient: GradientOf, params: Params, examples: Examples, epochs: int, seed: int, solver: Solver
    ) -> Params:
        if solver == "hutchinson":
            raise SettingError("solver", solver, "'sgd' or 'fisher' for learners without second derivatives")
        weights: Tensors = {name: value.copy() for name, value in params.arrays().items()}
        step = self._fisher if solver == "fisher" else self._sgd
        with np.errstate(over="ignore", invalid="ignore"):  # a model that diverges is refused by name, see `sift`
            step(gradient, weights, batches(examples, self.batch, epochs, seed))
        return Params.of(weights)

    def _sgd(self, gradient: GradientOf, weights: Tensors, stream: Iterator[Examples]) -> None:
        speed = {name: np.zeros_like(value) for name, value in weights.items()}
        for batch in stream:
            slope = gradient(weights, batch.x, batch.y).mean
            for name, value in weights.items():
                speed[name] *= np.float32(self.momentum)
                speed[name] += slope[name]
                value -= np.float32(self.lr) * speed[name]

    def _fisher(self, gradient: GradientOf, weights: Tensors, stream: Iterator[Examples]) -> None:
        first = {name: np.zeros_like(value) for name, value in weights.items()}
        second = {name: np.zeros_like(value) for name, value in weights.items()}
        b1, b2 = (np.float32(b) for b in self.betas)
        one = np.float32(1)
        for t, batch in enumerate(stream, start=1):
            slope = gradient(weights, batch.x, batch.y)
            squares = slope.squares()
            for name, value in weights.items():
                first[name] += (one - b1) * (slope.mean[name] - first[name])
                second[name] += (one - b2) * (squares[name] - second[name])
                m, v = first[name] / (one - b1**t), second[name] / (one - b2**t)
                value -= np.float32(self.fisher_lr) * m / (np.sqrt(v) + np.float32(1e-8))


def batches(examples: Examples, size: int, epochs: int, seed: int) -> Iterator[Examples]:
    """Minibatches of `epochs` passes, each in an order of its own."""
    for epoch in range(epochs):
        order = generator(seed, "order", epoch).permutation(len(examples))
        for at in range(0, len(order), size):
            yield examples.take(order[at : at + size])


def flat(x: NDArray[Any]) -> NDArray[np.float32]:
    return x.reshape(len(x), prod(x.shape[1:])).astype(np.float32, copy=False)


def softmax(z: NDArray[Any]) -> NDArray[np.float32]:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True), dtype=np.float32)
