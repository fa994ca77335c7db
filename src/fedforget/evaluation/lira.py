"""LiRA, the likelihood-ratio attack (Carlini et al. 2022), example by example, on plain arrays.

Many reference models are trained, each example in some of them and out of the others. The model under attack gives
the example a confidence; is it more like the confidences of the models that trained on it (in), or of those that
did not (out)? Confidences are compared as log-odds, which are about Gaussian.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from .quality import TINY, confidence

Mode = Literal["online", "offline"]
Variance = Literal["auto", "each", "global"]

# Below so many models a side, one variance over all examples tells more than a noisy one for each.
ENOUGH = 32
# The least spread, in log-odds: reference models that happen to agree to the last bit are not infinitely sure.
FLOOR = 1e-3


def log_odds(probabilities: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """log p(true) − log Σ p(other), one number an example; for text the mean over its characters.

    The others are summed rather than taken as 1 − p, which rounds to nought long before they do.
    """
    right = confidence(probabilities, labels)
    others = np.array(probabilities, dtype=np.float64)
    np.put_along_axis(others, np.asarray(labels)[..., None].astype(np.intp), 0.0, axis=-1)
    odds = np.log(np.maximum(right, TINY)) - np.log(np.maximum(others.sum(axis=-1), TINY))
    return np.asarray(odds.reshape(len(odds), -1).mean(axis=1), dtype=np.float64)


def logit(confidences: NDArray[Any], *, least: float = 1e-7) -> NDArray[np.float64]:
    """log(p / (1 − p)) for who has only the true label's probability; `least` is the float32 step below 1."""
    p = np.clip(np.asarray(confidences, dtype=np.float64), least, 1 - least)
    return np.asarray(np.log(p) - np.log1p(-p))


def lira(
    target: NDArray[Any],
    references: NDArray[Any],
    members: NDArray[Any],
    *,
    mode: Mode = "online",
    variance: Variance = "auto",
    floor: float = FLOOR,
) -> NDArray[np.float64]:
    """A score an example, higher for "member".

    `target`: log-odds by the model under attack, (n,), or by several, (targets, n) · `references`: by reference
    models, (models, n) · `members`: whether the reference model trained on the example, (models, n).

    online: log N(φ; μ_in, σ_in) − log N(φ; μ_out, σ_out). offline, when nobody can train with the example:
    (φ − μ_out)/σ_out, which orders as the paper's 1 − Pr[N(μ_out, σ_out) > φ] does without rounding to 1.
    """
    phi, refs, mask = _arrays(target, references, members)
    if mode not in ("online", "offline"):
        raise SettingError("mode", mode, "'online' or 'offline'")
    if not floor > 0:
        raise SettingError("floor", floor, "above 0")
    sides = (~mask,) if mode == "offline" else (~mask, mask)
    if variance == "auto":  # for both sides alike: two kinds of variance in one ratio would favour one of them
        fewest = min(int(side.sum(axis=0).min(initial=ENOUGH)) for side in sides)
        variance = "each" if fewest >= ENOUGH else "global"
    mean_out, std_out = _gaussian(refs, ~mask, variance, floor, "without")
    z_out = (phi - mean_out) / std_out
    if mode == "offline":
        return np.asarray(z_out)
    mean_in, std_in = _gaussian(refs, mask, variance, floor, "with")
    z_in = (phi - mean_in) / std_in
    return np.asarray((z_out * z_out - z_in * z_in) / 2 + np.log(std_out) - np.log(std_in))


def _arrays(
    target: NDArray[Any], references: NDArray[Any], members: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    phi, refs = np.asarray(target, dtype=np.float64), np.asarray(references, dtype=np.float64)
    mask = np.asarray(members, dtype=bool)
    if refs.ndim != 2 or refs.shape != mask.shape or phi.ndim not in (1, 2) or phi.shape[-1] != refs.shape[1]:
        shapes = (phi.shape, refs.shape, mask.shape)
        raise SettingError("shapes", shapes, "([targets,] n), (models, n) and (models, n)")
    if not (np.isfinite(phi).all() and np.isfinite(refs).all()):
        raise SettingError("log-odds", "NaN or infinity", "finite")
    return phi, refs, mask


def _gaussian(
    refs: NDArray[np.float64], chosen: NDArray[np.bool_], variance: Variance, floor: float, side: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation for each example over the models chosen for it."""
    count = chosen.sum(axis=0)
    if variance not in ("each", "global"):
        raise SettingError("variance", variance, "'auto', 'each' or 'global'")
    each = variance == "each"
    least = 2 if each else 1
    if count.min(initial=least) < least:
        short = f"{int(count.min())} {side} example {int(count.argmin())}"
        raise SettingError("reference models", short, f"{least} or more {side} each example")
    mean = np.sum(refs, axis=0, where=chosen) / count
    square = np.sum((refs - mean) ** 2, axis=0, where=chosen)
    if each:
        spread = square / (count - 1)
    else:
        freedom = int(np.sum(count - 1))
        if freedom < 1:
            raise SettingError("reference models", int(count.max()), f"2 or more {side} some example")
        spread = np.full(refs.shape[1], square.sum() / freedom)
    return mean, np.maximum(np.sqrt(spread), floor)
