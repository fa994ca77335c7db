"""Backdoor check: a trigger planted at the leaver, its success before and after forgetting.

Easy to see where membership is not: the trigger exists at no other client, so a model that never saw the leaver
obeys it no more than by chance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..examples import Examples
from ..seeds import generator


@dataclass(frozen=True)
class Trigger:
    """A square of one value in the last corner of a picture, or the last size² features of a flat vector."""

    target: int
    value: float
    size: int = 2

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SettingError("size", self.size, "1 or more")

    def stamp(self, x: NDArray[Any]) -> NDArray[Any]:
        """Copies of inputs (n, features), (n, height, width) or (n, height, width, channels) that bear the trigger."""
        room = min(x.shape[1:3]) if x.ndim > 2 else int(np.sqrt(x.shape[-1])) if x.ndim == 2 else 0
        if x.ndim > 4 or self.size > room:
            raise SettingError("inputs", x.shape, f"pictures or vectors that hold a trigger of {self.size}²")
        marked = x.copy()
        if x.ndim == 2:
            marked[:, -self.size * self.size :] = self.value
        else:
            marked[:, -self.size :, -self.size :] = self.value
        return marked


@dataclass(frozen=True)
class Backdoor:
    """The share of triggered examples given the target class, before and after forgetting."""

    before: float
    after: float


def plant(trigger: Trigger, examples: Examples, *, share: float = 0.5, seed: int = 0) -> Examples:
    """The leaver's examples with a `share` of them triggered and labelled with the target, in their old places."""
    if not 0 < share <= 1:
        raise SettingError("share", share, "above 0 and at most 1")
    chosen = generator(seed, "backdoor").permutation(len(examples))[: max(1, round(share * len(examples)))]
    x, y = examples.x.copy(), examples.y.copy()
    x[chosen] = trigger.stamp(examples.x[chosen])
    y[chosen] = trigger.target
    return Examples(x, y)


def success(trigger: Trigger, predict: Callable[[NDArray[Any]], NDArray[Any]], examples: Examples) -> float:
    """How often the trigger turns an example of another class into the target; `predict` gives probabilities."""
    others = examples.y != trigger.target
    if not others.any():
        raise SettingError("examples", len(examples), f"some of another class than the target, {trigger.target}")
    found = np.argmax(predict(trigger.stamp(examples.x[others])), axis=-1)
    return float(np.mean(found == trigger.target))


def backdoor(
    trigger: Trigger,
    before: Callable[[NDArray[Any]], NDArray[Any]],
    after: Callable[[NDArray[Any]], NDArray[Any]],
    examples: Examples,
) -> Backdoor:
    """On clean examples nobody trained on."""
    return Backdoor(success(trigger, before, examples), success(trigger, after, examples))
