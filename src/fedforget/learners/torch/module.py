"""Module: any `nn.Module` as a learner, by autograd. The adapter is what to build and how its inputs are made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ...errors import SettingError
from ...examples import Examples
from ...federation import Solver
from ...params import Params
from . import curvature
from .numerics import exact_bits, fingerprint, is_deterministic
from .sgd import SGD, Tensors, orders, walk

_AT_A_TIME = 256


def as_tensor(x: NDArray[Any]) -> Tensor:
    """Inputs as they are: floats as float32, everything else as int64 (characters, say)."""
    return torch.tensor(x.astype(np.float32 if x.dtype.kind == "f" else np.int64))


@dataclass(frozen=True)
class Pixels:
    """Raw pixels (n, height, width, channels), 0 to 255, as (x/255 − mean)/std in torch's (n, c, h, w)."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, x: NDArray[Any]) -> Tensor:
        mean, std = torch.tensor(self.mean), torch.tensor(self.std)
        return torch.tensor(x).float().sub_(255 * mean).div_(255 * std).permute(0, 3, 1, 2)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Over the last dimension, the mean over all others."""
    return F.cross_entropy(logits.flatten(0, -2), y.flatten())


@dataclass(frozen=True)
class Module:
    """`build` makes a fresh module: a class or a function at the top level of a file, so that workers find it.

    Its whole `state_dict` travels, running statistics and counters included. Weights begin as `build` draws them and
    dropout is drawn from the task's seed. Predictions are the softmax over the last dimension of what it returns.
    """

    build: Callable[[], nn.Module]
    inputs: Callable[[NDArray[Any]], Tensor] = as_tensor
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
    sgd: SGD = field(default_factory=SGD)
    device: str = "cpu"

    @property
    def deterministic(self) -> bool:
        return is_deterministic(self.device)

    @property
    def numerics(self) -> str:
        return fingerprint(self.device, "fp32")

    def init(self, seed: int) -> Params:
        with _dice(seed):
            module = self.build()
        return _params(module)

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        with exact_bits(fill=True), _dice(seed):
            module = self._load(params).train()
            names, weights = zip(*((n, p) for n, p in module.named_parameters() if p.requires_grad), strict=True)
            batch = _Batches(self, examples)
            rough = partial(_named_loss, self, module, names)
            with torch.no_grad():
                walk(
                    solver,
                    list(weights),
                    orders(len(examples), self.sgd.batch, epochs, seed),
                    partial(_slopes, self, module, list(weights), batch),
                    partial(_fisher, rough, list(weights), batch),
                    partial(_hutchinson, rough, list(weights), batch, seed),
                    self.sgd,
                )
            return _params(module)

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[np.float32]:
        with exact_bits(fill=True), _dice(0), torch.no_grad():
            module = self._load(params).eval()
            parts = [
                module(self.inputs(x[at : at + _AT_A_TIME]).to(self.device)).softmax(-1).float().cpu().numpy()
                for at in range(0, max(len(x), 1), _AT_A_TIME)
            ]
            return np.concatenate(parts)

    def _load(self, params: Params) -> nn.Module:
        module = self.build()
        module.load_state_dict({name: torch.tensor(value) for name, value in params.arrays().items()})
        return module.to(self.device)


class _dice:
    """torch's global generator seeded inside, as it was outside."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __enter__(self) -> None:
        self.state = torch.get_rng_state()
        torch.manual_seed(self.seed)

    def __exit__(self, *_: object) -> None:
        torch.set_rng_state(self.state)


class _Batches:
    def __init__(self, learner: Module, examples: Examples) -> None:
        self.x = learner.inputs(np.asarray(examples.x)).to(learner.device)
        self.y = as_tensor(np.asarray(examples.y)).to(learner.device)

    def __call__(self, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor]:
        index = torch.from_numpy(rows).to(self.x.device)
        return self.x[index], self.y[index]


def _slopes(
    learner: Module, module: nn.Module, weights: Sequence[Tensor], batch: _Batches, rows: NDArray[np.intp]
) -> Tensors:
    x, y = batch(rows)
    with torch.enable_grad():
        return list(torch.autograd.grad(learner.loss(module(x), y), weights, materialize_grads=True))


def _named_loss(
    learner: Module, module: nn.Module, names: Sequence[str], weights: Sequence[Tensor], x: Tensor, y: Tensor
) -> Tensor:
    """The loss as a function of the weights."""
    called = torch.func.functional_call(module, dict(zip(names, weights, strict=True)), (x,))
    return learner.loss(called, y)


def _fisher(
    loss: curvature.ExampleLoss, weights: Sequence[Tensor], batch: _Batches, rows: NDArray[np.intp], t: int
) -> tuple[Tensors, Tensors]:
    def one(weights: Sequence[Tensor], x: Tensor, y: Tensor) -> Tensor:
        return loss(weights, x[None], y[None])

    try:
        return curvature.fisher(one, weights, *batch(rows))
    except RuntimeError as fault:
        why = f"'sgd' or 'hutchinson': this module's gradient cannot be taken example by example ({fault})"
        raise SettingError("solver", "fisher", why) from fault


def _hutchinson(
    loss: curvature.ExampleLoss,
    weights: Sequence[Tensor],
    batch: _Batches,
    seed: int,
    rows: NDArray[np.intp],
    t: int,
) -> tuple[Tensors, Tensors]:
    x, y = batch(rows)
    return curvature.hutchinson(lambda weights: loss(weights, x, y), weights, curvature.signs(seed, t))


def _params(module: nn.Module) -> Params:
    return Params.of({name: value.detach().cpu().numpy() for name, value in module.state_dict().items()})
