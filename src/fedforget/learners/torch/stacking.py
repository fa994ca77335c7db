"""Stacking: clients trained side by side as slices of one batch, for models too small to fill a core alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...examples import Examples
from ...federation import Solver
from ...params import Params


@dataclass(frozen=True)
class Job:
    """The arguments of one `fit`."""

    params: Params
    examples: Examples
    epochs: int
    seed: int
    solver: Solver = "sgd"


@runtime_checkable
class Stacking(Protocol):
    """A learner that fits several clients at once. Each result must be bit for bit that of the client alone."""

    @property
    def stack(self) -> int:
        """How many at most."""

    def fit_stack(self, jobs: Sequence[Job]) -> list[Params]:
        """One result a job, in their order."""
