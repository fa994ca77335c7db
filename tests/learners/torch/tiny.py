"""Learners, clients and tasks small enough to run by the hundred; importable, so that workers find them."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from fedforget.examples import Examples
from fedforget.federation import Cohort, FitTask, Learner, Place
from fedforget.learners.descent import Descent
from fedforget.learners.linear import Softmax
from fedforget.learners.mlp import MLP
from fedforget.learners.torch import CNN, SGD, Module, NanoGPT, Pixels
from fedforget.seeds import generator

IMAGE, CLASSES, LETTERS, WINDOW = (8, 8, 1), 3, 7, 6


class Net(nn.Module):
    """Everything a module may bring: convolution, running statistics, a counter, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(4 * 8 * 8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.drop(torch.relu(self.norm(self.conv(x)))).flatten(1))


class Plain(nn.Module):
    """One whose examples do not meet in a statistic, as per-example gradients need."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.out = nn.Linear(4 * 8 * 8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.conv(x)).flatten(1))


STEPS = SGD(lr=0.01, batch=8)
PIXELS = Pixels((0.5,), (0.25,))
CONVOLUTION = CNN(IMAGE, CLASSES, (0.5,), (0.25,), sgd=STEPS, filters=(4, 8), hidden=16)
TEXT = NanoGPT(LETTERS, WINDOW, layers=2, heads=2, width=8, sgd=SGD(lr=0.1, batch=4), spread=0.2, stacked=3)
LEARNERS: Mapping[str, Learner] = {
    "softmax": Softmax(64, CLASSES, Descent(lr=0.01, batch=8)),
    "mlp": MLP(64, CLASSES, descent=Descent(lr=0.01, batch=8)),
    "cnn": CONVOLUTION,
    "cnn-bf16": CNN(IMAGE, CLASSES, (0.5,), (0.25,), sgd=STEPS, filters=(4, 8), hidden=16, precision="bf16"),
    "nanogpt": TEXT,
    "module": Module(Plain, PIXELS, sgd=STEPS),
    "module-with-buffers": Module(Net, PIXELS, sgd=STEPS),
}


def pictures(client: str, size: int, seed: int = 0) -> Examples:
    """Each class a bright column of its own, under noise: something to learn."""
    rng = generator(seed, "pictures", client)
    y = rng.integers(0, CLASSES, size)
    x = rng.integers(0, 120, (size, *IMAGE))
    x[np.arange(size), :, 2 * y + 1, 0] += 120
    return Examples(x.astype(np.uint8), y)


def windows(client: str, size: int, seed: int = 0) -> Examples:
    """The next letter is two on, nine times of ten."""
    rng = generator(seed, "windows", client)
    hops = np.where(rng.random((size, WINDOW + 1)) < 0.9, 2, rng.integers(0, LETTERS, (size, WINDOW + 1)))
    hops[:, 0] = rng.integers(0, LETTERS, size)
    text = (hops.cumsum(axis=1) % LETTERS).astype(np.uint8)
    return Examples(text[:, :-1], text[:, 1:])


def examples_for(learner: Learner, client: str, size: int, seed: int = 0) -> Examples:
    if isinstance(learner, NanoGPT):
        return windows(client, size, seed)
    mine = pictures(client, size, seed)
    if isinstance(learner, Softmax | MLP):
        return Examples(mine.x.astype(np.float32) / 255, mine.y)
    return mine


SIZES = {f"client-{i}": size for i, size in enumerate((17, 5, 30, 8, 1, 23, 11))}


def clients_for(learner: Learner, sizes: Mapping[str, int] = SIZES) -> dict[str, Examples]:
    return {client: examples_for(learner, client, size) for client, size in sizes.items()}


def tasks_for(learner: Learner, clients: Sequence[str] = tuple(SIZES), epochs: int = 2) -> list[FitTask]:
    """Two shards, so two models to begin from."""
    begin = [learner.init(s) for s in range(2)]
    return [FitTask(Place(0, i % 2, 3), c, begin[i % 2], epochs, 100 + i) for i, c in enumerate(clients)]


def digests(cohort: Cohort, tasks: Sequence[FitTask]) -> dict[str, str]:
    return {r.client: r.params.digest for r in cohort.fit(tasks)}


def loss(learner: Learner, params: object, examples: Examples) -> float:
    """Mean cross-entropy in nats."""
    chance = learner.predict(params, examples.x)  # type: ignore[arg-type]
    flat = chance.reshape(-1, chance.shape[-1])
    return float(-np.log(flat[np.arange(len(flat)), examples.y.reshape(-1).astype(np.intp)] + 1e-12).mean())


class Fragile:
    """A learner that fails in ways real ones do not, when told to by a client's labels. Top-level, so it pickles."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.inner = LEARNERS["softmax"]
        self.init = self.inner.init
        self.predict = self.inner.predict

    def fit(self, params, examples, *, epochs, seed, solver="sgd"):  # type: ignore[no-untyped-def]
        if (examples.y == 99).any():
            _fail(self.how)
        return self.inner.fit(params, examples, epochs=epochs, seed=seed, solver=solver)


def _fail(how: str) -> None:
    import os

    if how == "dies":
        os._exit(7)
    raise ArithmeticError("as told")


class Stillborn:
    """A learner that no other process can load."""

    def __init__(self) -> None:
        self.init = LEARNERS["softmax"].init

    def __reduce__(self) -> tuple[object, ...]:
        return partial(_fail, "raises"), ()
