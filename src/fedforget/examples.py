"""Examples: what a client learns from. Inputs beside labels, nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import SettingError


@dataclass(frozen=True, eq=False)
class Examples:
    """`x[i]` is the input and `y[i]` the label of example i; for text `y` is the text one character on."""

    x: NDArray[Any]
    y: NDArray[Any]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise SettingError("examples", (len(self.x), len(self.y)), "as many labels as inputs")

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: NDArray[np.integer[Any]] | Sequence[int] | slice) -> "Examples":
        index = rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)
        return Examples(self.x[index], self.y[index])

    @staticmethod
    def join(parts: Sequence["Examples"]) -> "Examples":
        return Examples(np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]))
