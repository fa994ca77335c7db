"""Relearn time: how many epochs until the forgotten data is fitted again.

A model that keeps a residue of the leaver gets there sooner than one that never saw it; as fast is no proof that
nothing is left.
"""

from dataclasses import dataclass

from ..errors import SettingError
from ..examples import Examples
from ..federation import Learner
from ..params import Params
from ..seeds import derive
from .quality import Quality, quality


@dataclass(frozen=True)
class Goal:
    """When data counts as fitted: accuracy at least, loss at most, or both."""

    accuracy: float | None = None
    loss: float | None = None

    def __post_init__(self) -> None:
        if self.accuracy is None and self.loss is None:
            raise SettingError("goal", None, "an accuracy, a loss or both")

    def met(self, found: Quality) -> bool:
        fits = self.accuracy is None or found.accuracy >= self.accuracy
        return fits and (self.loss is None or found.loss <= self.loss)


@dataclass(frozen=True)
class Relearn:
    """Epochs to the goal; None: not within the limit."""

    forgot: int | None
    never_saw: int | None
    limit: int

    @property
    def ratio(self) -> float | None:
        """Below 1: the model that forgot learns faster than one that never saw the data. None if it cannot be said."""
        if self.forgot is None or not self.never_saw:
            return None
        return self.forgot / self.never_saw


def relearn(
    learner: Learner,
    forgot: Params,
    never_saw: Params,
    examples: Examples,
    goal: Goal,
    *,
    limit: int = 50,
    seed: int = 0,
) -> Relearn:
    """Both models trained on the forgotten data alone, in the same batches."""
    return Relearn(
        epochs_until(learner, forgot, examples, goal, limit=limit, seed=seed),
        epochs_until(learner, never_saw, examples, goal, limit=limit, seed=seed),
        limit,
    )


def epochs_until(
    learner: Learner, params: Params, examples: Examples, goal: Goal, *, limit: int = 50, seed: int = 0
) -> int | None:
    """Epochs of training until the goal is met, 0 if it is from the start, None if `limit` are not enough.

    One epoch a call, so optimiser state begins anew with each; the same holds for the model compared with.
    """
    for epoch in range(limit + 1):
        if goal.met(quality(learner.predict(params, examples.x), examples.y)):
            return epoch
        if epoch < limit:
            params = learner.fit(params, examples, epochs=1, seed=derive(seed, "relearn", epoch))
    return None
