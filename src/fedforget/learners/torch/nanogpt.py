"""nanoGPT over characters: 4 layers, 4 heads, embedding 16, no biases, the head tied to the embedding. Top to bottom.

A model this small leaves a core idle between calls, so clients are trained *stacked*: every tensor has the clients as
its first dimension and every product is a batch of products, one a client. A client's bits must not depend on who
else is in its stack, for exact forgetting rests on that. Three rules see to it: every minibatch is padded to full
size with rows of weight zero, so a client's shapes are its own; a slice's size is a multiple of `_LANES` wherever a
function is evaluated by vectors, so that a number never falls into the unvectorised remainder for one stack and not
for another; and clients meet in no sum. Those who are done leave the stack.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ...errors import SettingError
from ...examples import Examples
from ...federation import Solver
from ...params import Layout, Params
from . import curvature
from .attention import attend, attend_plainly
from .numerics import exact_bits, fingerprint, is_deterministic
from .sgd import SGD, Tensors, orders, precondition, unknown_solver
from .stacking import Job

_LANES = 32  # two vectors of 16 floats: what torch evaluates at a time
_FILLING = 4096  # characters in a step past which more only cost memory and cache
_AT_A_TIME = 64  # windows predicted at once


@dataclass(frozen=True)
class NanoGPT:
    """`x` and `y` are windows of character ids, (n, up to `context`); `y` is `x` one character on."""

    vocabulary: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 16
    sgd: SGD = field(default_factory=SGD)
    spread: float = 0.02  # of the initial weights
    stacked: int | None = None  # clients in a stack at most; none: as many as fill a core
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("vocabulary", "context", "layers", "heads", "width", "stacked"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise SettingError(name, getattr(self, name), "1 or more")
        if self.width % self.heads:
            raise SettingError("width", self.width, f"a multiple of the heads, {self.heads}")

    @property
    def stack(self) -> int:
        return self.stacked or max(1, _FILLING // (self.sgd.batch * self.context))

    @property
    def deterministic(self) -> bool:
        return is_deterministic(self.device)

    @property
    def numerics(self) -> str:
        return fingerprint(self.device, "fp32")

    @cached_property
    def layout(self) -> Layout:
        d = self.width
        shapes: dict[str, tuple[int, ...]] = {"wte.weight": (self.vocabulary, d), "wpe.weight": (self.context, d)}
        for i in range(self.layers):
            shapes |= {
                f"h.{i}.ln_1.weight": (d,),
                f"h.{i}.attn.c_attn.weight": (3 * d, d),
                f"h.{i}.attn.c_proj.weight": (d, d),
                f"h.{i}.ln_2.weight": (d,),
                f"h.{i}.mlp.c_fc.weight": (4 * d, d),
                f"h.{i}.mlp.c_proj.weight": (d, 4 * d),
            }
        shapes["ln_f.weight"] = (d,)
        return Layout(tuple(shapes), tuple(shapes.values()), ("float32",) * len(shapes))

    def init(self, seed: int) -> Params:
        """nanoGPT's: normal of deviation `spread`, less where a layer adds to the residual, ones for the norms."""
        rng = np.random.Generator(np.random.PCG64(seed))
        arrays: dict[str, NDArray[Any]] = {}
        for name, shape in zip(self.layout.names, self.layout.shapes, strict=True):
            scale = self.spread / math.sqrt(2 * self.layers) if name.endswith("c_proj.weight") else self.spread
            value = np.ones(shape) if len(shape) == 1 else scale * rng.standard_normal(shape)
            arrays[name] = value.astype(np.float32)
        return Params.of(arrays)

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        return self.fit_stack([Job(params, examples, epochs, seed, solver)])[0]

    def fit_stack(self, jobs: Sequence[Job]) -> list[Params]:
        with exact_bits(), torch.no_grad():
            done: dict[int, Params] = {}
            stacked = [i for i, job in enumerate(jobs) if job.solver == "sgd"]
            for at in range(0, len(stacked), self.stack):
                group = stacked[at : at + self.stack]
                done |= zip(group, _descend_together(self, [jobs[i] for i in group]), strict=True)
            done |= {i: self._precondition(job) for i, job in enumerate(jobs) if i not in done}
            return [done[i] for i in range(len(jobs))]

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[np.float32]:
        """The probabilities of the next character at each place, (n, t, vocabulary)."""
        with exact_bits(), torch.no_grad():
            weights = _views(self, torch.tensor(params.vector, device=self.device)[None])
            out = np.empty((*x.shape, self.vocabulary), np.float32)
            for at in range(0, len(x), _AT_A_TIME):
                ids = torch.tensor(x[at : at + _AT_A_TIME].astype(np.int64), device=self.device)
                logits = forward(self, weights, ids[None])
                out[at : at + _AT_A_TIME] = logits.softmax(-1).view(*ids.shape, -1).cpu().numpy()
            return out

    def _precondition(self, job: Job) -> Params:
        """RapidRetrain, one client at a time."""
        flat = torch.tensor(job.params.vector, device=self.device)[None]
        weights = _views(self, flat)
        data = _Windows(self, job.examples)
        if job.solver == "fisher":
            curves = partial(_fisher, self, weights, data)
        elif job.solver == "hutchinson":
            curves = partial(_hutchinson, self, weights, data, job.seed)
        else:
            raise unknown_solver(job.solver)
        precondition(weights, orders(len(job.examples), self.sgd.batch, job.epochs, job.seed), curves, self.sgd)
        return Params(job.params.layout, flat[0].cpu().numpy())


