"""What an attack's scores are worth: ROC curve, AUC, TPR at low FPR, with bootstrap intervals.

An attack that is right on average about nobody may be certain about a few, and it is those few who are harmed:
so TPR at 0.1 % and 1 % FPR stand beside the AUC (Carlini et al. 2022). A blind attacker's TPR is the FPR, its AUC ½.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..seeds import generator

Floats = NDArray[np.float64]
LOW_FPRS = (0.001, 0.01)


@dataclass(frozen=True, eq=False)
class Roc:
    """Corners of the curve from (0, 0) to (1, 1), one per distinct score, highest score first."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats  # attack answers "member" at scores ≥ this; the first is +∞
    auc: float  # the area under straight lines between corners: ties count half

    def tpr_at(self, fpr: float) -> float:
        """The best TPR of a threshold whose FPR is at most this: no line is drawn between corners."""
        return float(self.tpr[np.searchsorted(self.fpr, fpr, side="right") - 1])


@dataclass(frozen=True)
class Rate:
    """A TPR at one FPR; None where the sample is too small to tell, and why."""

    fpr: float
    tpr: float | None
    interval: tuple[float, float] | None = None
    reason: str = ""

    @property
    def times_blind(self) -> float | None:
        """How many times a blind attacker's TPR."""
        return None if self.tpr is None else self.tpr / self.fpr


@dataclass(frozen=True)
class Attack:
    """An attack's worth on a sample of members and non-members."""

    auc: float
    interval: tuple[float, float]
    rates: tuple[Rate, ...]
    members: int
    others: int

    @property
    def apart(self) -> float:
        """|2·AUC − 1|: how well the two can be told apart by whoever may turn the scores round; 0 is not at all."""
        return abs(2 * self.auc - 1)

    def rate(self, fpr: float) -> Rate:
        found = [r for r in self.rates if r.fpr == fpr]
        if not found:
            raise SettingError("fpr", fpr, "one of " + ", ".join(f"{r.fpr:g}" for r in self.rates))
        return found[0]


def roc(scores: NDArray[Any], members: NDArray[Any]) -> Roc:
    """Higher scores mean "member"; equal scores make one corner."""
    s, m = _checked(scores, members)
    levels, level = np.unique(s, return_inverse=True)
    inside = np.bincount(level[m], minlength=len(levels)).astype(np.float64)
    outside = np.bincount(level[~m], minlength=len(levels)).astype(np.float64)
    return _curve(levels, inside, outside)


def _curve(levels: Floats, inside: Floats, outside: Floats) -> Roc:
    """From weights of members and non-members at each level, levels ascending."""
    hits = np.concatenate(([0.0], np.cumsum(inside[::-1])))
    alarms = np.concatenate(([0.0], np.cumsum(outside[::-1])))
    # Whole numbers up to the one division: what is equal on both sides has an AUC of ½ to the last bit.
    area = float(np.sum(np.diff(alarms) * (hits[1:] + hits[:-1])) / (2 * hits[-1] * alarms[-1]))
    return Roc(alarms / alarms[-1], hits / hits[-1], np.concatenate(([np.inf], levels[::-1])), area)


def auc(scores: NDArray[Any], members: NDArray[Any]) -> float:
    """The chance that a member scores above a non-member, ties half."""
    return roc(scores, members).auc


def tpr_at(scores: NDArray[Any], members: NDArray[Any], fpr: float) -> Rate:
    """With fewer than 1/FPR non-members a single false alarm is above the FPR: then nothing is said."""
    curve = roc(scores, members)
    return _rate(curve, fpr, int(np.sum(~np.asarray(members, dtype=bool))))


def _rate(curve: Roc, fpr: float, others: int) -> Rate:
    if not 0 < fpr < 1:
        raise SettingError("fpr", fpr, "between 0 and 1")
    if others * fpr < 1 - 1e-9:
        needed = int(np.ceil(1 / fpr - 1e-9))
        return Rate(fpr, None, None, f"{others} non-members are too few for an FPR of {fpr:g}: {needed} are needed")
    return Rate(fpr, curve.tpr_at(fpr))


