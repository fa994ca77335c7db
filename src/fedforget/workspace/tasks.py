"""Tasks: which data and which learner a federation's settings stand for."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from ..datasets import Dataset, load
from ..datasets.partition import buckets, by_class, client_names, iid
from ..errors import SettingError
from ..examples import Examples
from ..federation import Learner
from ..learners.descent import Descent
from ..learners.linear import Softmax
from ..learners.mlp import MLP
from .settings import FederationSettings

_OWN = {"mnist": "cnn", "fashion-mnist": "cnn", "cifar10": "cnn", "shakespeare": "nanogpt"}


@dataclass(frozen=True)
class Task:
    """A learner, every seat's examples, and examples nobody trains on."""

    dataset: Dataset
    learner: Learner
    examples: Mapping[str, Examples]

    @property
    def test(self) -> Examples:
        return self.dataset.test


def build(settings: FederationSettings, data: Path | None = None) -> Task:
    """Always over all seats: who is there and who has left moves no example of anybody else."""
    dataset = load(settings.task, data, context=settings.context if settings.task == "shakespeare" else None)
    parts = _parts(settings, dataset)
    examples = {name: dataset.train.take(rows) for name, rows in parts.items()}
    return Task(dataset, build_learner(settings, dataset), examples)


def _parts(settings: FederationSettings, dataset: Dataset) -> Mapping[str, NDArray[np.intp]]:
    count, seed = len(dataset.train), settings.seed
    if settings.partition == "by-class":
        if dataset.kind == "text":
            raise SettingError("partition", settings.partition, "'iid' or 'buckets' for text")
        return by_class(dataset.train.y, settings.places, seed, share=settings.share)
    if settings.partition == "buckets":
        return buckets(count, settings.places, seed)
    return iid(count, settings.places, seed)


def own_learner(task: str) -> str:
    """The learner a task is trained with unless another is asked for."""
    return _OWN.get(task, "softmax")


def build_learner(settings: FederationSettings, dataset: Dataset) -> Learner:
    features = 1
    for side in dataset.shape:
        features *= side
    descent = Descent(lr=settings.lr or 0.05, momentum=settings.momentum, batch=settings.batch or 8)
    name = settings.learner or own_learner(settings.task)
    if name == "softmax":
        return Softmax(features, dataset.classes, descent)
    if name == "mlp":
        return MLP(features, dataset.classes, settings.hidden, descent)
    raise SettingError("learner", name, "one of softmax, mlp")


def numerics(learner: Learner) -> str:
    """What a run's bits depend on beside its inputs: the arithmetic of libraries and machine."""
    own = getattr(learner, "numerics", None)
    if isinstance(own, str):
        return own
    blas = [
        f"{i['internal_api']} {i['version']} {i.get('architecture', '')}"
        for i in threadpool_info()
        if i["user_api"] == "blas"
    ]
    return ", ".join([f"numpy {np.__version__}", platform.machine(), *sorted(set(blas))])


def seat_names(settings: FederationSettings) -> tuple[str, ...]:
    return client_names(settings.places)
