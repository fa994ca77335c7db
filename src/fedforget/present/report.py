"""What `report` answers."""

from rich.console import Console

from ..report.write import Written
from .base import say, size


def reported(out: Console, report: Written) -> None:
    say(out, f"{report.path}: one page of the {report.kind}, {size(report.bytes)}; it opens in any browser.")
