"""Present: reports as a person reads them in a terminal."""

from rich.console import Console
from rich.table import Table

from .demo import DemoReport, cost_shares
from .forgetting.guarantee import MEANINGS, NAMES, GuaranteeClass
from .workspace.reports import (
    DataReport,
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
from .workspace.storage import StorageReport


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _say(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def made(out: Console, report: StatusReport) -> None:
    _say(out, f"Made {report.path}: {report.clients} clients in {len(report.shards)} shards, task {report.task}.")
    _say(out, f"Next: fedforget train {report.path}")


def trained(out: Console, report: TrainReport) -> None:
    gone_on = f", going on after {report.resumed_at}" if report.resumed_at else ""
    _say(out, f"Stage {report.stage}: {report.rounds} shard rounds{gone_on}, {report.client_epochs} client-epochs.")
    for client, where, why in report.absent:
        _say(out, f"  {client} {why} ({where})")
    for shard, digest in report.digests.items():
        _say(out, f"  shard {shard}: model {digest[:16]}")


def staged(out: Console, report: StageReport) -> None:
    _say(out, f"Stage {report.stage} is open: {report.rounds} rounds, hand-over {report.handover}.")
    for client, shard in report.joined:
        _say(out, f"  {client} joins shard {shard}")
    for client in report.left:
        _say(out, f"  {client} takes part no longer (it is not forgotten)")
    for warning in report.warnings:
        _say(out, f"  warning: {warning}")


def _reach(reach: Reach) -> str:
    why = ", handed over" if reach.inherited else ""
    return f"stage {reach.stage} shard {reach.shard}: {reach.rounds} rounds from round {reach.from_round}{why}"


def planned(out: Console, report: PlanReport) -> None:
    _say(out, f"Forgetting {', '.join(report.clients)} by {report.method} would")
    if not report.touches:
        _say(out, "  touch nothing")
    for reach in report.touches:
        _say(out, f"  make again {_reach(reach)}")
    time = "" if report.seconds is None else f", about {report.seconds:.1f} s of the clients' work"
    _say(out, f"  cost {report.client_epochs} client-epochs in {report.rounds} shard rounds{time}")
    for shard in report.ends:
        _say(out, f"  end shard {shard}: nobody would be left in it; the others serve on")
    _guarantee(out, report.guarantee.grade, report.guarantee.reason, report.guarantee.conditions)


def _guarantee(out: Console, grade: GuaranteeClass, reason: str, conditions: tuple[str, ...]) -> None:
    _say(out, f"Guarantee {grade} ({NAMES[grade]}): {MEANINGS[grade]}.")
    _say(out, f"  Because: {reason}.")
    for condition in conditions:
        _say(out, f"  But: {condition}.")


def forgot(out: Console, report: ForgetReport) -> None:
    _say(out, f"Forgot {', '.join(report.clients)} by {report.method} (request {report.request}).")
    for reach in report.touches:
        _say(out, f"  made again {_reach(reach)}")
    _say(out, f"  {report.client_epochs} client-epochs, {report.wall_seconds:.1f} s")
    for shard in sorted({*report.before, *report.after}, key=int):
        old, new = report.before.get(shard), report.after.get(shard)
        if new is None:
            _say(out, f"  shard {shard} has ended: nobody is left in it")
        elif old == new:
            _say(out, f"  shard {shard} untouched: model {new[:16]}")
        else:
            _say(out, f"  shard {shard}: model {(old or '-')[:16]} became {new[:16]}")
    owed = f", {report.slices_owed} owed by holders that are away" if report.slices_owed else ""
    _say(out, f"  {report.keys_destroyed} keys destroyed, {report.slices_deleted} slices deleted{owed}")
    _guarantee(out, report.guarantee.grade, report.guarantee.reason, report.guarantee.conditions)


def status(out: Console, report: StatusReport) -> None:
    _say(out, f"{report.path}: task {report.task}, learner {report.learner}, stage {report.stage} ({report.handover})")
    table = _table("shard", "clients", "rounds", "generation", "class", "model", right=("clients", "rounds"))
    for s in report.shards:
        rounds = f"{s.rounds}/{s.of}" if s.living else "ended"
        table.add_row(str(s.shard), str(s.clients), rounds, str(s.generation), s.standing, s.digest[:16])
    out.print(table)
    codes = ", ".join(report.codes) or "nothing yet"
    _say(out, f"History: {report.history}, layout {report.layout}, code {codes}, {report.holders} holders")
    _say(
        out,
        f"Stored: server {size(report.server_bytes)}, fullest holder {size(report.holder_bytes)}, "
        f"in all {size(report.total_bytes)}; key epoch {report.epoch}",
    )
    if report.forgotten:
        _say(out, f"Forgotten: {', '.join(report.forgotten)}")
    if report.unfinished:
        _say(out, f"Unfinished: forgetting {', '.join(report.unfinished)}; `fedforget forget {report.path}` goes on")
    if report.debts:
        _say(out, f"Owed: {report.debts} deletions by holders that are away")
    for client, shard in report.members:
        _say(out, f"  {client}  shard {shard}")


def verified(out: Console, report: VerifyReport) -> None:
    for check in report.checks:
        _say(out, f"{'ok  ' if check.passed else 'FAIL'} {check.what}: {check.detail}")
    for finding in report.findings[:10]:
        _say(out, f"     {finding}")
    if len(report.findings) > 10:
        _say(out, f"     and {len(report.findings) - 10} more")


def scrubbed(out: Console, report: ScrubReport) -> None:
    _say(out, f"Checked {report.checked} of {report.of} slices, {len(report.findings)} missing or altered.")
    for finding in report.findings[:10]:
        _say(out, f"  {finding}")
    if report.next:
        _say(out, "  The next scrub goes on from here.")


def repaired(out: Console, report: RepairReport) -> None:
    _say(out, f"Made {len(report.repaired)} slices again.")
    if report.vacant:
        _say(out, f"  {report.vacant} seats stay vacant: nobody else could take them over")
    for loss in report.lost:
        _say(out, f"  lost: {loss}")


def evaluated(out: Console, report: EvaluateReport) -> None:
    right = ("test", "loss", "retained", "forgotten")
    table = _table("model", *right, right=right)
    for s in report.scores:
        table.add_row(
            s.model,
            _part(s.test_accuracy),
            f"{s.test_loss:.3f}",
            _part(s.retained_accuracy),
            _part(s.forgotten_accuracy),
        )
    out.print(table)
    _say(out, f"Accuracy on {report.test_examples} test examples, and on those of present and forgotten clients.")


def _part(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def demo(out: Console, report: DemoReport) -> None:
    chosen = report.settings
    _say(out, f"{chosen.clients} clients in {chosen.shards} isolated shards of {chosen.participants} a round, beside")
    _say(out, f"one model of {chosen.shards * chosen.participants} a round; forget {report.client} five ways.")
    _say(
        out,
        f"Before: ensemble of {chosen.shards} shards {_part(report.sharded_accuracy)}, "
        f"unsharded {_part(report.unsharded_accuracy)}",
    )
    right = ("accuracy", "client-epochs", "of FR", "time")
    table = _table("method", "class", *right, right=right)
    shares = cost_shares(report)
    for row in report.rows:
        table.add_row(
            row.method,
            row.guarantee,
            _part(row.accuracy),
            str(row.client_epochs),
            _part(shares[row.method]),
            f"{row.seconds:.1f} s",
        )
    out.print(table)
    for row in report.rows:
        _say(out, f"  {row.method}: {row.title}")
    for grade in sorted({r.guarantee for r in report.rows}):
        _say(out, f"  {grade}: {MEANINGS[grade]}")  # type: ignore[index]
    _say(out, f"\n{report.path} holds the federation after exact forgetting. Is that so?")
    verified(out, report.verified)
    _say(out, f"\nIn {report.seconds:.0f} s. Look around: fedforget status {report.path}")
    _say(out, f"  fedforget plan {report.path} --client client-012 --method clean")
    _say(out, f"  fedforget forget {report.path} --client client-012 --client client-033")
    _say(out, f"  fedforget verify {report.path} --never-joined")


def storage(out: Console, report: StorageReport) -> None:
    _say(
        out,
        f"{report.clients} clients, {report.shards} shards of {report.participants} a round, {report.rounds} rounds, "
        f"models of {size(report.model_bytes)}; forget one client exactly",
    )
    stored = ("server", "of FE", "a holder", "in all", "of plain")
    table = _table("stored", *stored, right=stored)
    for row in report.rows:
        a = row.account
        table.add_row(
            row.name,
            size(a.server),
            f"{100 * row.server_of_fe:.1f} %",
            size(a.holder),
            size(a.total),
            f"{row.total_of_plain:.2f}",
        )
    out.print(table)
    _say(out, "")
    wire = ("record", "recall", "forget")
    table = _table("on the wire", "code", *wire, right=wire)
    for row in report.rows:
        a = row.account
        table.add_row(row.name, row.code, *(size(t.bytes) for t in (a.record, a.recall, a.forget)))
    out.print(table)
    _say(out, "record: for all of training. recall: to read the leaver's shard (the paper: everything,")
    _say(out, "for it mixes the shards). forget: for the new generation of an exact forget.")


def dataset(out: Console, report: DataReport) -> None:
    _say(out, report.plot)
