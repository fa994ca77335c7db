"""Calibrated forgetting (A): the paper's eq. prepare and eq. retrain, as a recipe.

eq. prepare: the mean of the retained clients' first uploads. g = 1, for only those are free of the leaver.
eq. retrain: each later round trains L/r epochs at the retained clients and gives each update Δ_new the length
of the stored one, Δ = ‖Δ_old‖ · Δ_new / ‖Δ_new‖, where Δ = w_local − w_shard *before* the round.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

import numpy as np

from ..errors import SettingError
from ..federation import (
    Absence,
    Cohort,
    FitResult,
    FitTask,
    Kind,
    Learner,
    Place,
    Round,
    Settings,
    Upload,
    ask,
    average,
    sift,
)
from ..params import Params, gram, square_length, weighted_mean
from .past import Measures
from .rebuild import Rebuild, run

Compat = Literal["paper", "released"]


@dataclass(frozen=True)
class Calibration:
    """r: training is this much shorter. Δt: only every Δt-th round is calibrated, those between are left out.

    compat "released" does what the public FedEraser code does: per layer, on the mean update, and with the model
    *after* the stored round taken for the one before, so that the step length depends on the leaver alone.
    """

    ratio: float = 2.0
    interval: int = 1
    compat: Compat = "paper"
    length: float | None = None  # clean only: a public constant for every step

    def __post_init__(self) -> None:
        if not self.ratio >= 1:
            raise SettingError("ratio", self.ratio, "1 or more")
        if self.interval < 1:
            raise SettingError("interval", self.interval, "1 or more")
        if self.compat not in ("paper", "released"):
            raise SettingError("compat", self.compat, "'paper' or 'released'")
        if self.length is not None and not 0 < self.length < float("inf"):
            raise SettingError("length", self.length, "a positive number")

    def epochs(self, full: int) -> int:
        """L/r, rounded; the public code rounds up."""
        return max(1, ceil(full / self.ratio) if self.compat == "released" else round(full / self.ratio))

    def keeps(self, first: int, round: int) -> bool:
        return (round - first) % self.interval == 0


def calibrated(
    cohort: Cohort, learner: Learner, work: Rebuild, settings: Settings, calibration: Calibration
) -> Iterator[Round]:
    """The paper's SE where the plan is sharded, FedEraser where it has one shard."""
    return run(cohort, learner, work, Calibrating(work, settings, calibration))


@dataclass(frozen=True)
class Calibrating:
    """The recipe: ask the retained of the stored roster, fold by stored lengths."""

    work: Rebuild
    settings: Settings
    calibration: Calibration

    def _retained(self, place: Place) -> tuple[str, ...]:
        return tuple(c for c in self.work.past.roster(place) if c not in self.work.change.gone(place.stage))

    def ask(self, place: Place, start: Params) -> tuple[FitTask, ...]:
        taint = self.work.taints[place.cell]
        if prepares(self.work, place) or not self.calibration.keeps(taint.round, place.round):
            return ()
        epochs = self.calibration.epochs(self.settings.epochs)
        return ask(self.work.after, self._retained(place), place, start, epochs, self.settings.solver)

    def fold(self, place: Place, start: Params, results: Iterable[FitResult]) -> Round:
        if prepares(self.work, place):
            return prepare(self.work, place, start, self.settings.weighted)
        if not self.calibration.keeps(self.work.taints[place.cell].round, place.round):
            return Round(place, start, (), start, kind="skipped")
        uploads, absent, cost = sift(self.ask(place, start), start, results)
        stored = self.work.past.measures(place)
        source = self.work.past.source(place)  # lengths borrowed before are borrowed still
        if self.calibration.compat == "released":
            model = released_step(start, uploads, stored, self.work.change.gone(place.stage), self.settings.weighted)
            return Round(place, start, uploads, model, absent, cost, "calibrated", source)
        scaled, left_out = rescale(start, uploads, [stored.norm(u.client) for u in uploads])
        model = average(start, scaled, self.settings.weighted)
        return Round(place, start, scaled, model, absent + left_out, cost, "calibrated", source)


def prepares(work: Rebuild, place: Place) -> bool:
    """Whether the stored uploads of this round were trained from a model free of the leavers."""
    taint = work.taints[place.cell]
    return place.round == taint.round and not taint.inherited


def prepare(work: Rebuild, place: Place, start: Params, weighted: bool) -> Round:
    """eq. prepare: the mean of the retained uploads of the first round; costs no training.

    Whose data changed is left out of this round too: its upload was trained on what is to be forgotten.
    What those uploads carry from an earlier forgetting, borrowed lengths or an approximate residue, goes with them.
    """
    kept = tuple(u for u in work.past.uploads(place) if u.client not in work.change.at(place.stage))
    kind: Kind = "calibrated" if work.past.kind(place) == "calibrated" else "prepared"
    return Round(place, start, kept, average(start, kept, weighted), kind=kind, source=work.past.source(place))


def rescale(
    start: Params, uploads: Sequence[Upload], lengths: Sequence[float]
) -> tuple[tuple[Upload, ...], tuple[Absence, ...]]:
    """eq. retrain: each update gets the length given; one that cannot is left out and named."""
    kept: list[Upload] = []
    left_out: list[Absence] = []
    for upload, length in zip(uploads, lengths, strict=True):
        norm = float(np.sqrt(square_length(start, upload.params)))
        if norm == 0.0 and length > 0.0:
            left_out.append(Absence(upload.client, "refused: an update of length zero has no direction"))
            continue
        scaled = start.along(upload.params, length / norm) if norm > 0.0 else upload.params
        if scaled.is_finite:
            kept.append(replace(upload, params=scaled))
        else:
            left_out.append(Absence(upload.client, "refused: at the length it is given it leaves float32"))
    return tuple(kept), tuple(left_out)


def released_step(
    start: Params, uploads: Sequence[Upload], stored: Measures, gone: frozenset[str], weighted: bool
) -> Params:
    """One round as the public FedEraser code computes it, from the stored inner products alone.

    Its "old update" of a layer is mean(retained uploads) − (model after the round): with Δ the stored updates,
    Σ cᵢ·Δᵢ with cᵢ = [i retained]/R − wᵢ, whose length is √(cᵀ·Gram·c).
    """
    kept = np.array([c not in gone for c in stored.roster], dtype=np.float64)
    if not uploads or not kept.any():
        return start
    weights = np.array(stored.examples if weighted else np.ones(len(kept)), dtype=np.float64)
    mix = kept / kept.sum() - weights / weights.sum()
    lengths = np.sqrt(np.maximum(np.einsum("lij,i,j->l", stored.gram, mix, mix), 0.0))
    target = weighted_mean([u.params for u in uploads], [1.0] * len(uploads))
    norms = np.sqrt(gram(start, [target])[:, 0, 0])
    vector = target.vector.copy()
    for part, length, norm in zip(start.layout.weights, lengths, norms, strict=True):
        begin = start.vector[part].astype(np.float64)
        step = (target.vector[part] - begin) * (length / norm if norm > 0 else 0.0)
        with np.errstate(over="ignore"):
            vector[part] = (begin + step).astype(np.float32)
    model = Params(start.layout, vector)
    return model if model.is_finite else start
