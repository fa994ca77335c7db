"""What the verbs that hand models out answer."""

from rich.console import Console

from ..workspace.reports import ExportReport, ExportRow, ExportsReport, ServeReport
from .base import promise, say, size


def exported(out: Console, report: ExportReport) -> None:
    shards = ", ".join(map(str, report.shards))
    say(out, f"Wrote {report.path}: {report.combine} of shards {shards}, {size(report.bytes)}, to {report.recipient}.")
    say(out, f"  export {report.export}, generation {report.generation}, digest {report.digest}")
    promise(out, report.guarantee.grade, report.guarantee.reason, report.guarantee.conditions)


def exports(out: Console, report: ExportsReport) -> None:
    if not report.exports:
        say(out, "Nobody was given a model.")
    for row in report.tell:
        say(out, f"TELL {_row(row)}: {_why(row)}")
    for row in report.exports:
        if not row.tell:
            say(out, f"ok   {_row(row)}")
    if report.tell:
        say(out, "Once a recipient is told: fedforget exports DIR --told NUMBER")


def _row(row: ExportRow) -> str:
    return (
        f"export {row.export} to {row.recipient} on {row.time}, "
        f"{row.combine}, generation {row.generation}, {row.digest[:16]}"
    )


def _why(row: ExportRow) -> str:
    if row.restored:
        return "a backup came back since, so what it holds of the forgotten nobody can say"
    return f"it holds what request {', '.join(map(str, row.forgotten))} has made us forget since"


def serving(out: Console, report: ServeReport) -> None:
    say(out, f"Serving the {report.combine} at {report.address}: GET /model, GET /status, POST /predict. Ctrl-C ends.")
