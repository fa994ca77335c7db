"""The paper's CNN: two 5×5 convolutions with 32 and 64 filters, each pooled by two, then dense 256, then the classes.

857,738 parameters on MNIST, 1,105,098 on CIFAR-10. Names and shapes are those of the equivalent `nn.Module`
(`reference`), except that the first dense layer reads the pooled picture place by place, channels innermost: so no
step has to permute it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ...errors import SettingError
from ...examples import Examples
from ...federation import Solver
from ...params import Params
from . import curvature, step
from .numerics import Precision, check_precision, exact_bits, fingerprint, is_deterministic
from .sgd import SGD, Tensors, orders, walk

NAMES = (
    "conv1.weight",
    "conv1.bias",
    "conv2.weight",
    "conv2.bias",
    "dense1.weight",
    "dense1.bias",
    "dense2.weight",
    "dense2.bias",
)
_AT_A_TIME = 256  # pictures predicted at once


@dataclass(frozen=True)
class CNN:
    """`image` is (height, width, channels). Raw uint8 pixels are scaled as (x/255 − mean)/std, channel by channel;
    float32 inputs are taken as they are.

    With `precision="bf16"` the layers compute in bfloat16; parameters, momentum and predictions stay float32.
    """

    image: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    sgd: SGD = field(default_factory=SGD)
    precision: Precision = "fp32"
    filters: tuple[int, int] = (32, 64)
    hidden: int = 256
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if len(self.image) != 3 or min(self.image[:2]) < 4:
            raise SettingError("image", self.image, "(height, width, channels), at least 4 by 4")
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, self.image[2]):
                raise SettingError(
                    name, getattr(self, name), f"one number, or one for each of {self.image[2]} channels"
                )

    @property
    def deterministic(self) -> bool:
        return is_deterministic(self.device)

    @property
    def numerics(self) -> str:
        return fingerprint(self.device, self.precision)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        high, wide, channels = self.image
        first, second = self.filters
        flat = (high // 4) * (wide // 4) * second
        return (
            (first, channels, 5, 5),
            (first,),
            (second, first, 5, 5),
            (second,),
            (self.hidden, flat),
            (self.hidden,),
            (self.classes, self.hidden),
            (self.classes,),
        )

    def init(self, seed: int) -> Params:
        """Uniform within ±1/√fan-in, torch's own default for these layers; drawn by NumPy, so the same anywhere."""
        rng = np.random.Generator(np.random.PCG64(seed))
        arrays: dict[str, NDArray[Any]] = {}
        bound = 0.0
        for name, shape in zip(NAMES, self.shapes, strict=True):
            if name.endswith("weight"):
                bound = 1 / np.sqrt(np.prod(shape[1:]))
            arrays[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
        return Params.of(arrays)

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        with exact_bits(), torch.no_grad():
            weights = self._weights(params)
            batch = _Batches(self, examples)
            walk(
                solver,
                list(weights),
                orders(len(examples), self.sgd.batch, epochs, seed),
                partial(_slopes, weights, batch),
                partial(_fisher, weights, batch),
                partial(self._hutchinson, weights, batch, seed),
                self.sgd,
            )
            return _params(params, weights)

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities (n, classes), always in float32."""
        with exact_bits(), torch.no_grad():
            weights = self._weights(params)
            out = np.empty((len(x), self.classes), np.float32)
            for at in range(0, len(x), _AT_A_TIME):
                scaled = self.scale(torch.tensor(x[at : at + _AT_A_TIME], device=self.device))
                out[at : at + _AT_A_TIME] = step.forward(weights, scaled).logits.softmax(1).cpu().numpy()
            return out

    def scale(self, x: Tensor) -> Tensor:
        """(n, h, w, c) pixels as (n, c, h, w) numbers in channels-last memory."""
        if x.dtype == torch.uint8:
            mean, std = (torch.tensor(v, dtype=torch.float32, device=x.device) for v in (self.mean, self.std))
            x = x.float().sub_(255 * mean).div_(255 * std)
        return x.view(-1, *self.image).permute(0, 3, 1, 2)

    def reference(self) -> nn.Module:
        """The same network for autograd: what the hand-written step is checked against, and what runs on a GPU."""
        return Reference(self)

    def _weights(self, params: Params) -> step.Weights:
        tensors = (torch.tensor(params[name], device=self.device) for name in NAMES)
        return step.Weights(*(t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in tensors))

    def _hutchinson(
        self, weights: step.Weights, batch: "_Batches", seed: int, rows: NDArray[np.intp], t: int
    ) -> tuple[Tensors, Tensors]:
        loss = partial(_loss, *batch(rows))
        return curvature.hutchinson(loss, list(weights), curvature.signs(seed, t))


class _Batches:
    """A client's examples as tensors, and the minibatch of given rows, scaled and in the type of the layers."""

    def __init__(self, learner: CNN, examples: Examples) -> None:
        self.learner = learner
        self.x = torch.tensor(np.asarray(examples.x), device=learner.device)
        self.y = torch.tensor(np.asarray(examples.y).astype(np.int64), device=learner.device)

    @property
    def dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.learner.precision == "bf16" else torch.float32

    def __call__(self, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor]:
        index = torch.as_tensor(rows, device=self.learner.device)
        return self.learner.scale(self.x[index]), self.y[index]


class _Pass(NamedTuple):
    weights: step.Weights
    trace: step.Trace
    slopes: step.Slopes


def _pass(weights: step.Weights, batch: _Batches, rows: NDArray[np.intp], divide: int) -> _Pass:
    x, y = batch(rows)
    w = step.Weights(*(v.to(batch.dtype) for v in weights))
    trace = step.forward(w, x.to(batch.dtype))
    return _Pass(w, trace, step.slopes(w, trace, step.mistake(trace.logits, y) / divide))


def _slopes(weights: step.Weights, batch: _Batches, rows: NDArray[np.intp]) -> Tensors:
    done = _pass(weights, batch, rows, len(rows))
    return [g.to(w.dtype) for g, w in zip(step.gradient(*done), weights, strict=True)]


def _fisher(weights: step.Weights, batch: _Batches, rows: NDArray[np.intp], t: int) -> tuple[Tensors, Tensors]:
    done = _pass(weights, batch, rows, 1)
    mean, squares = step.gradient(*done), step.squares(*done)
    return [g.float() / len(rows) for g in mean], [s.float() / len(rows) for s in squares]


def _loss(x: Tensor, y: Tensor, weights: Sequence[Tensor]) -> Tensor:
    return F.cross_entropy(_logits(weights, x), y)


def _logits(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """The network for autograd, in plain calls of torch."""
    f1, b1, f2, b2, d1, l1, d2, l2 = weights
    x = F.relu(F.max_pool2d(F.conv2d(x, f1, b1, padding=2), 2))
    x = F.relu(F.max_pool2d(F.conv2d(x, f2, b2, padding=2), 2))
    x = F.relu(F.linear(x.permute(0, 2, 3, 1).flatten(1), d1, l1))
    return F.linear(x, d2, l2)


def _params(like: Params, weights: step.Weights) -> Params:
    vector = np.empty(like.layout.size, np.float32)
    for part, w in zip(like.layout.slices, weights, strict=True):
        vector[part] = w.cpu().contiguous().numpy().reshape(-1)
    return Params(like.layout, vector)


class Reference(nn.Module):
    """The CNN as an ordinary module over scaled (n, c, h, w) inputs, with the learner's names."""

    def __init__(self, learner: CNN) -> None:
        super().__init__()
        (first, channels, _, _), _, (second, _, _, _), _, (hidden, flat), _, (classes, _), _ = learner.shapes
        self.conv1 = nn.Conv2d(channels, first, 5, padding=2)
        self.conv2 = nn.Conv2d(first, second, 5, padding=2)
        self.dense1 = nn.Linear(flat, hidden)
        self.dense2 = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return _logits(list(self.parameters()), x)
