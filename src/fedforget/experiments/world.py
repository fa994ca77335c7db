"""World: a federation's data, learner, plan and cohort, made ready."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..datasets import Dataset, load
from ..examples import Examples
from ..federation import Cohort, Learner, Settings
from ..plan import Plan
from ..seeds import derive, generator
from ..workspace.settings import FederationSettings, Partition
from ..workspace.tasks import Task, numerics, open_engine, task_on
from .case import Federation


@dataclass(frozen=True, eq=False)
class World:
    """Everything but the federation being sharded or not: both share data, learner and cohort."""

    federation: Federation
    task: Task
    cohort: Cohort
    names: tuple[str, ...]

    @property
    def learner(self) -> Learner:
        return self.task.learner

    @property
    def plan(self) -> Plan:
        return self.federation.plan(self.names)

    @property
    def settings(self) -> Settings:
        return Settings(epochs=self.federation.epochs)

    @property
    def examples(self) -> Mapping[str, Examples]:
        return self.task.examples

    @property
    def numerics(self) -> str:
        return numerics(self.learner)

    def of(self, federation: Federation) -> "World":
        """The other way to shard the same."""
        assert replace(federation, sharded=self.federation.sharded) == self.federation
        return replace(self, federation=federation)


@contextmanager
def opened(federation: Federation, data: Path | None, workers: int | None) -> Iterator[World]:
    """The world with its cohort, which is closed at the end."""
    settings = FederationSettings(
        task=federation.task,
        learner=federation.learner,
        clients=federation.clients,
        shards=federation.shards,
        partition=_partition(federation),
        lr=federation.lr,
        batch=federation.batch,
        context=federation.context,
        seed=federation.seed,
    )
    task = task_on(dataset(federation, data), settings)
    chosen = federation.selected(tuple(task.examples))
    cohort = open_engine(replace(task, examples={name: task.examples[name] for name in chosen}), settings, workers)
    try:
        yield World(federation, task, cohort, tuple(task.examples))
    finally:
        close = getattr(cohort, "close", None)
        if close is not None:
            close()


def dataset(federation: Federation, data: Path | None) -> Dataset:
    """The data set, or as many of its training examples as the federation deals out."""
    whole = load(federation.task, data, context=federation.context if federation.task == "shakespeare" else None)
    if not federation.examples:
        return whole
    order = generator(derive(federation.seed, "examples"), "examples").permutation(len(whole.train))
    return replace(whole, train=whole.train.take(sorted(order[: federation.examples])))


def _partition(federation: Federation) -> Partition:
    if federation.partition == "iid":
        return "iid"
    return "buckets" if federation.task == "shakespeare" else "by-class"
