"""Steps: how a torch learner walks down. SGD with momentum, and RapidRetrain's two preconditioned walks.

SGD: v ← momentum·v + g, w ← w − lr·v. RapidRetrain: m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)d, both bias-corrected,
w ← w − fisher_lr·m̂ / (√v̂ + ε), where d is the diagonal of a curvature: of the empirical Fisher matrix (the mean of
the examples' squared gradients, `fisher`), or the square of Hutchinson's estimate of the Hessian's (`hutchinson`).
Its state lives and dies inside one `fit`, so nothing but parameters crosses a round.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import SettingError
from ...federation import Solver
from ...seeds import generator
from .numerics import has_fused_sgd

Tensors = list[Tensor]
Slopes = Callable[[NDArray[np.intp]], Tensors]
Curves = Callable[[NDArray[np.intp], int], tuple[Tensors, Tensors]]


@dataclass(frozen=True)
class SGD:
    """The settings of both walks; the first three as in the paper's code."""

    lr: float = 0.005
    momentum: float = 0.9
    batch: int = 64
    fisher_lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise SettingError("batch", self.batch, "1 or more")
        for name in ("lr", "fisher_lr", "epsilon"):
            if not getattr(self, name) > 0:
                raise SettingError(name, getattr(self, name), "above 0")
        for name, value in (("momentum", self.momentum), ("betas", self.betas[0]), ("betas", self.betas[1])):
            if not 0 <= value < 1:
                raise SettingError(name, value, "from 0 up to, not including, 1")


def orders(count: int, size: int, epochs: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each minibatch: `epochs` passes, each in an order of its own; the last of a pass may be short."""
    for epoch in range(epochs):
        order = generator(seed, "order", epoch).permutation(count)
        for at in range(0, count, size):
            yield order[at : at + size]


def descend(weights: Tensors, batches: Iterator[NDArray[np.intp]], slopes: Slopes, settings: SGD) -> None:
    """SGD with momentum, in place."""
    speed = [torch.zeros_like(w) for w in weights]
    for rows in batches:
        move(weights, slopes(rows), speed, settings)


def move(weights: Sequence[Tensor], grads: Sequence[Tensor], speed: Sequence[Tensor], settings: SGD) -> None:
    """One step; in one pass over memory where torch can, which walks tensors blindly: they must be laid out alike."""
    grads = [
        g if g.stride() == w.stride() else torch.empty_like(w).copy_(g) for g, w in zip(grads, weights, strict=True)
    ]
    if has_fused_sgd():
        fused: Any = torch._fused_sgd_
        fused(
            list(weights),
            list(grads),
            list(speed),
            weight_decay=0.0,
            momentum=settings.momentum,
            lr=settings.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )
        return
    for w, g, v in zip(weights, grads, speed, strict=True):
        v.mul_(settings.momentum).add_(g)
        w.add_(v, alpha=-settings.lr)


def precondition(weights: Tensors, batches: Iterator[NDArray[np.intp]], curves: Curves, settings: SGD) -> None:
    """RapidRetrain, in place; `curves` gives the mean gradient and the diagonal d of a batch."""
    first, second = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    b1, b2 = settings.betas
    for t, rows in enumerate(batches, start=1):
        grads, diagonal = curves(rows, t)
        for w, g, d, m, v in zip(weights, grads, diagonal, first, second, strict=True):
            m.lerp_(g, 1 - b1)
            v.lerp_(d, 1 - b2)
            root = (v / (1 - b2**t)).sqrt_().add_(settings.epsilon)
            w.addcdiv_(m, root, value=-settings.fisher_lr / (1 - b1**t))


def unknown_solver(solver: str) -> SettingError:
    return SettingError("solver", solver, "'sgd', 'fisher' or 'hutchinson'")


def walk(
    solver: Solver,
    weights: Tensors,
    batches: Iterator[NDArray[np.intp]],
    slopes: Slopes,
    fisher: Curves,
    hutchinson: Curves,
    settings: SGD,
) -> None:
    """The walk that `solver` names."""
    if solver == "sgd":
        descend(weights, batches, slopes, settings)
    elif solver == "fisher":
        precondition(weights, batches, fisher, settings)
    elif solver == "hutchinson":
        precondition(weights, batches, hutchinson, settings)
    else:
        raise unknown_solver(solver)
