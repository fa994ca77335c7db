"""The audit of a way of forgetting: attacks asked to tell worlds from the one the leaver never joined.

A *world* is what came of the same training: with the leaver, after forgetting it by some method, or never joined.
Per world the leavers' examples get a score each; an attack is worth as much as it tells that world's scores from
those of the never-joined world. Exact forgetting gives the same models, hence the same scores and an AUC of ½ to the
last bit. Above ½ the leaver is still there. Below ½ the model is *less* sure of the leaver's data than one that never
saw it: shorter training alone can do that, but so can forgetting too much, and it tells the worlds apart as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from .curves import LOW_FPRS, Attack, assess_attack
from .lira import FLOOR, Mode, Variance, lira
from .rmia import Population, rmia
from .signals import Questions, Signals, View

AttackName = Literal["LiRA", "LiRA offline", "RMIA"]
ATTACKS: tuple[AttackName, ...] = get_args(AttackName)

# Below so many clients, drawing clients again says little about others like them: then their examples are drawn.
CLIENTS_ENOUGH = 8


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log-odds of the leavers' examples by the reference models, (models, n)."""

    references: NDArray[Any]
    members: NDArray[Any]  # (models, n): whether the example's owner took part
    owners: NDArray[Any]  # (n,): which leaver's the example is


def audit(
    worlds: Mapping[str, NDArray[Any]],
    never: NDArray[Any],
    evidence: Evidence,
    *,
    mode: Mode = "online",
    variance: Variance = "auto",
    floor: float = FLOOR,
    fprs: Sequence[float] = LOW_FPRS,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Attack]:
    """LiRA on each world against the never-joined one; log-odds (trainings, n), example i without its owner."""
    base = np.atleast_2d(never)
    if len(evidence.owners) != base.shape[1]:
        raise SettingError("owners", len(evidence.owners), f"one an example, {base.shape[1]}")

    def scores(signals: NDArray[Any]) -> NDArray[np.float64]:
        return lira(signals, evidence.references, evidence.members, mode=mode, variance=variance, floor=floor)

    outside = scores(base)
    found: dict[str, Attack] = {}
    for name, signals in worlds.items():
        if np.shape(np.atleast_2d(signals)) != base.shape:
            raise SettingError(f"world {name}", np.shape(signals), f"log-odds of shape {base.shape}")
        inside = scores(np.atleast_2d(signals))
        found[name] = tell_apart(inside, outside, evidence.owners, fprs=fprs, resamples=resamples, seed=seed)
    return found


def tell_apart(
    world: NDArray[Any],
    never: NDArray[Any],
    owners: NDArray[Any],
    *,
    fprs: Sequence[float] = LOW_FPRS,
    resamples: int = 1000,
    seed: int = 0,
) -> Attack:
    """What scores of a world are worth against those of the never-joined one, both (trainings, n).

    Intervals draw trainings and owners again, each apart, for the scores by one training move together and so do
    those of one owner. With one training the interval is for these very models; with fewer owners than
    `CLIENTS_ENOUGH` their examples are drawn in their stead, and it is for these very clients.
    """
    trainings, n = world.shape
    few = len(np.unique(owners)) < CLIENTS_ENOUGH
    groups = (np.repeat(np.arange(trainings), n), np.tile(np.arange(n) if few else owners, trainings))
    return assess_attack(
        np.concatenate([world.ravel(), never.ravel()]),
        np.repeat([True, False], world.size),
        groups=[np.tile(naming, 2) for naming in groups],
        fprs=fprs,
        resamples=resamples,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class Prosecution:
    """Questions, and how the reference federations answer them: all that an attack needs beside its target."""

    questions: Questions
    references: Sequence[Signals]
    members: NDArray[np.bool_]  # (models, n)

    def scores(self, attack: AttackName, view: View, target: Signals, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """A score for each of the chosen examples, by one federation's answers."""
        members = self.members[:, chosen]
        if attack == "RMIA":
            return self._relative(view, target, chosen)
        refs = np.array([r.log_odds[view][chosen] for r in self.references])
        mode: Mode = "offline" if attack == "LiRA offline" else "online"
        return lira(target.log_odds[view][chosen], refs, members, mode=mode)

    def _relative(self, view: View, target: Signals, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """RMIA compares with the population as the same model sees it, so shard by shard."""
        scores = np.empty(len(chosen))
        shards = self.questions.shards
        for shard in np.unique(shards[chosen]) if view == "shard" else [None]:
            mine = chosen if shard is None else chosen & (shards == shard)
            refs = np.array([r.confidence[view][mine] for r in self.references])
            z = [s.served_population if shard is None else s.population[int(shard)] for s in (target, *self.references)]
            population = Population(z[0], np.array(z[1:]))
            scores[mine] = rmia(target.confidence[view][mine], refs, self.members[:, mine], population)
        return scores[chosen]
