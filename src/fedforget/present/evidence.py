"""What log and certificates say."""

import json

from rich.console import Console

from ..workspace.reports import (
    CertificateReport,
    CertificatesReport,
    EventsReport,
    KeyReport,
    LogReport,
    ProofReport,
    SaltReport,
)
from .base import say, table


def log_key(out: Console, report: KeyReport) -> None:
    say(out, report.key)


def log_events(out: Console, report: EventsReport) -> None:
    for event in report.events:
        said = "redacted" if event["body"] is None else json.dumps(event["body"], sort_keys=True, ensure_ascii=False)
        say(out, f"{event['seq']:>6}  {event['time']}  {event['kind']}  {said}")
    if len(report.events) < report.of:
        say(out, f"The newest {len(report.events)} of {report.of}.")


def log_checkpoint(out: Console, report: LogReport) -> None:
    out.print(report.checkpoint, markup=False, highlight=False, soft_wrap=True, end="")
    if report.since is not None:
        say(out, f"\nIt goes on from the log of {report.since} events:")
        for part in report.proof:
            say(out, f"  {part}")


def log_verified(out: Console, report: LogReport) -> None:
    say(out, f"ok   the log of {report.size} events goes on from the {report.since} of that checkpoint, unchanged")


def log_proof(out: Console, report: ProofReport) -> None:
    say(out, f"Event {report.event['seq']} ({report.event['kind']}), leaf {report.hash}, by")
    for part in report.proof:
        say(out, f"  {part}")
    say(out, "is in the log of")
    out.print(report.checkpoint, markup=False, highlight=False, soft_wrap=True, end="")


def log_redacted(out: Console, report: EventsReport) -> None:
    numbers = ", ".join(str(event["seq"]) for event in report.events)
    say(out, f"Deleted what events {numbers} said; every hash and proof is as it was.")


def certificates(out: Console, report: CertificatesReport) -> None:
    if not report.certificates:
        say(out, "No certificates yet: `fedforget forget` makes them.")
        return
    rows = table("request", "state", "event", "file", right=("request", "event"))
    for row in report.certificates:
        name = row.file if row.there else f"{row.file} (missing; `fedforget certificate issue DIR` writes it)"
        rows.add_row(str(row.request), row.state, str(row.event), name)
    out.print(rows, markup=False)
    for why in report.waiting:
        say(out, f"Not final yet: {why}")


def certificate(out: Console, report: CertificateReport) -> None:
    told = report.statement["predicate"]
    for line in report.verified:
        say(out, f"ok   {line}")
    if not report.verified:
        say(out, f"Not verified; it names the key {report.keyid}.")
    guarantee, gone, replayed = told["guarantee"], told["destroyed"], told["replayed"]
    say(out, f"Request {told['request']['id']} of {told['federation']} is {told['state']}.")
    say(out, f"  asked {told['request']['requested']}, executed {told['request']['executed']}")
    say(out, f"Guarantee {guarantee['class']} ({guarantee['name']}): {guarantee['meaning']}.")
    say(out, f"  Because: {guarantee['reason']}.")
    for condition in guarantee["conditions"]:
        say(out, f"  But: {condition}.")
    say(out, f"  Why not better: {guarantee['not_better']}.")
    for reach in told["touched"]:
        say(
            out, f"  stage {reach['stage']} shard {reach['shard']}: {reach['rounds']} rounds from {reach['from_round']}"
        )
    before = {model["name"]: model["digest"]["sha256"] for model in told["before"]}
    for model in report.statement["subject"]:
        old, new = before.get(model["name"], "-"), model["digest"]["sha256"]
        say(out, f"  {model['name']} {new[:16]}" + (" untouched" if old == new else f", before {old[:16]}"))
    say(
        out,
        f"  method {told['method']['name']}; {replayed['clients']} clients trained {replayed['rounds']} rounds again",
    )
    pending = f", {gone['slices_pending']} pending" if gone["slices_pending"] else ""
    say(out, f"  {gone['record_keys']} keys destroyed, {gone['slices_deleted']} slices deleted{pending}")
    say(out, f"  backups from before are kept until {told['backups']['over']}")
    say(out, f"  fedforget {told['code']['version']}, sources {told['code']['sources'][:16]}")
    for limit in told["limits"]:
        say(out, f"Limit: {limit}.")


def certificate_salt(out: Console, report: SaltReport) -> None:
    say(out, f"{report.client} in request {report.request}: salt {report.salt}")
    say(out, f"  is the commitment {report.commitment}")
