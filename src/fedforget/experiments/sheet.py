"""Sheet: a table as values, in Markdown; means over seeds with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

# Student's t at 97.5 %, by degrees of freedom: how wide a 95 % interval of so few seeds has to be.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
NONE = "—"


@dataclass(frozen=True)
class Sheet:
    """Cells are text already; `right` names the columns of numbers."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def markdown(self) -> str:
        rule = ["---:" if column in self.right else "---" for column in self.head]
        lines = [_row(self.head), "|" + "|".join(rule) + "|", *(_row(row) for row in self.rows)]
        return "\n".join([f"**{self.name}**", "", *lines, *(("", *self.notes) if self.notes else ())])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


@dataclass(frozen=True)
class Mean:
    """Over seeds. `half`: half the 95 % interval by Student's t; None for one seed, of which nothing is known."""

    value: float
    half: float | None
    low: float
    high: float
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> "Mean":
        count = len(values)
        half = None
        if count > 1:
            half = _T[min(count - 2, len(_T) - 1)] * stdev(values) / count**0.5
        return Mean(fmean(values), half, min(values), max(values), count)

    def text(self, digits: int = 3, scale: float = 1.0) -> str:
        value = f"{scale * self.value:.{digits}f}"
        return value if self.half is None else f"{value} ± {scale * self.half:.{digits}f}"


def mean_or_none(values: Sequence[float | None]) -> Mean | None:
    """None where any seed was not measured."""
    known = [v for v in values if v is not None]
    return Mean.of(known) if known and len(known) == len(values) else None


def show(mean: Mean | None, digits: int = 3, scale: float = 1.0) -> str:
    return NONE if mean is None else mean.text(digits, scale)
