"""World: a federation's data, learner, plan and cohort, made ready."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..datasets import Dataset, load
from ..engines.local import numerics
from ..examples import Examples
from ..federation import Cohort, FitResult, FitTask, Learner, Settings
from ..plan import Plan
from ..seeds import derive, generator
from ..workspace.settings import FederationSettings, Partition
from ..workspace.tasks import Task, open_engine, task_on
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


@dataclass(frozen=True)
class Ward:
    """One world's clients in a cohort that many worlds share: to start workers costs more than a small training."""

    cohort: Cohort
    prefix: str

    @property
    def pids(self) -> tuple[int, ...] | None:
        return getattr(self.cohort, "pids", None)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for result in self.cohort.fit([replace(t, client=self.prefix + t.client) for t in tasks]):
            yield replace(result, client=result.client.removeprefix(self.prefix))


def lab(federation: Federation) -> tuple[Any, ...]:
    """What worlds must have in common to share a cohort: the learner and the data set."""
    return federation.task, federation.learner, federation.lr, federation.batch, federation.context


@contextmanager
def opened(
    federations: Sequence[Federation], data: Path | None, workers: int | None
) -> Iterator[dict[Federation, World]]:
    """Worlds of one lab with a cohort for all of them, which is closed at the end."""
    whole = load_whole(federations[0], data)
    tasks = {f: task_on(dealt(f, whole), settings_of(f)) for f in federations}
    everybody: dict[str, Examples] = {}
    for at, (federation, task) in enumerate(tasks.items()):
        chosen = federation.selected(tuple(task.examples))
        everybody |= {f"{at}/{name}": task.examples[name] for name in chosen}
    first = next(iter(tasks.values()))
    cohort = open_engine(replace(first, examples=everybody), settings_of(federations[0]), workers)
    try:
        yield {
            federation: World(federation, task, Ward(cohort, f"{at}/"), tuple(task.examples))
            for at, (federation, task) in enumerate(tasks.items())
        }
    finally:
        close = getattr(cohort, "close", None)
        if close is not None:
            close()


def settings_of(federation: Federation) -> FederationSettings:
    """As `fedforget init` has them: what data and learner follow from."""
    return FederationSettings(
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


def load_whole(federation: Federation, data: Path | None) -> Dataset:
    return load(federation.task, data, context=federation.context if federation.task == "shakespeare" else None)


def dealt(federation: Federation, whole: Dataset) -> Dataset:
    """The data set with as many training examples as the federation deals out."""
    if not federation.examples:
        return whole
    order = generator(derive(federation.seed, "examples"), "examples").permutation(len(whole.train))
    return replace(whole, train=whole.train.take(sorted(order[: federation.examples])))


def _partition(federation: Federation) -> Partition:
    if federation.partition == "iid":
        return "iid"
    return "buckets" if federation.task == "shakespeare" else "by-class"
