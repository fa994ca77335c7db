"""What `reproduce` answers."""

from rich.console import Console

from ..experiments import Checked, Outcomes
from .base import say, table

_WIDE = 200  # columns of numbers folded to a terminal's width can be read by nobody; let the terminal wrap lines


def reproduced(out: Console, report: Outcomes) -> None:
    out.width = max(out.width, _WIDE)
    for outcome in report.outcomes:
        for sheet in outcome.sheets:
            say(out, sheet.name)
            rows = table(*sheet.head, right=sheet.right)
            for row in sheet.rows:
                rows.add_row(*row)
            out.print(rows)
            for note in sheet.notes:
                say(out, note)
            say(out, "")
        missing = "" if outcome.cells == outcome.of else f", {outcome.of - outcome.cells} were not run"
        say(out, f"{outcome.target} {outcome.preset}: {outcome.cells} cells ({outcome.made} made now{missing}).")
        for file in outcome.files:
            say(out, f"  {file}")


def checked(out: Console, report: Checked) -> None:
    say(out, f"Compared {report.pages} pages with their cells, {len(report.findings)} differences.")
