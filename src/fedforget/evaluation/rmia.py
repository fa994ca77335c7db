"""RMIA, the relative membership attack (Zarifzadeh et al. 2024), on plain arrays of true-label probabilities.

An example's probability under the attacked model, over its average under reference models, is compared with the
same ratio of examples z from the population: a member's has grown more than most. It needs fewer reference models
than LiRA.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from .quality import TINY

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Population:
    """Examples in no training: probabilities of their true labels, by target (m,) and references (models, m)."""

    target: NDArray[Any]
    references: NDArray[Any]


def rmia(
    target: NDArray[Any],
    references: NDArray[Any],
    members: NDArray[Any],
    population: Population,
    *,
    gamma: float = 1.0,
    offline: float | None = None,
) -> Floats:
    """The share of the population that x dominates: Pr_z[(p(x|θ)/p(x)) / (p(z|θ)/p(z)) ≥ γ], a score an example.

    `target`: (n,) probabilities by one model · `references` and `members`: (models, n).
    online: p(x) is the mean of the models' in-average and out-average. With `offline` = a only models without x
    are used and p_in is guessed as a·p_out + 1 − a, so p(x) = ((1 + a)·p_out + 1 − a)/2.
    A population example is out of all models: its p is the out-average, corrected offline in the same way.
    """
    if not gamma > 0:
        raise SettingError("gamma", gamma, "above 0")
    if offline is not None and not 0 <= offline <= 1:
        raise SettingError("offline", offline, "from 0 to 1, or none for online")
    p, refs, mask = _checked(target, references, members, population)
    out = _mean(refs, ~mask, "without")
    inside = _mean(refs, mask, "with") if offline is None else _guess(out, offline)
    ratio = p / np.maximum((inside + out) / 2, TINY)
    z_out = np.asarray(population.references, dtype=np.float64).mean(axis=0)
    z_average = z_out if offline is None else (z_out + _guess(z_out, offline)) / 2
    z_ratio = np.sort(np.maximum(np.asarray(population.target, dtype=np.float64), TINY) / np.maximum(z_average, TINY))
    # x dominates z where ratio ≥ γ·z_ratio: counted in the sorted ratios instead of an n×m table.
    return np.searchsorted(gamma * z_ratio, ratio, side="right") / len(z_ratio)


def _guess(out: Floats, a: float) -> Floats:
    return np.asarray(a * out + (1 - a))


def _mean(refs: Floats, chosen: NDArray[np.bool_], side: str) -> Floats:
    count = chosen.sum(axis=0)
    if count.min(initial=1) < 1:
        raise SettingError(
            "reference models", f"0 {side} example {int(count.argmin())}", f"1 or more {side} each example"
        )
    return np.asarray(np.sum(refs, axis=0, where=chosen) / count)


def _checked(
    target: NDArray[Any], references: NDArray[Any], members: NDArray[Any], population: Population
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    p, refs = np.asarray(target, dtype=np.float64), np.asarray(references, dtype=np.float64)
    mask = np.asarray(members, dtype=bool)
    z, z_refs = np.asarray(population.target), np.asarray(population.references)
    if p.ndim != 1 or refs.ndim != 2 or refs.shape != mask.shape or refs.shape[1:] != p.shape:
        raise SettingError("shapes", (p.shape, refs.shape, mask.shape), "(n,), (models, n) and (models, n)")
    if z.ndim != 1 or not len(z) or z_refs.shape != (len(refs), len(z)):
        raise SettingError("population", (z.shape, z_refs.shape), f"(m,) and ({len(refs)}, m) with m of 1 or more")
    for values in (p, refs, z, z_refs):
        if not np.all((values >= 0) & (values <= 1 + 1e-6)):
            raise SettingError("probabilities", "outside of 0 to 1", "probabilities of the true labels")
    return p, refs, mask
