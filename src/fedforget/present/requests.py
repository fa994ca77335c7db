"""What the verbs of requests answer."""

from rich.console import Console

from ..workspace.request_reports import (
    DeliveryReport,
    KeyPairReport,
    KeyReport,
    KeysReport,
    MigrationReport,
    PolicyReport,
    RequestLine,
    RequestReport,
    RequestsReport,
    RunReport,
    WishReport,
)
from .base import say, table
from .verbs import forgot


def key_pair(out: Console, report: KeyPairReport) -> None:
    say(out, f"Made {report.secret_file}, to be kept secret, and {report.public_file}, to be enrolled.")
    say(out, f"  {report.key}")


def key(out: Console, report: KeyReport) -> None:
    if report.revoked:
        say(out, f"Key {report.id} of {report.role} {report.name} is revoked since {report.revoked}.")
    else:
        say(out, f"Key {report.id} speaks for {report.role} {report.name} since {report.enrolled}.")


def keys(out: Console, report: KeysReport) -> None:
    rows = table("key", "role", "name", "enrolled", "revoked")
    for one in report.keys:
        rows.add_row(one.id, one.role, one.name, one.enrolled, one.revoked or "")
    out.print(rows)


def wished(out: Console, report: WishReport) -> None:
    say(out, f"Signed request {report.request} to forget {report.scope}, in {report.file}.")
    say(out, f"Deliver it before {report.expires}: fedforget request DIR --file {report.file}")


def delivered(out: Console, report: DeliveryReport) -> None:
    for receipt in report.receipts:
        if receipt.state == "denied":
            say(out, f"denied: {receipt.why}")
        else:
            say(out, f"{receipt.request} {receipt.state}{' (it had come before)' if receipt.again else ''}")


def _who(line: RequestLine) -> str:
    return f"{line.role} {line.name}".rstrip()


def requests(out: Console, report: RequestsReport) -> None:
    rows = table("request", "state", "to forget", "asked by", "deadline", "")
    for line in report.requests:
        rows.add_row(line.id, line.state, line.scope, _who(line), line.deadline[:10], line.warning or line.reason)
    out.print(rows)
    say(out, ", ".join(f"{count} {state}" for state, count in sorted(report.counts.items())) or "No requests.")
    for stage, shard, since in report.left_out:
        say(out, f"Left out of what is served: shard {shard} of stage {stage}, since {since}")


def request(out: Console, report: RequestReport) -> None:
    line = report.request
    say(out, f"Request {line.id}: {line.state}")
    say(out, f"  to forget {line.scope}, asked by {_who(line)}")
    for name in ("reason", "basis"):
        if report.document.get(name):
            say(out, f"  {name}: {report.document[name]}")
    say(out, f"  received {line.received}, deadline {line.deadline}{', ' if line.warning else ''}{line.warning}")
    say(out, f"  signed by {report.key or 'nobody: by the hand of the custodian'}")
    for said in report.verdicts:
        why = f": {said.reason}" if said.reason else ""
        say(out, f"  {said.time} {said.verdict} by {said.role} {said.name}".rstrip() + why)
    if line.reason:
        say(out, f"  {line.state} because {line.reason}")
    if line.executed:
        by = f" by rebuild {line.rebuild}" if line.rebuild is not None else ""
        say(out, f"  executed {line.executed}{by}")
    if report.outcome is not None:
        grade = report.outcome["guarantee"]
        say(out, f"  guarantee {grade['grade']}: {grade['reason']}")


def worked(out: Console, report: RunReport) -> None:
    for id, text in report.warnings:
        say(out, f"warning: {id}: {text}")
    for rebuild in report.rebuilds:
        forgot(out, rebuild)
    if report.executed:
        say(out, f"Executed: {', '.join(report.executed)}")
    if report.final:
        say(out, f"Final: {', '.join(report.final)}")
    for id, why in report.needs_human:
        say(out, f"{id} needs a human: {why}")
    if report.waiting:
        say(out, f"{report.waiting} waiting, the next batch is due at {report.next_batch}; --now does not wait")
    elif not (report.executed or report.final or report.needs_human):
        say(out, "Nothing to do.")


def policy(out: Console, report: PolicyReport) -> None:
    say(out, f"Requests are gathered for {report.window_hours} hours before a batch.")
    say(out, f"Backups are kept for {report.backup_days} days; a request is final when none from before it is left.")


def migrated(out: Console, report: MigrationReport) -> None:
    if report.found == report.version:
        say(out, f"{report.path} is of version {report.version} already.")
    else:
        kept = f"; as it was it lies in {report.backup}" if report.backup else ""
        say(out, f"{report.path} went from version {report.found} to {report.version}{kept}.")
