"""The local engine: all clients in this process, one after another."""

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_info

from ..examples import Examples
from ..federation import FitResult, FitTask, Learner


@dataclass(frozen=True)
class LocalCohort:
    """Runs each task with the client's own examples; a client without examples here is a lost one.

    BLAS is held to one thread: the bits of a product may depend on how many share it, and models this small
    gain nothing from more.
    """

    learner: Learner
    examples: Mapping[str, Examples]
    clock: Callable[[], float] = time.perf_counter

    @property
    def deterministic(self) -> bool:
        return bool(getattr(self.learner, "deterministic", True))

    @cached_property
    def numerics(self) -> str:
        return numerics(self.learner)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        threads = ThreadpoolController()
        for task in tasks:
            mine = self.examples.get(task.client)
            if mine is None or not len(mine):
                continue
            began = self.clock()
            with threads.limit(limits=1, user_api="blas"):
                params = self.learner.fit(task.params, mine, epochs=task.epochs, seed=task.seed, solver=task.solver)
            yield FitResult(task.place, task.client, params, len(mine), self.clock() - began)


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
