"""Reference models: the same federation trained again and again, each time with half of the candidates missing.

The plan stays (who sits where is known to the attacker), the training's randomness does not: each federation has its
own initial model and batch orders, for an attacker does not know the seed. Everything is a pure function of (seed,
index), so an interrupted series goes on from any index.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError, UnknownClient
from ..examples import Examples
from ..federation import Cohort, FitResult, FitTask, Learner, Settings, Solver, train_all
from ..params import Params
from ..plan import Plan
from ..seeds import derive, generator


@dataclass(frozen=True, eq=False)
class Reference:
    """One reference federation: which candidates took part, and the shards' final models."""

    index: int
    members: NDArray[np.bool_]  # (candidates,)
    models: Mapping[int, Params]  # by shard; a shard nobody was in has none


@dataclass(frozen=True)
class ReseededLearner:
    """The learner with initial models of its own."""

    learner: Learner
    salt: int

    def init(self, seed: int) -> Params:
        return self.learner.init(derive(self.salt, "reference/init", seed))

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        return self.learner.fit(params, examples, epochs=epochs, seed=seed, solver=solver)

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[Any]:
        return self.learner.predict(params, x)


@dataclass(frozen=True)
class ReseededCohort:
    """The cohort with batch orders of its own."""

    cohort: Cohort
    salt: int

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return self.cohort.fit([replace(t, seed=derive(self.salt, "reference/fit", t.seed)) for t in tasks])


def memberships(candidates: int, count: int, seed: int) -> NDArray[np.bool_]:
    """(count, candidates): each candidate in half of the federations, drawn apart from the others.

    Federations come in pairs of opposites (2i has exactly the candidates that 2i+1 has not), so every candidate is in
    exactly half of any even number of first ones, and a longer series begins like a shorter one.
    """
    if candidates < 1:
        raise SettingError("candidates", candidates, "1 or more")
    if count < 2 or count % 2:
        raise SettingError("count", count, "even and 2 or more, for half are trained with each candidate")
    rows = [generator(seed, "reference/members", i).random(candidates) < 0.5 for i in range(count // 2)]
    return np.array([row for first in rows for row in (first, ~first)])


def reference(
    cohort: Cohort,
    learner: Learner,
    plan: Plan,
    settings: Settings,
    candidates: Sequence[str],
    members: NDArray[np.bool_],
    index: int,
    seed: int,
) -> Reference:
    """The one federation of this index, over `Plan.without` the candidates that are not members."""
    gone = [c for c, there in zip(candidates, members, strict=True) if not there]
    models = train_again(cohort, learner, plan.without(gone), settings, derive(seed, "reference", index))
    return Reference(index, np.asarray(members, dtype=bool), models)


def references(
    cohort: Cohort,
    learner: Learner,
    plan: Plan,
    settings: Settings,
    candidates: Sequence[str],
    *,
    count: int = 64,
    seed: int = 0,
    start: int = 0,
) -> Iterator[Reference]:
    """Reference federations `start` to `count`; the series is the same wherever it is begun."""
    unknown = set(candidates) - set(plan.clients)
    if unknown:
        raise UnknownClient(unknown, plan.clients)
    if len(set(candidates)) < len(candidates):
        raise SettingError("candidates", tuple(candidates), "different clients")
    mask = memberships(len(candidates), count, seed)
    for index in range(start, count):
        yield reference(cohort, learner, plan, settings, candidates, mask[index], index, seed)


def train_again(cohort: Cohort, learner: Learner, plan: Plan, settings: Settings, salt: int) -> dict[int, Params]:
    """The final model of each living shard, trained under other randomness than the plan's."""
    finals: dict[int, Params] = {}
    for round in train_all(ReseededCohort(cohort, salt), plan, ReseededLearner(learner, salt), settings):
        finals[round.place.shard] = round.model
    living = plan.living_shards(len(plan.stages) - 1)
    return {shard: model for shard, model in finals.items() if shard in living}


def example_members(masks: NDArray[np.bool_], owners: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """(models, candidates) to (models, n): an example is in where its owner is; `owners` are candidates' places."""
    return np.asarray(masks, dtype=bool)[:, np.asarray(owners, dtype=np.intp)]
