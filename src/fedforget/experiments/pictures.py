"""Pictures: what is common to drawing cells."""

from collections.abc import Sequence
from typing import Any

STYLES = {"FR": 0, "FE": 1, "RR": 6, "SE": 2, "exact": 3, "clean": 4, "FR sharded": 5}


def figure_of(rows: Sequence[Sequence[Any]], stamp: str, height: float = 2.1) -> Any:
    """A `plots.Figure`; matplotlib is asked for only where something is drawn."""
    from ..plots import Figure

    return Figure(rows, stamp, height=height)
