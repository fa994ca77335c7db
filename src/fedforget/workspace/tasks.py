"""Tasks: which data and which learner a federation's settings stand for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..datasets import Dataset, load, outline
from ..datasets.partition import buckets, by_class, client_names, iid
from ..engines.local import LocalCohort, numerics
from ..errors import SettingError
from ..examples import Examples
from ..federation import Cohort, Learner
from ..learners.descent import Descent
from ..learners.linear import Softmax
from ..learners.mlp import MLP
from .settings import FederationSettings

_OWN = {"mnist": "cnn", "fashion-mnist": "cnn", "cifar10": "cnn", "shakespeare": "nanogpt"}

_KINDS = {"softmax": "image", "mlp": "image", "cnn": "image", "nanogpt": "text"}
_TORCH = ("cnn", "nanogpt")
# Learning rate and batch. The authors' code has (0.005, 64) for both; a client has 154 windows of text, so that is
# three small steps an epoch, and the nanoGPT ends at 2.9 nats a character (experiments/accuracy).
_STEPS = {"cnn": (0.005, 64), "nanogpt": (0.05, 10)}


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
    """The task on the data set of its name."""
    return task_on(load(settings.task, data, context=_window(settings)), settings)


def bare_learner(settings: FederationSettings) -> Learner:
    """The task's learner without its data, for whoever only looks at models: an auditor, on a copy."""
    return build_learner(settings, outline(settings.task, context=_window(settings)))


def _window(settings: FederationSettings) -> int | None:
    return settings.context if settings.task == "shakespeare" else None


def task_on(dataset: Dataset, settings: FederationSettings) -> Task:
    """Always over all seats: who is there and who has left moves no example of anybody else."""
    deal = parts(settings, dataset)
    learner = build_learner(settings, dataset)
    if (settings.learner or own_learner(settings.task)) not in _TORCH:
        dataset = ready(dataset)
    return Task(dataset, learner, {name: dataset.train.take(rows) for name, rows in deal.items()})


def ready(dataset: Dataset) -> Dataset:
    """Pixels as numbers, for learners that do not scale them themselves."""
    if not dataset.raw:
        return dataset
    train, test = (Examples(dataset.scaled(e.x), e.y) for e in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test, raw=False)


def parts(settings: FederationSettings, dataset: Dataset) -> Mapping[str, NDArray[np.intp]]:
    """Which rows of the data set each seat gets."""
    count, seed, how = len(dataset.train), settings.seed, settings.partition
    if how == "non-iid":  # the paper's, for each kind of data
        how = "buckets" if dataset.kind == "text" else "by-class"
    if how == "by-class":
        if dataset.kind == "text":
            raise SettingError("partition", settings.partition, "'iid' or 'buckets' for text")
        return by_class(dataset.train.y, settings.places, seed, share=settings.share)
    if how == "buckets":
        return buckets(count, settings.places, seed)
    return iid(count, settings.places, seed)


def own_learner(task: str) -> str:
    """The learner a task is trained with unless another is asked for."""
    return _OWN.get(task, "softmax")


def build_learner(settings: FederationSettings, dataset: Dataset) -> Learner:
    """The learner of that name, with the settings' hyperparameters or its own."""
    name = settings.learner or own_learner(settings.task)
    if name not in _KINDS:
        raise SettingError("learner", name, "one of " + ", ".join(_KINDS))
    if dataset.kind != _KINDS[name]:
        fits = ", ".join(n for n, kind in _KINDS.items() if kind == dataset.kind)
        raise SettingError("learner", name, f"one of {fits} for {dataset.name}")
    if settings.precision != "fp32" and name != "cnn":
        raise SettingError("precision", settings.precision, f"'fp32' for {name}: only the cnn computes in bf16")
    if name == "cnn" and len(dataset.shape) != 3:
        raise SettingError("learner", name, f"'softmax' or 'mlp' for {dataset.name}, whose examples are no pictures")
    if name in _TORCH:
        return _torch_learner(name, settings, dataset)
    features = prod(dataset.shape)
    descent = Descent(lr=settings.lr or 0.05, momentum=settings.momentum, batch=settings.batch or 8)
    if name == "softmax":
        return Softmax(features, dataset.classes, descent)
    return MLP(features, dataset.classes, settings.hidden, descent)


def _torch_learner(name: str, settings: FederationSettings, dataset: Dataset) -> Learner:
    from ..learners.torch import CNN, SGD, NanoGPT  # only here: torch takes seconds to import

    lr, batch = _STEPS[name]
    sgd = SGD(lr=settings.lr or lr, momentum=settings.momentum, batch=settings.batch or batch)
    if name == "nanogpt":
        return NanoGPT(dataset.classes, context=settings.context, sgd=sgd)
    height, width, channels = dataset.shape
    return CNN(
        (height, width, channels), dataset.classes, dataset.mean, dataset.std, sgd=sgd, precision=settings.precision
    )


def open_engine(task: Task, settings: FederationSettings, workers: int | None) -> Cohort:
    """Where the clients run: models this small in this process, those of PyTorch on a pool of workers."""
    if (settings.learner or own_learner(settings.task)) not in _TORCH:
        return LocalCohort(task.learner, task.examples)
    from ..learners.torch import open_cohort

    return open_cohort(task.learner, task.examples, workers=workers)


def bits(cohort: Cohort, learner: Learner) -> tuple[str, bool]:
    """What a run's bits depend on beside its inputs, and whether it repeats itself: the engine knows where it runs.

    An engine may have moved the learner to another device; one that does not say computes as the learner here does.
    """
    said = getattr(cohort, "numerics", None)
    steady = getattr(cohort, "deterministic", getattr(learner, "deterministic", True))
    return said if isinstance(said, str) else numerics(learner), bool(steady)


def seat_names(settings: FederationSettings) -> tuple[str, ...]:
    return client_names(settings.places)


def names_of(task: Task, settings: FederationSettings) -> tuple[str, ...]:
    """The clients' names, seat by seat."""
    names = tuple(task.examples)
    return names if len(names) == settings.places else seat_names(settings)
