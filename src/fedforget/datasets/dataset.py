"""A data set: training and test examples, and the public constants a learner needs beside them."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..examples import Examples


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples to train on and to test with.

    With `raw` set, `x` holds pixels as they were published, uint8 from 0 to 255 in (n, height, width,
    channels), and a learner scales a batch at a time as (x/255 − mean)/std, one mean and std a channel:
    four times less memory than keeping float32. Without it `x` is ready to be learnt from.

    `mean` and `std` are constants of this file, never computed from the examples at hand: a statistic
    over all clients would carry the leaver's data into everybody's inputs, and no forgetting could
    take it out again. `labels` names the classes; of text, its characters in the order of their ids.
    """

    name: str
    kind: Literal["image", "text"]
    train: Examples
    test: Examples
    labels: tuple[str, ...]
    raw: bool = False
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @property
    def classes(self) -> int:
        """How many outputs a model needs: classes of pictures, characters of text."""
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.train.x.shape[1:]

    @property
    def vocabulary(self) -> str:
        """The characters of text, `vocabulary[id]`; empty for pictures."""
        return "".join(self.labels) if self.kind == "text" else ""

    def scaled(self, x: NDArray[Any]) -> NDArray[Any]:
        """`x` as a learner wants it: raw pixels as float32 by the constants, everything else as it is."""
        if not self.raw:
            return x
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        return (x.astype(np.float32) - 255 * mean) / (255 * std)
