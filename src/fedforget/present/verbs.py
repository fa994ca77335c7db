"""What the verbs answer."""

from rich.console import Console

from ..workspace.reports import (
    AbandonReport,
    EvaluateReport,
    ForgetReport,
    PlanReport,
    Reach,
    RepairReport,
    ScrubReport,
    StageReport,
    StatusReport,
    TrainReport,
    VerifyReport,
)
from .base import part, promise, say, size, table


def made(out: Console, report: StatusReport) -> None:
    say(out, f"Made {report.path}: {report.clients} clients in {len(report.shards)} shards, task {report.task}.")
    say(out, f"Next: fedforget train {report.path}")


def trained(out: Console, report: TrainReport) -> None:
    gone_on = f", going on after {report.resumed_at}" if report.resumed_at else ""
    say(out, f"Stage {report.stage}: {report.rounds} shard rounds{gone_on}, {report.client_epochs} client-epochs.")
    for notice in report.notices:
        say(out, f"  note: {notice}")
    for client, where, why in report.absent:
        say(out, f"  {client} {why} ({where})")
    for shard, digest in report.digests.items():
        say(out, f"  shard {shard}: model {digest[:16]}")


def staged(out: Console, report: StageReport) -> None:
    say(out, f"Stage {report.stage} is open: {report.rounds} rounds, hand-over {report.handover}.")
    for client, shard in report.joined:
        say(out, f"  {client} joins shard {shard}")
    for client in report.left:
        say(out, f"  {client} takes part no longer (it is not forgotten)")
    for warning in report.warnings:
        say(out, f"  warning: {warning}")


def _reach(reach: Reach) -> str:
    why = ", handed over" if reach.inherited else ""
    return f"stage {reach.stage} shard {reach.shard}: {reach.rounds} rounds from round {reach.from_round}{why}"


def planned(out: Console, report: PlanReport) -> None:
    say(out, f"Forgetting {report.scope or ', '.join(report.clients)} by {report.method} would")
    if report.examples:
        say(out, f"  drop {report.examples} examples of clients that stay")
    if not report.touches:
        say(out, "  touch nothing")
    for reach in report.touches:
        say(out, f"  make again {_reach(reach)}")
    time = "" if report.seconds is None else f", about {report.seconds:.1f} s of the clients' work"
    here = "" if report.wall_seconds is None else f", {report.wall_seconds:.1f} s here"
    say(out, f"  cost {report.client_epochs} client-epochs in {report.rounds} shard rounds{time}{here}")
    for shard in report.ends:
        say(out, f"  end shard {shard}: nobody would be left in it; the others serve on")
    promise(out, report.guarantee.grade, report.guarantee.reason, report.guarantee.conditions)


def forgot(out: Console, report: ForgetReport) -> None:
    what = report.scope or ", ".join(report.clients)
    say(out, f"Forgot {what} by {report.method} (request {report.request}).")
    if report.examples:
        say(out, f"  {report.examples} examples of clients that stay were dropped")
    for reach in report.touches:
        say(out, f"  made again {_reach(reach)}")
    say(out, f"  {report.client_epochs} client-epochs, {report.wall_seconds:.1f} s")
    for shard in sorted({*report.before, *report.after}, key=int):
        old, new = report.before.get(shard), report.after.get(shard)
        if new is None:
            say(out, f"  shard {shard} has ended: nobody is left in it")
        elif old == new:
            say(out, f"  shard {shard} untouched: model {new[:16]}")
        else:
            say(out, f"  shard {shard}: model {(old or '-')[:16]} became {new[:16]}")
    owed = f", {report.slices_owed} owed by holders that are away" if report.slices_owed else ""
    say(out, f"  {report.keys_destroyed} keys destroyed, {report.slices_deleted} slices deleted{owed}")
    promise(out, report.guarantee.grade, report.guarantee.reason, report.guarantee.conditions)
    if report.certificate:
        say(out, f"Certificate: {report.certificate}")


def status(out: Console, report: StatusReport) -> None:
    say(out, f"{report.path}: task {report.task}, learner {report.learner}, stage {report.stage} ({report.handover})")
    rows = table("shard", "clients", "rounds", "generation", "class", "model", right=("clients", "rounds"))
    for s in report.shards:
        rounds = f"{s.rounds}/{s.of}" if s.living else "ended"
        rows.add_row(str(s.shard), str(s.clients), rounds, str(s.generation), s.standing, s.digest[:16])
    out.print(rows)
    codes = ", ".join(report.codes) or "nothing yet"
    say(out, f"History: {report.history}, layout {report.layout}, code {codes}, {report.holders} holders")
    say(
        out,
        f"Stored: server {size(report.server_bytes)}, fullest holder {size(report.holder_bytes)}, "
        f"in all {size(report.total_bytes)}; key epoch {report.epoch}",
    )
    if report.served is not None:
        say(out, f"Served: {report.served}")
    elif report.left_out:
        say(out, "Served: nothing; every shard is left out until what is asked for is carried out")
    for shard, requests in report.left_out:
        say(out, f"  shard {shard} is quarantined for {', '.join(requests)}")
    if report.forgotten:
        say(out, f"Forgotten: {', '.join(report.forgotten)}")
    if report.unfinished:
        say(out, f"Unfinished: forgetting {', '.join(report.unfinished)}; `fedforget forget {report.path}` goes on")
    if report.debts:
        say(out, f"Owed: {report.debts} deletions by holders that are away")
    for client, shard in report.members:
        say(out, f"  {client}  shard {shard}")


def abandoned(out: Console, report: AbandonReport) -> None:
    say(out, f"Gave up forgetting {report.scope} ({report.method}): nothing was changed, it may be asked for again.")
    if report.debts:
        say(out, f"Owed: {report.debts} deletions by holders that are away")


def verified(out: Console, report: VerifyReport) -> None:
    marks = {True: "ok  ", False: "FAIL", None: "--  "}
    for check in report.checks:
        say(out, f"{marks[check.passed]} {check.what}: {check.detail}")
    for finding in report.findings[:10]:
        say(out, f"     {finding}")
    if len(report.findings) > 10:
        say(out, f"     and {len(report.findings) - 10} more")


def scrubbed(out: Console, report: ScrubReport) -> None:
    say(out, f"Checked {report.checked} of {report.of} slices, {len(report.findings)} missing or altered.")
    for finding in report.findings[:10]:
        say(out, f"  {finding}")
    if report.next:
        say(out, "  The next scrub goes on from here.")


def repaired(out: Console, report: RepairReport) -> None:
    say(out, f"Made {len(report.repaired)} slices again.")
    if report.vacant:
        say(out, f"  {report.vacant} seats stay vacant: nobody else could take them over")
    for loss in report.lost:
        say(out, f"  lost: {loss}")


def evaluated(out: Console, report: EvaluateReport) -> None:
    right = ("test", "loss", "retained", "forgotten")
    rows = table("model", *right, right=right)
    for s in report.scores:
        rows.add_row(
            s.model,
            part(s.test_accuracy),
            f"{s.test_loss:.3f}",
            part(s.retained_accuracy),
            part(s.forgotten_accuracy),
        )
    out.print(rows)
    say(out, f"Accuracy on {report.test_examples} test examples, and on those of present and forgotten clients.")
    if report.guarantee is not None:
        say(out, f"Combinations: {report.guarantee}")