# --- the model: every weight is (clients, …), x is (clients, windows, characters) ----------------------------


def forward(model: NanoGPT, weights: Sequence[Tensor], x: Tensor, attention: Any = attend) -> Tensor:
    """Logits, (clients, windows · characters, vocabulary)."""
    clients, windows, t = x.shape
    wte, wpe, *blocks, last = weights
    rows = x.reshape(clients, -1) + model.vocabulary * torch.arange(clients, device=x.device)[:, None]
    h = F.embedding(rows, wte.reshape(-1, model.width))
    h = (h.view(clients, windows, t, -1) + wpe[:, None, :t]).view(clients, windows * t, -1)
    for i in range(model.layers):
        norm1, qkv, out, norm2, up, down = blocks[6 * i : 6 * i + 6]
        mixed = attention(_dense(_norm(h, norm1), qkv).view(clients * windows, t, -1), model.heads)
        h = h + _dense(mixed.view_as(h), out)
        h = h + _dense(F.gelu(_dense(_norm(h, norm2), up)), down)
    return _dense(_norm(h, last), wte)


def _dense(x: Tensor, w: Tensor) -> Tensor:
    return torch.bmm(x, w.transpose(1, 2))


def _norm(x: Tensor, w: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:]) * w[:, None]


def loss(model: NanoGPT, weights: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor, attention: Any) -> Tensor:
    """Cross-entropy in nats, each character with its share: the sum over clients, whose gradients do not meet."""
    logits = forward(model, weights, x, attention)
    each = F.cross_entropy(logits.view(-1, model.vocabulary), y.reshape(-1), reduction="none")
    return (each * share.reshape(-1)).sum()


# --- training a stack ----------------------------------------------------------------------------------------


class _Windows:
    """A client's windows, and minibatches of them padded to full size."""

    def __init__(self, model: NanoGPT, examples: Examples) -> None:
        self.x, self.y = (torch.tensor(np.asarray(part).astype(np.int64)) for part in (examples.x, examples.y))
        if self.x.dim() != 2 or self.x.shape != self.y.shape or self.x.shape[1] > model.context:
            shapes = (tuple(self.x.shape), tuple(self.y.shape))
            raise SettingError("examples", shapes, f"two of (n, up to {model.context})")
        t = self.x.shape[1]
        self.rows = model.sgd.batch
        while self.rows * t % _LANES:
            self.rows += 1

    def padded(self, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor, Tensor]:
        index = torch.from_numpy(rows)
        t = self.x.shape[1]
        x, y = torch.zeros((2, self.rows, t), dtype=torch.int64)
        share = torch.zeros(self.rows, t)
        x[: len(rows)], y[: len(rows)] = self.x[index], self.y[index]
        share[: len(rows)] = 1 / (len(rows) * t)
        return x, y, share


