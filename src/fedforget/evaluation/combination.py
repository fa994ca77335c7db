"""How shard models make one answer: the paper does not say, so all three ways are here, to be reported together.

`average`: one model, the unweighted mean of the parameters (what the authors' code evaluates) ·
`ensemble`: the mean of the probabilities · `vote`: the class most shards choose, as shares of the votes.
Sums run in float64 in the order of the models given, so the bits do not depend on the engine.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..federation import Learner
from ..params import Params, mean

Combine = Literal["average", "ensemble", "vote"]
COMBINES: tuple[Combine, ...] = get_args(Combine)

TIE = 2.0**-20  # what a model's probability weighs beside its vote

Probabilities = NDArray[np.float64]  # (..., classes)


def combine(kind: Combine, learner: Learner, models: Sequence[Params], x: NDArray[Any]) -> Probabilities:
    """The served probabilities for `x`, (n, classes) or for text (n, length, classes); models in shard order."""
    if not models:
        raise SettingError("models", 0, "1 or more")
    if kind == "average":
        return np.asarray(learner.predict(mean(models), x), dtype=np.float64)
    return pool(kind, [learner.predict(model, x) for model in models])


def pool(kind: Combine, probabilities: Sequence[NDArray[Any]]) -> Probabilities:
    """What `ensemble` and `vote` make of each model's probabilities; for who has them already."""
    if not len(probabilities):
        raise SettingError("probabilities", 0, "those of 1 model or more")
    if kind == "ensemble":
        return _sum(probabilities) / len(probabilities)
    if kind == "vote":
        return _vote(probabilities)
    raise SettingError(
        "combine", kind, "one of " + ", ".join(COMBINES if kind not in COMBINES else ("ensemble", "vote"))
    )


def _sum(probabilities: Sequence[NDArray[Any]]) -> Probabilities:
    total = np.zeros(np.shape(probabilities[0]))
    for p in probabilities:
        total += p
    return total


def _vote(probabilities: Sequence[NDArray[Any]]) -> Probabilities:
    """Shares of the votes, with summed probability as a tie-break too small to outvote anybody.

    It must be in the numbers returned, or the arg max of a tie would be whichever class comes first.
    """
    classes = np.shape(probabilities[0])[-1]
    votes = _sum([np.eye(classes)[np.argmax(p, axis=-1)] for p in probabilities])
    return (votes + TIE * _sum(probabilities)) / (len(probabilities) * (1 + TIE))