def assess_attack(
    scores: NDArray[Any],
    members: NDArray[Any],
    *,
    groups: NDArray[Any] | Sequence[NDArray[Any]] | None = None,
    fprs: Sequence[float] = LOW_FPRS,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Attack:
    """AUC and TPRs with percentile bootstrap intervals.

    Without `groups`, members and non-members are drawn again each for themselves. `groups` names what was sampled
    together (examples of one client, scores of one model): then whole groups are drawn, for their scores move
    together and drawing them one by one would make the intervals too narrow. Several namings (by model, by client)
    are drawn apart and their draws multiply: the pigeonhole bootstrap (Owen 2007), rather too wide than too narrow.
    """
    if not 0 < level < 1:
        raise SettingError("level", level, "between 0 and 1")
    if resamples < 1:
        raise SettingError("resamples", resamples, "1 or more")
    s, m = _checked(scores, members)
    levels, at = np.unique(s, return_inverse=True)
    curve, others = roc(s, m), int(np.sum(~m))
    rates = [_rate(curve, fpr, others) for fpr in fprs]
    areas, tprs = [], []
    for weight in _draws(m, groups, resamples, seed):
        inside = np.bincount(at[m], weights=weight[m], minlength=len(levels)).astype(np.float64)
        outside = np.bincount(at[~m], weights=weight[~m], minlength=len(levels)).astype(np.float64)
        if not inside.any() or not outside.any():  # a draw of groups that has one kind only says nothing
            continue
        drawn = _curve(levels, inside, outside)
        areas.append(drawn.auc)
        tprs.append([drawn.tpr_at(fpr) for fpr in fprs])
    if not areas:
        raise SettingError("groups", "given", "such that a draw of them has members and non-members")
    ends = 100 * np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = np.percentile(areas, ends)
    bounds = np.percentile(np.array(tprs), ends, axis=0)
    held = tuple(
        r if r.tpr is None else Rate(r.fpr, r.tpr, (float(bounds[0, i]), float(bounds[1, i])))
        for i, r in enumerate(rates)
    )
    return Attack(curve.auc, (float(low), float(high)), held, int(m.sum()), others)


def _draws(
    members: NDArray[np.bool_],
    groups: NDArray[Any] | Sequence[NDArray[Any]] | None,
    resamples: int,
    seed: int,
) -> Iterator[NDArray[np.float64]]:
    """How often each score is drawn, one array a resample."""
    random = generator(seed, "bootstrap")
    if groups is None:
        sides = [np.flatnonzero(members), np.flatnonzero(~members)]
        for _ in range(resamples):
            weight = np.zeros(len(members))
            for rows in sides:
                weight[rows] = _drawn(random, len(rows))
            yield weight
        return
    namings = [groups] if isinstance(groups, np.ndarray) else list(groups)
    factors = []
    for naming in namings:
        if len(naming) != len(members):
            raise SettingError("groups", len(naming), f"one a score, {len(members)}")
        names, group = np.unique(naming, return_inverse=True)
        factors.append((len(names), group))
    for _ in range(resamples):
        weight = np.ones(len(members))
        for count, group in factors:
            weight = weight * _drawn(random, count)[group]
        yield weight


def _drawn(random: np.random.Generator, count: int) -> NDArray[np.float64]:
    """How often each of `count` is among as many draws with replacement."""
    return np.bincount(random.integers(count, size=count), minlength=count).astype(np.float64)


def _checked(scores: NDArray[Any], members: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    s, m = np.asarray(scores, dtype=np.float64).ravel(), np.asarray(members, dtype=bool).ravel()
    if s.shape != m.shape:
        raise SettingError("scores", s.shape, f"one a membership, {m.shape}")
    if np.isnan(s).any():
        raise SettingError("scores", "NaN", "numbers that can be put in order")
    if not m.any() or m.all():
        raise SettingError("members", int(m.sum()), f"some but not all of {len(m)}")
    return s, m
