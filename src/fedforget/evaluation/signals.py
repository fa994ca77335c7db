"""Signals: what an attacker reads off a federation's models about examples.

Two views: `shard`, each example by the model of its owner's shard, the worst case; and `served`, by the ensemble of
all shards, what somebody outside gets to see.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..examples import Examples
from ..federation import Learner
from .combination import pool
from .lira import log_odds
from .quality import TINY, confidence
from .worlds import Models

View = Literal["shard", "served"]
VIEWS: tuple[View, ...] = get_args(View)
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Questions:
    """Examples an attacker asks about, whose they are and which shard's model trained on them."""

    examples: Examples
    owners: NDArray[np.intp]  # (n,): places in a list of candidates
    shards: NDArray[np.intp]  # (n,)
    population: Examples  # in nobody's training: what RMIA compares with


Memo = dict[str, tuple[NDArray[Any], NDArray[Any]]]  # model's digest → its probabilities for examples and population


@dataclass(frozen=True, eq=False)
class Signals:
    """One federation's answers, by view."""

    log_odds: Mapping[View, Floats]  # (n,)
    confidence: Mapping[View, Floats]  # (n,)
    population: Mapping[int, Floats]  # shard → (m,)
    served_population: Floats  # (m,)


def ask(candidates: Mapping[str, int], data: Mapping[str, Examples], population: Examples) -> Questions:
    """Everything the candidates own; `candidates` says each one's shard."""
    mine = [c for c in candidates if c in data and len(data[c])]
    if not mine:
        raise SettingError("clients", sorted(candidates), "such that one of them has examples")
    places = {c: at for at, c in enumerate(candidates)}
    lengths = [len(data[c]) for c in mine]
    return Questions(
        Examples.join([data[c] for c in mine]),
        np.repeat([places[c] for c in mine], lengths).astype(np.intp),
        np.repeat([candidates[c] for c in mine], lengths).astype(np.intp),
        population,
    )


def listen(learner: Learner, models: Models, questions: Questions, memo: Memo | None = None) -> Signals:
    """What the models of one federation say; every owner's shard must have a model.

    With a `memo` a model met before is not asked again: worlds of one training differ in few shards.
    """
    missing = set(questions.shards.tolist()) - set(models)
    if missing:
        raise SettingError("shards", sorted(missing), "shards somebody is left in")
    examples, outside = questions.examples, questions.population
    heard: Memo = {} if memo is None else memo
    for model in models.values():
        if model.digest not in heard:
            heard[model.digest] = learner.predict(model, examples.x), learner.predict(model, outside.x)
    said = {s: heard[models[s].digest][0] for s in sorted(models)}
    of_outside = {s: heard[models[s].digest][1] for s in sorted(models)}
    served = pool("ensemble", list(said.values()))
    own = np.empty_like(served)
    for shard, p in said.items():
        own[questions.shards == shard] = p[questions.shards == shard]
    return Signals(
        {"shard": log_odds(own, examples.y), "served": log_odds(served, examples.y)},
        {"shard": typical(own, examples.y), "served": typical(served, examples.y)},
        {s: typical(p, outside.y) for s, p in of_outside.items() if s in questions.shards},
        typical(pool("ensemble", list(of_outside.values())), outside.y),
    )


def typical(probabilities: NDArray[Any], labels: NDArray[Any]) -> Floats:
    """The probability of the true label, one number an example; for text the geometric mean over its characters."""
    right = np.maximum(confidence(probabilities, labels), TINY)
    return np.asarray(np.exp(np.log(right).reshape(len(right), -1).mean(axis=1)))
