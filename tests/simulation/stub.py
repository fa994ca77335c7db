"""A task without learning: a model is a hash of what it was made from, so any difference shows and costs nothing."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedforget.datasets import Dataset
from fedforget.examples import Examples
from fedforget.federation import Cohort, FitResult, FitTask
from fedforget.params import Params
from fedforget.workspace import FederationSettings, Task

WIDTH, CLASSES = 3, 3


def _model(*parts: bytes) -> Params:
    """Numbers around one that are a hash of all that went in."""
    digest = hashlib.blake2b(b"".join(parts), digest_size=4 * WIDTH).digest()
    return Params.of({"w": np.frombuffer(digest, "<u4").astype(np.float64).astype(np.float32) / np.float32(2**31) - 1})


@dataclass(frozen=True)
class Hashing:
    """A learner that learns nothing and forgets nothing."""

    numerics: str = "hashing"

    def init(self, seed: int) -> Params:
        return _model(b"init", seed.to_bytes(8, "little"))

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: str = "sgd") -> Params:
        data = examples.x.tobytes() + examples.y.tobytes()
        return _model(bytes(params.body), data, f"{epochs} {seed} {solver}".encode())

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[Any]:
        return np.full((len(x), CLASSES), 1 / CLASSES)


@dataclass(frozen=True)
class Here:
    """Clients asked in turn."""

    learner: Hashing
    examples: Mapping[str, Examples] = field(repr=False)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for task in tasks:
            mine = self.examples[task.client]
            if len(mine):
                model = self.learner.fit(task.params, mine, epochs=task.epochs, seed=task.seed)
                yield FitResult(task.place, task.client, model, len(mine))


def cohort(task: Task, settings: FederationSettings | None = None, workers: int | None = None) -> Cohort:
    return Here(Hashing(), task.examples)


def names(seats: int) -> tuple[str, ...]:
    return tuple(f"client-{seat:03d}" for seat in range(seats))


def task(seats: int) -> Task:
    """Two to four examples a client, each different from all others; the labels go round."""
    mine = {}
    for seat, name in enumerate(names(seats)):
        count = 2 + seat % 3
        x = np.arange(count, dtype=np.float32).reshape(count, 1) + np.float32(100 * seat)
        mine[name] = Examples(x, (np.arange(count) + seat) % CLASSES)
    dataset = Dataset("hashing", "image", Examples.join(list(mine.values())), mine[names(1)[0]], ("0", "1", "2"))
    return Task(dataset, Hashing(), mine)
