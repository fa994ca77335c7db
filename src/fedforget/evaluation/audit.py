"""The audit of a way of forgetting: LiRA asked to tell worlds from the one the leaver never joined.

A *world* is what came of the same training: with the leaver, after forgetting it by some method, or never joined.
Per world the leavers' examples get a score each; an attack is worth as much as it tells that world's scores from
those of the never-joined world. Exact forgetting gives the same models, hence the same scores and an AUC of ½ to the
last bit. Above ½ the leaver is still there. Below ½ the model is *less* sure of the leaver's data than one that never
saw it: shorter training alone can do that, but so can forgetting too much, and it tells the worlds apart as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from .curves import LOW_FPRS, Attack, assess_attack
from .lira import FLOOR, Mode, Variance, lira


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
    """Each world against the never-joined one; log-odds (trainings, n), example i by the model without its owner.

    Intervals draw (training, owner) pairs again, for the scores of one client by one model move together.
    """
    base = np.atleast_2d(never)
    if len(evidence.owners) != base.shape[1]:
        raise SettingError("owners", len(evidence.owners), f"one an example, {base.shape[1]}")

    def scores(signals: NDArray[Any]) -> NDArray[np.float64]:
        return lira(signals, evidence.references, evidence.members, mode=mode, variance=variance, floor=floor).ravel()

    outside = scores(base)
    _, owner = np.unique(evidence.owners, return_inverse=True)
    pairs = (np.arange(len(base))[:, None] * (owner.max() + 1) + owner).ravel()
    found: dict[str, Attack] = {}
    for name, signals in worlds.items():
        if np.shape(np.atleast_2d(signals)) != base.shape:
            raise SettingError(f"world {name}", np.shape(signals), f"log-odds of shape {base.shape}")
        found[name] = assess_attack(
            np.concatenate([scores(np.atleast_2d(signals)), outside]),
            np.repeat([True, False], len(outside)),
            groups=np.tile(pairs, 2),
            fprs=fprs,
            resamples=resamples,
            seed=seed,
        )
    return found
