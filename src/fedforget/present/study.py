"""What the commands for comparing answer."""

from rich.console import Console

from ..demo import DemoReport, cost_shares
from ..forgetting.guarantee import MEANINGS
from ..workspace.reports import DataReport
from ..workspace.storage import StorageReport
from .base import part, say, size, table
from .verbs import verified


def demo(out: Console, report: DemoReport) -> None:
    chosen = report.settings
    say(out, f"{chosen.clients} clients in {chosen.shards} isolated shards of {chosen.participants} a round, beside")
    say(out, f"one model of {chosen.shards * chosen.participants} a round; forget {report.client} five ways.")
    say(
        out,
        f"Before: ensemble of {chosen.shards} shards {part(report.sharded_accuracy)}, "
        f"unsharded {part(report.unsharded_accuracy)}",
    )
    right = ("accuracy", "client-epochs", "of FR", "training", "in all")
    rows = table("method", "class", *right, right=right)
    shares = cost_shares(report)
    for row in report.rows:
        rows.add_row(
            row.method,
            row.guarantee,
            part(row.accuracy),
            str(row.client_epochs),
            part(shares[row.method]),
            f"{row.training_seconds:.2f} s",
            f"{row.seconds:.1f} s",
        )
    out.print(rows)
    say(out, "training: the clients' work; in all: with sealing, coding and the disk, which small models drown in.")
    for row in report.rows:
        say(out, f"  {row.method}: {row.title}")
    for grade in sorted({r.guarantee for r in report.rows}):
        say(out, f"  {grade}: {MEANINGS[grade]}")  # type: ignore[index]
    say(out, f"\n{report.path} holds the federation after exact forgetting. Is that so?")
    verified(out, report.verified)
    say(out, f"\nIn {report.seconds:.0f} s. Look around: fedforget status {report.path}")
    say(out, f"  fedforget plan {report.path} --client client-012 --method clean")
    say(out, f"  fedforget forget {report.path} --client client-012 --client client-033")
    say(out, f"  fedforget verify {report.path} --never-joined")


def storage(out: Console, report: StorageReport) -> None:
    say(
        out,
        f"{report.clients} clients, {report.shards} shards of {report.participants} a round, {report.rounds} rounds, "
        f"models of {size(report.model_bytes)}; forget one client exactly",
    )
    stored = ("server", "of FE", "a holder", "in all", "of plain")
    rows = table("stored", *stored, right=stored)
    for row in report.rows:
        a = row.account
        rows.add_row(
            row.name,
            size(a.server),
            f"{100 * row.server_of_fe:.1f} %",
            size(a.holder),
            size(a.total),
            f"{row.total_of_plain:.2f}",
        )
    out.print(rows)
    say(out, "")
    wire = ("record", "recall", "forget")
    rows = table("on the wire", "code", *wire, right=wire)
    for row in report.rows:
        a = row.account
        rows.add_row(row.name, row.code, *(size(t.bytes) for t in (a.record, a.recall, a.forget)))
    out.print(rows)
    say(out, "record: for all of training. recall: to read the leaver's shard (the paper: everything,")
    say(out, "for it mixes the shards). forget: of an exact forget: checkpoint read, new")
    say(out, "generation placed, the leaver's slices made again elsewhere.")


def dataset(out: Console, report: DataReport) -> None:
    say(out, report.plot)
