"""What the commands that measure answer."""

from rich.console import Console

from ..workspace.audit import AuditReport, Finding
from ..workspace.compare import CompareReport
from .base import part, say, table

_VIEWS = {"shard": "the model of the client's own shard", "served": "the ensemble of all shards"}


def audited(out: Console, report: AuditReport) -> None:
    how = "as served" if report.served else "in trial, " + ("together" if report.together else "each alone")
    say(out, f"Forgotten, {how}: {_some(report.forgotten)}")
    if report.retained:
        say(out, f"Beside them, clients of the same shards who stay: {_some(report.retained)}")
    say(out, f"{report.references} reference federations, {report.trainings} under attack; intervals: {report.drawn}")
    for view, words in _VIEWS.items():
        right = ("AUC", "TPR at 1 %", "at 0.1 %", "RMIA")
        rows = table("data", "models", *right, right=right)
        for found in report.findings:
            if (found.attack, found.view) == ("LiRA", view):
                result = found.result
                relative = report.finding(found.data, found.world, found.view, "RMIA").result
                interval = f"{result.auc:.3f} [{result.interval[0]:.3f}, {result.interval[1]:.3f}]"
                rates = [_rate(found, fpr) for fpr in (0.01, 0.001)]
                rows.add_row(found.data, found.world, interval, *rates, f"{relative.auc:.3f}")
        say(out, f"\nLooking at {words}:")
        out.print(rows)
    say(out, "\nEach line: LiRA (RMIA: its AUC) tells these models from those the clients never joined. Blind: 0.5.")
    for world, same in report.identical.items():
        say(out, f"  {world}: {'bit-identical to' if same else 'not the bits of'} the run they never joined")
    for note in report.notes:
        say(out, f"  {note}")
    say(out, "An attack that finds nothing proves nothing; the guarantee class says what was done.")


def _rate(found: Finding, fpr: float) -> str:
    value = found.result.rate(fpr).tpr
    return "-" if value is None else f"{100 * value:.1f} %"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def compared(out: Console, report: CompareReport) -> None:
    how = "as served" if report.served else "in trial"
    say(out, f"Forgotten, {how}: {_some(report.forgotten)}. Each line beside the model they never joined:")
    columns = ("distance", "agree", "JS", "test", "forgot", "retain", "relearn", "epochs")
    rows = table("models", *columns, right=columns)
    for row in report.rows:
        relearn = "-" if not report.relearn_limit else f">{report.relearn_limit}"
        rows.add_row(
            row.world,
            "same bits" if row.identical else f"{row.relative:.3f}",
            part(row.agreement),
            f"{row.divergence:.1e}",
            part(row.test_accuracy),
            part(row.forgotten_accuracy),
            part(row.retained_accuracy),
            relearn if row.relearn is None else f"{row.relearn:g}",
            "-" if row.client_epochs is None else str(row.client_epochs),
        )
    out.print(rows)
    say(out, "distance: ‖w − w*‖/‖w*‖ of the leavers' shards; read it beside that of another seed. agree, JS and")
    say(out, "accuracy on test, forgotten and retained data: the ensemble's. relearn: epochs on the forgotten data")
    say(out, "until it is fitted as before. epochs: client-epochs to get there.")
    if report.backdoor:
        rows = table("a trigger works in", "own shard", "ensemble", right=("own shard", "ensemble"))
        for line in report.backdoor:
            rows.add_row(line.world, part(line.shard), part(line.served))
        out.print(rows)
    for note in report.notes:
        say(out, f"  {note}")
