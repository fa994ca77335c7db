"""Auditing: the verbs around log and certificates. Those that take a file need no workspace."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SettingError, VerificationFailed
from ..evidence import certificate, standalone
from ..evidence.dsse import open_unchecked
from ..evidence.schema import unfit
from ..signing import PublicKey
from . import certify, log
from .lock import locked
from .progress import Progress, silent
from .reports import (
    CertificateReport,
    CertificatesReport,
    EventsReport,
    KeyReport,
    LogReport,
    ProofReport,
    SaltReport,
)
from .state import digests

if TYPE_CHECKING:
    from .workspace import Workspace

VERIFIER = "verify_certificate.py"


def read_key(text: str) -> PublicKey:
    """A public key as text, or a file with it."""
    return PublicKey.parse(text if text.startswith("ed25519:") else Path(text).read_text())


# --- the log ------------------------------------------------------------------------------------------------


def key(space: "Workspace", new: bool = False) -> KeyReport:
    """The key that signs here; `new` makes another, for one that was lost or seen by others."""
    if new:
        with locked(space.path):
            return KeyReport(str(log.new_key(space)))
    return KeyReport(log.public_key(space))


def events(space: "Workspace", last: int = 0) -> EventsReport:
    """The newest events, or all of them."""
    if last < 0:
        raise SettingError("last", last, "0 for all, or more")
    found = [{**event.opened, "hash": event.hash} for event in space.ledger.events()]
    return EventsReport(tuple(found[-last:] if last else found), len(found))


def checkpoint(space: "Workspace", since: int | None = None) -> LogReport:
    return log.report(space, since)


def prove(space: "Workspace", event: int) -> ProofReport:
    return log.prove(space, event)


def verify_log(space: "Workspace", kept: Path, by: PublicKey) -> LogReport:
    """That nothing was taken out of the log, or changed, since somebody kept a checkpoint of it."""
    found = log.check(space)
    if not found.passed:
        raise VerificationFailed([f"{found.what}: {found.detail}"])
    return log.report(space, log.verify_since(space, kept.read_text(), by).size)


def redact(space: "Workspace", seqs: Iterable[int], client: str, why: str) -> EventsReport:
    """Delete what events say: those named, and those that name a client."""
    if not why.strip():
        raise SettingError("why", why, "the reason, which stays in the log: say it without names")
    with space.working():
        chosen = sorted({*seqs, *(log.mentioning(space, client) if client else ())})
        if not chosen:
            raise SettingError("event", client, "the number of an event, or a client that some event names")
        space.ledger.redact(chosen, why)
    return EventsReport(tuple(space.ledger.chain.event(seq).opened for seq in chosen), space.ledger.height())


# --- certificates -------------------------------------------------------------------------------------------


def certificates(space: "Workspace") -> CertificatesReport:
    rows = tuple(certify.listed(space))
    final = {row.request for row in rows if row.state == "final"}
    waiting = [
        why for r in certify.accountable(space) if r.id not in final and (why := certify.why_not_final(space, r))
    ]
    return CertificatesReport(rows, tuple(waiting))


def issue(space: "Workspace", verifier: bool = False) -> CertificatesReport:
    """Write what is missing, make final what can be; with `verifier`, lay the standalone verifier beside."""
    with space.working():
        certify.certify(space)
        if verifier:
            source = Path(standalone.__file__).read_bytes()
            space.disk.write(space.path / certify.FOLDER / VERIFIER, source)
    return certificates(space)


def salt(space: "Workspace", request: int, client: str) -> SaltReport:
    """What lets a client find itself in a certificate, and nobody else."""
    for found in certify.accountable(space):
        if found.id == request and client in (*found.body["leave"], *found.body["edit"]):
            secret = found.body["outcome"]["evidence"]["salt"]
            opened = certify.scope_salt(secret, client)
            return SaltReport(request, client, opened, certify.scope_commitment(opened, client))
    raise SettingError("client", client, f"one that request {request} was about")


def show(file: Path) -> CertificateReport:
    """What it says, believed by nobody yet."""
    payload, keyid, _ = open_unchecked(file.read_bytes())
    statement = certificate.parse(payload)
    wrong = unfit(statement, certificate.SCHEMA)
    if wrong:
        raise VerificationFailed([f"the statement does not fit the schema: {wrong}"])
    return CertificateReport(str(file), keyid, (), statement)


def verify(
    file: Path,
    by: PublicKey,
    *,
    later: Path | None = None,
    client: str = "",
    salted: str = "",
    replay: tuple[int, "Workspace"] | None = None,
    progress: Progress = silent,
) -> CertificateReport:
    """Everything that can be checked of it; VerificationFailed where anything does not hold."""
    found = certificate.read(file.read_bytes(), by)
    event = found.predicate["log"]["event"]
    checked = [
        f"the envelope is signed by {by}",
        "the statement fits its schema",
        f"event {event['seq']} of {found.checkpoint.origin} commits to it",
        f"the event is in the log of {found.checkpoint.size} events, signed {found.checkpoint.time}",
    ]
    if later is not None:
        now = certificate.check_later(found, _json(later), by)
        checked.append(f"the log of {now.size} events, signed {now.time}, goes on from it")
    if client:
        checked.append(_about(found, client, salted))
    if replay is not None:
        checked += replayed(found, *replay, progress)
    return CertificateReport(str(file), by.id, tuple(checked), found.statement)


def _about(found: certificate.Certificate, client: str, salted: str) -> str:
    scope = found.predicate["request"]["scope"]
    try:
        mine = certify.scope_commitment(salted, client)
    except ValueError as fault:
        raise SettingError("salt", salted, "what `fedforget certificate salt DIR` printed") from fault
    for how in ("leave", "change"):
        if mine in scope[how]:
            return f"it is about {client} ({how})"
    raise VerificationFailed([f"it is not about {client} with that salt"])


def replayed(
    found: certificate.Certificate, count: int, space: "Workspace", progress: Progress = silent
) -> Sequence[str]:
    """Random rounds of the workspace trained again, and the certificate's models among those it serves."""
    report = space.verify(replay=count, progress=progress)
    report.raise_if_failed()
    served = {item["name"]: item["digest"] for item in certificate.subjects(digests(space.state()))}
    moved = [s["name"] for s in found.statement["subject"] if served.get(s["name"]) != s["digest"]]
    models = f"moved on since: {', '.join(moved)}" if moved else "the models are those served"
    return [*(check.detail for check in report.checks if check.what == "replay"), models]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as fault:
        raise VerificationFailed([f"{path} is not JSON"]) from fault
