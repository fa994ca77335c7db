"""Quality: accuracy, loss and perplexity of probabilities against labels, for pictures and text alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError

# The smallest positive float32: a probability of nought that float32 underflowed to costs 103 nats, not infinity.
TINY = 2.0**-149


@dataclass(frozen=True)
class Quality:
    """How well a set of labels is predicted. `count` is labels: examples for pictures, characters for text."""

    accuracy: float
    loss: float  # mean negative log-likelihood, in nats
    count: int

    @property
    def perplexity(self) -> float:
        """e^loss: as unsure as a choice among that many equally likely classes."""
        return float(np.exp(self.loss))


@dataclass(frozen=True)
class Qualities:
    """Beside each other: what nobody trained on, what was forgotten, what stays. None where there is no such data."""

    test: Quality
    forgotten: Quality | None
    retained: Quality | None


def quality(probabilities: NDArray[Any], labels: NDArray[Any]) -> Quality:
    """Probabilities (..., classes) against labels (...)."""
    return Quality(accuracy(probabilities, labels), loss(probabilities, labels), int(np.size(labels)))


def accuracy(probabilities: NDArray[Any], labels: NDArray[Any]) -> float:
    """The share of labels that have the largest probability; of equal ones the first class counts."""
    _fitting(probabilities, labels)
    return float(np.mean(np.argmax(probabilities, axis=-1) == labels))


def loss(probabilities: NDArray[Any], labels: NDArray[Any]) -> float:
    """Mean negative log-likelihood in nats."""
    return float(-np.mean(np.log(np.maximum(confidence(probabilities, labels), TINY))))


def perplexity(probabilities: NDArray[Any], labels: NDArray[Any]) -> float:
    return float(np.exp(loss(probabilities, labels)))


def confidence(probabilities: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """The probability of each true label, in the labels' shape."""
    _fitting(probabilities, labels)
    picked = np.take_along_axis(probabilities, np.asarray(labels)[..., None].astype(np.intp), axis=-1)
    return np.asarray(picked[..., 0], dtype=np.float64)


def _fitting(probabilities: NDArray[Any], labels: NDArray[Any]) -> None:
    if np.shape(probabilities)[:-1] != np.shape(labels):
        shapes = (np.shape(probabilities), np.shape(labels))
        raise SettingError("shapes", shapes, "(..., classes) for probabilities and (...) for labels")
    if not np.size(labels):
        raise SettingError("labels", 0, "1 or more")
    classes = np.shape(probabilities)[-1]
    if np.min(labels) < 0 or np.max(labels) >= classes:
        raise SettingError("labels", (int(np.min(labels)), int(np.max(labels))), f"from 0 to {classes - 1}")
