"""Certify: from what the switch recorded to the certificate's file, made again after any interruption.

    outcome of the request (in the switch) → account and its event (one transaction) → certificates/…json

Once the event is there the file is a function of ledger and key: deleted, it comes back bit for bit.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..canonical import canonical
from ..errors import VerificationFailed
from ..evidence import certificate
from ..evidence.dsse import open_unchecked
from ..evidence.note import Checkpoint
from ..forgetting.guarantee import MEANINGS, NAMES, GuaranteeClass
from ..manifest import RoundRow
from ..signing import SecretKey
from ..slices import ALL_SHARDS
from ..storage.certified import Certified, certified
from ..storage.certified import certify as enter
from ..storage.ledger import Request
from . import log
from .reports import CertificateRow, Check
from .state import digests

if TYPE_CHECKING:
    from .workspace import Workspace

FOLDER = "certificates"
NOT_BETTER: dict[GuaranteeClass, str] = {
    "X0": "nothing stronger exists: what is served never depended on the leavers",
    "X1": "nothing stronger exists for clients that took part",
    "X2": "the replay could not meet the conditions of training; they are listed",
    "X3": "the method asked for ends in a model by a shorter algorithm than training; exact would give X1",
    "A": "the method asked for keeps step lengths measured while the leavers took part; exact would give X1",
    "Q": "the tainted shards are left out of what is served and have not been made again",
}
LIMITS = (
    "it accounts for what this software keeps; copies made outside it are not known to it",
    "holders acknowledge deletion themselves; what one kept does not open, for its key is destroyed",
    "models handed out before are not called back by it",
    "a copy of the destroyed epoch key would open old slices together with an old ledger; the backup window bounds it",
    "digests show that models are the ones named, not that a model has learnt nothing a retained client also has",
)


def evidence(
    space: "Workspace", request: Request, made: tuple[RoundRow, ...], epoch: int, keys: int, wall: float
) -> dict[str, Any]:
    """What is known at the switch and has to be recorded with it. Decimal numbers travel as text."""
    now = moment(space.ledger.clock())
    return {
        "salt": os.urandom(32).hex(),
        "requested": request.body.get("requested", now),
        "executed": now,
        "epoch": epoch,
        "record_keys": keys,
        "replayed": {
            "clients": len({client for row in made for client in row.roster}),
            "rounds": len(made),
            "client_epochs": sum(row.cost.client_epochs for row in made),
        },
        "measures": {"client_seconds": _decimal(sum(row.cost.seconds for row in made)), "wall_seconds": _decimal(wall)},
        "code": {"package": "fedforget", "version": __version__, "sources": sources_digest()},
        "numerics": list(space.ledger.noted("numerics")),
    }


@cache
def sources_digest() -> str:
    """SHA-256 over the installed source files, by name and content."""
    root, sha = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sha.update(f"{path.relative_to(root).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()


def scope_salt(secret: str, who: str) -> str:
    """The salt of one name: shown to its owner it opens that one commitment and no other."""
    return hashlib.sha256(bytes.fromhex(secret) + who.encode()).hexdigest()


def scope_commitment(salt: str, who: str) -> str:
    """How a name stands in a certificate: told only by who has its salt."""
    return hashlib.sha256(bytes.fromhex(salt) + who.encode()).hexdigest()


def _committed(secret: str, names: list[str]) -> list[str]:
    return sorted(scope_commitment(scope_salt(secret, name), name) for name in names)


# --- accounts -----------------------------------------------------------------------------------------------


def executed_account(space: "Workspace", request: Request, after: Mapping[str, str]) -> dict[str, Any]:
    """The whole story of an executed request, but for its place in the log."""
    body, outcome = request.body, request.body["outcome"]
    known, settings = outcome["evidence"], space.settings
    grade: GuaranteeClass = outcome["guarantee"]["grade"]
    names = {member.client for member, _ in space.ledger.members()}
    waiting = pending(space, request)
    length = body["calibration"]["length"]
    predicate = {
        "state": "executed",
        "federation": settings.federation,
        "request": {
            "id": request.id,
            "requested": known["requested"],
            "executed": known["executed"],
            "scope": {
                "leave": _committed(known["salt"], body["leave"]),
                "change": _committed(known["salt"], body["edit"]),
            },
        },
        "guarantee": {
            "class": grade,
            "name": NAMES[grade],
            "meaning": MEANINGS[grade],
            "reason": outcome["guarantee"]["reason"],
            "conditions": [_nameless(text, names) for text in outcome["guarantee"]["conditions"]],
            "not_better": NOT_BETTER[grade],
        },
        "touched": list(outcome["touches"]),
        "method": {
            "name": body["method"],
            "ratio": _decimal(body["calibration"]["ratio"]),
            "interval": body["calibration"]["interval"],
            "compat": body["calibration"]["compat"],
            "length": None if length is None else _decimal(length),
        },
        "training": {
            "task": settings.task,
            "learner": settings.learner,
            "epochs": settings.epochs,
            "seed": str(settings.seed),
            "settings": settings.digest,
            "numerics": known["numerics"],
        },
        "code": known["code"],
        "before": certificate.subjects(body["before"]),
        "destroyed": {
            "epoch": known["epoch"],
            "record_keys": known["record_keys"],
            "slices_deleted": max(0, outcome["slices"] - waiting),
            "slices_pending": waiting,
        },
        "replayed": known["replayed"],
        "measures": known["measures"],
        "backups": {"window_days": settings.backup_days, "over": moment(_over(space, request))},
        "limits": list(LIMITS),
        "previous": None,
    }
    return certificate.account(after, predicate)


def final_account(space: "Workspace", first: Certified, key: SecretKey) -> dict[str, Any]:
    """The executed account again, with nothing pending, linked to the certificate given out first."""
    told = {**first.account["predicate"]}
    gone = told["destroyed"]
    destroyed = {**gone, "slices_deleted": gone["slices_deleted"] + gone["slices_pending"], "slices_pending": 0}
    blob = space.disk.read(path_of(space, first)) or made_again(space, first, key)
    previous = hashlib.sha256(open_unchecked(blob)[0]).hexdigest()
    return {**first.account, "predicate": {**told, "state": "final", "destroyed": destroyed, "previous": previous}}


def pending(space: "Workspace", request: Request) -> int:
    """Slices of the rounds this request retired whose deletion some holder has not acknowledged."""
    outcome = request.body["outcome"]
    firsts = {(t["stage"], t["shard"]): t["from_round"] for t in outcome["touches"]}
    for (stage, _), first in list(firsts.items()):  # a slice over all shards goes where any of them is touched
        firsts[stage, ALL_SHARDS] = min(first, firsts.get((stage, ALL_SHARDS), first))
    return sum(
        debt.generation <= outcome["evidence"]["epoch"] and debt.round >= firsts.get((debt.stage, debt.shard), 1 << 53)
        for debt in space.ledger.debts()
    )


def _over(space: "Workspace", request: Request) -> datetime:
    """When the last backup from before the switch is gone, as the settings declare."""
    executed = datetime.fromisoformat(request.body["outcome"]["evidence"]["executed"])
    return executed + timedelta(days=space.settings.backup_days)


def _nameless(condition: str, names: set[str]) -> str:
    """A condition begins with whom it is about; who that was is nobody's business."""
    who, _, rest = condition.partition(" ")
    return f"a client {rest}" if who in names else condition


