"""How far a model that forgot is from the one retrained without the leaver: in parameters and in predictions.

Distances, not verdicts: two trainings that differ in the seed alone are far apart in parameters, so read each
beside the distance between two retrained models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..params import Layout, Params
from .quality import TINY


@dataclass(frozen=True)
class ParameterDistance:
    l2: float  # ‖w − w*‖, learned numbers only, counters have no length
    relative: float  # ‖w − w*‖ / ‖w*‖
    cosine: float | None  # None where one of them is all noughts and has no direction
    layers: Mapping[str, float]  # ‖w − w*‖ layer by layer


@dataclass(frozen=True)
class PredictionDistance:
    """Means over the examples; logarithms to base e, so JS is at most log 2 and total variation at most 1."""

    agreement: float  # the share of examples given the same class
    kl: float  # KL(retrained ‖ forgot)
    js: float
    total_variation: float


def parameter_distance(forgot: Params, retrained: Params) -> ParameterDistance:
    """In float64, layer after layer."""
    if forgot.layout != retrained.layout:
        raise SettingError("layout", forgot.layout.names, f"that of the retrained model, {retrained.layout.names}")
    layers: dict[str, float] = {}
    apart = inner = one = other = 0.0
    for name, part in _layers(forgot.layout):
        a, b = forgot.vector[part].astype(np.float64), retrained.vector[part].astype(np.float64)
        square = float(np.sum((a - b) ** 2))
        layers[name] = float(np.sqrt(square))
        apart += square
        inner += float(np.sum(a * b))
        one += float(np.sum(a * a))
        other += float(np.sum(b * b))
    l2 = float(np.sqrt(apart))
    relative = l2 / np.sqrt(other) if other else (0.0 if not l2 else np.inf)
    cosine = float(np.clip(inner / np.sqrt(one * other), -1.0, 1.0)) if one and other else None
    return ParameterDistance(l2, float(relative), cosine, layers)


def _layers(layout: Layout) -> list[tuple[str, slice]]:
    return [
        (n, part)
        for i, (n, part) in enumerate(zip(layout.names, layout.slices, strict=True))
        if not layout.is_counter(i)
    ]


def prediction_distance(forgot: NDArray[Any], retrained: NDArray[Any]) -> PredictionDistance:
    """Of two arrays of probabilities, (..., classes), for the same examples."""
    if np.shape(forgot) != np.shape(retrained) or not np.size(forgot):
        raise SettingError("shapes", (np.shape(forgot), np.shape(retrained)), "equal and not empty")
    p, q = np.asarray(retrained, dtype=np.float64), np.asarray(forgot, dtype=np.float64)
    middle = (p + q) / 2
    return PredictionDistance(
        agreement=float(np.mean(np.argmax(p, axis=-1) == np.argmax(q, axis=-1))),
        kl=float(np.mean(_kl(p, q))),
        js=float(np.mean(_kl(p, middle) + _kl(q, middle)) / 2),
        total_variation=float(np.mean(np.abs(p - q).sum(axis=-1)) / 2),
    )


def _kl(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ p·log(p/q) with 0·log 0 = 0; q no smaller than float32 can hold, for its noughts are underflow."""
    ratio = np.maximum(p, TINY) / np.maximum(q, TINY)
    return np.asarray(np.sum(p * np.log(ratio), axis=-1))