def _descend_together(model: NanoGPT, jobs: Sequence[Job]) -> list[Params]:
    """SGD with momentum; the longest job first, so that those still at work are the first rows of every tensor."""
    data = [_Windows(model, job.examples) for job in jobs]
    steps = [job.epochs * -(-len(job.examples) // model.sgd.batch) for job in jobs]
    windows = {d.x.shape[1] for d in data}
    if len(windows) > 1:
        return [result for job in jobs for result in _descend_together(model, [job])]
    ranks = sorted(range(len(jobs)), key=lambda i: -steps[i])
    size = model.layout.size
    # Rows are padded, so that a row's end is a row's end for any number of rows.
    padded = size + _LANES - size % _LANES
    flat, speed = torch.zeros(2, len(jobs), padded, device=model.device)[..., :size]
    for row, i in enumerate(ranks):
        flat[row] = torch.tensor(jobs[i].params.vector)
    streams = [orders(len(jobs[i].examples), model.sgd.batch, jobs[i].epochs, jobs[i].seed) for i in ranks]
    live, leaves = 0, list[Tensor]()
    for batch in _batches([data[i] for i in ranks], streams, [steps[i] for i in ranks]):
        if len(batch[0]) != live:
            live = len(batch[0])
            leaves = [w.detach().requires_grad_() for w in _views(model, flat[:live])]
        with torch.enable_grad():
            x, y, share = (part.to(model.device) for part in batch)
            total = loss(model, leaves, x, y, share, attend)
            grads = torch.autograd.grad(total, leaves)
        speed[:live].mul_(model.sgd.momentum).add_(torch.cat([g.reshape(live, -1) for g in grads], dim=1))
        flat[:live].add_(speed[:live], alpha=-model.sgd.lr)
    results = {i: flat[row].cpu().numpy().copy() for row, i in enumerate(ranks)}
    return [Params(job.params.layout, results[i]) for i, job in enumerate(jobs)]


def _batches(
    data: Sequence[_Windows], streams: Sequence[Iterator[NDArray[np.intp]]], steps: Sequence[int]
) -> Iterator[tuple[Tensor, ...]]:
    """The next minibatch of everyone still at work, stacked."""
    for step in range(max(steps, default=0)):
        live = sum(step < total for total in steps)
        parts = [data[i].padded(next(streams[i])) for i in range(live)]
        yield tuple(torch.stack(column) for column in zip(*parts, strict=True))


def _views(model: NanoGPT, flat: Tensor) -> Tensors:
    """The named tensors inside the rows of `flat`."""
    layout = model.layout
    return [flat[:, part].view(len(flat), *shape) for part, shape in zip(layout.slices, layout.shapes, strict=True)]


# --- RapidRetrain --------------------------------------------------------------------------------------------


def _fisher(
    model: NanoGPT, weights: Sequence[Tensor], data: _Windows, rows: NDArray[np.intp], t: int
) -> tuple[Tensors, Tensors]:
    """A stack whose clients are the windows of the batch: its gradients are the examples' own."""
    index = torch.from_numpy(rows)
    x, y = (part[index][:, None].to(model.device) for part in (data.x, data.y))
    leaves = [w.repeat(len(rows), *(1,) * (w.dim() - 1)).requires_grad_() for w in weights]
    share = torch.full(x.shape, 1 / x.shape[-1], device=model.device)
    with torch.enable_grad():
        grads = torch.autograd.grad(loss(model, leaves, x, y, share, attend), leaves)
    return [g.mean(0, keepdim=True) for g in grads], [g.square().mean(0, keepdim=True) for g in grads]


def _hutchinson(
    model: NanoGPT, weights: Sequence[Tensor], data: _Windows, seed: int, rows: NDArray[np.intp], t: int
) -> tuple[Tensors, Tensors]:
    index = torch.from_numpy(rows)
    x, y = (part[index][None].to(model.device) for part in (data.x, data.y))
    share = torch.full(x.shape, 1 / x[0].numel(), device=model.device)

    def whole(weights: Sequence[Tensor]) -> Tensor:
        return loss(model, weights, x, y, share, attend_plainly)

    return curvature.hutchinson(whole, weights, curvature.signs(seed, t))