def moment(of: datetime) -> str:
    return of.astimezone(UTC).isoformat(timespec="seconds")


def _decimal(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


# --- files --------------------------------------------------------------------------------------------------


def path_of(space: "Workspace", row: Certified) -> Path:
    """A name no other certificate has, not even one a restored ledger no longer knows."""
    digest = hashlib.sha256(canonical(row.account)).hexdigest()
    return space.path / FOLDER / f"request-{row.request:04d}-{row.state}-{digest[:8]}.json"


def made_again(space: "Workspace", row: Certified, key: SecretKey) -> bytes:
    """The file, from the ledger: the checkpoint is that of the moment the event was the newest."""
    event, size = space.ledger.chain.event(row.seq), row.seq + 1
    checkpoint = Checkpoint(row.origin, size, space.ledger.chain.root(size), event.time)
    return certificate.issue(row.account, event.opened, space.ledger.chain.inclusion(row.seq, size), checkpoint, key)


def certify(space: "Workspace") -> tuple[Path, ...]:
    """Account for every executed request, once; make final what can be; write the files that are missing."""
    rows = {(row.request, row.state): row for row in certified(space.ledger)}
    executed = accountable(space)
    if not executed:
        return ()
    key = log.signing_key(space)
    for request in executed:
        if (request.id, "executed") not in rows:
            if not _overtaken(space, request.id):
                enter(
                    space.ledger,
                    request.id,
                    "executed",
                    log.origin(space),
                    executed_account(space, request, digests(space.state())),
                )
        elif (request.id, "final") not in rows and not why_not_final(space, request):
            enter(
                space.ledger,
                request.id,
                "final",
                log.origin(space),
                final_account(space, rows[request.id, "executed"], key),
            )
    missing = {path_of(space, row): row for row in certified(space.ledger) if not path_of(space, row).exists()}
    space.disk.write_all({path: made_again(space, row, key) for path, row in missing.items()})
    return tuple(missing)


def accountable(space: "Workspace") -> list[Request]:
    """Executed requests of which the ledger knows enough; those of version 0.1.0 were carried out without a word."""
    return [r for r in space.ledger.requests() if r.state == "executed" and "evidence" in r.body.get("outcome", {})]


def _overtaken(space: "Workspace", request: int) -> bool:
    """Whether this ledger was put back from a backup of just after the switch and emptied: its models are gone."""
    told = [e.body or {} for e in space.ledger.events() if e.kind in ("restored", "forgotten")]
    mine = max((at for at, body in enumerate(told) if body.get("request") == request), default=0)
    return any(body.get("emptied") for body in told[mine:])


def why_not_final(space: "Workspace", request: Request) -> str:
    """What an executed request waits for; nothing once it is final or could be."""
    waiting, over = pending(space, request), _over(space, request)
    if waiting:
        return f"request {request.id}: {waiting} slices wait for holders that are away to delete them"
    if space.ledger.clock().astimezone(UTC) < over:
        return f"request {request.id}: backups from before it are kept until {moment(over)}"
    return ""


# --- looking ------------------------------------------------------------------------------------------------


def listed(space: "Workspace") -> Iterator[CertificateRow]:
    for row in certified(space.ledger):
        path = path_of(space, row)
        yield CertificateRow(row.request, row.state, row.seq, str(path), path.exists())


def check(space: "Workspace") -> Check | None:
    """Every file is what the ledger accounts for; None where nothing was ever certified."""
    rows = certified(space.ledger)
    if not rows:
        return None
    missing = 0
    for row in rows:
        path = path_of(space, row)
        blob = space.disk.read(path)
        missing += blob is None
        if blob is not None and _told(space, blob) != row.account:
            return Check(
                "certificates", False, f"{path} is not what the ledger accounts for; put it aside, it is made again"
            )
    late = f"; {missing} files missing, the next verb writes them" if missing else ""
    return Check("certificates", True, f"{len(rows)} certificates{late}")


def _told(space: "Workspace", blob: bytes) -> Mapping[str, Any] | None:
    """The account in a certificate that one of our keys signed."""
    for key in log.public_keys(space):
        try:
            return certificate.account_of(certificate.read(blob, key).statement)
        except VerificationFailed:
            continue
    return None
