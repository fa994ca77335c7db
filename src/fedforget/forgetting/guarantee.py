"""Guarantee classes: what a result promises, why, and why not more. No measurement ever upgrades one."""

from dataclasses import dataclass
from typing import Literal

GuaranteeClass = Literal["X0", "X1", "X2", "X3", "A", "Q"]

NAMES: dict[GuaranteeClass, str] = {
    "X0": "untouched",
    "X1": "exact",
    "X2": "exact, conditions changed",
    "X3": "clean-calibrated",
    "A": "approximate",
    "Q": "quarantined",
}

MEANINGS: dict[GuaranteeClass, str] = {
    "X0": "what is forgotten never took part in what is served; nothing had to change",
    "X1": "bit-identical to the run that never had what is forgotten",
    "X2": "as exact, but for the conditions listed",
    "X3": "nothing of what is forgotten is left, but a shorter algorithm than training made the model",
    "A": "the paper's calibration: stored norms were measured while what is forgotten took part",
    "Q": "the served combination leaves the tainted shards out: exact for what is served",
}

# From strongest to weakest; a model made of several parts is as good as its weakest.
ORDER: tuple[GuaranteeClass, ...] = ("X0", "X1", "X2", "X3", "Q", "A")


@dataclass(frozen=True)
class Guarantee:
    """A class, the reason for it, and under which conditions."""

    grade: GuaranteeClass
    reason: str
    conditions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return NAMES[self.grade]

    def __str__(self) -> str:
        return f"{self.grade} ({self.name}): {self.reason}"


def weakest(grades: list[GuaranteeClass]) -> GuaranteeClass:
    return max(grades, key=ORDER.index, default="X0")
