"""What the commands that measure answer."""

from rich.console import Console

from ..workspace.audit import AuditReport, Finding
from .base import say, table

_VIEWS = {"shard": "the shard's own model", "served": "the ensemble served"}


def audited(out: Console, report: AuditReport) -> None:
    how = "together, as they are served" if report.together else "each alone"
    say(out, f"{len(report.forgotten)} clients forgotten {how}: {_some(report.forgotten)}")
    say(out, f"{report.references} reference federations; {report.trainings} under attack; intervals: {report.drawn}")
    right = ("AUC", "95 %", "TPR at 1 %", "at 0.1 %", "RMIA's AUC")
    rows = table("data", "seen at", "models", *right, right=right)
    for found in report.findings:
        if found.attack == "LiRA":
            result = found.result
            relative = report.finding(found.data, found.world, found.view, "RMIA").result
            interval = f"{result.interval[0]:.3f}–{result.interval[1]:.3f}"
            rates = [rate(found, fpr) for fpr in (0.01, 0.001)]
            cells = (f"{result.auc:.3f}", interval, *rates, f"{relative.auc:.3f}")
            rows.add_row(found.data, found.view, found.world, *cells)
    out.print(rows)
    say(out, "Each line: LiRA asked to tell these models from those the clients never trained. Blind: AUC 0.5, TPR 1 %")
    say(out, f"and 0.1 %. Seen at: shard, {_VIEWS['shard']}; served, {_VIEWS['served']}.")
    for world, same in report.identical.items():
        say(out, f"  {world}: {'bit-identical to' if same else 'not the bits of'} the run they never joined")
    for note in report.notes:
        say(out, f"  {note}")
    say(out, "An attack that finds nothing proves nothing; the guarantee class says what was done.")


def rate(found: Finding, fpr: float) -> str:
    value = found.result.rate(fpr).tpr
    return "-" if value is None else f"{100 * value:.1f} %"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
