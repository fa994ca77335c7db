"""Gate: who is enrolled, and what becomes of a signed document that arrives. Needs no lock: a transaction each.

What is denied changes nothing and is logged: of what kind the denial was, and the digest of what came.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ..errors import AlreadyForgotten, RequestDenied, SettingError, UnknownClient, UnknownRequest
from ..requests import lifecycle
from ..requests.admission import Enrolment, Standing, admit, weigh
from ..requests.signed import Signed
from ..requests.times import instant, next_warning, spell
from ..requests.wish import Verdict, Wish
from ..signing import PublicKey
from ..storage import queue
from ..storage.queue import Db, Queued, Spoken
from .request_reports import Receipt

if TYPE_CHECKING:
    from .workspace import Workspace

ROLES = ("client", "operator", "auditor")


def enrol(space: "Workspace", role: str, name: str, key: PublicKey) -> Enrolment:
    """One key, one role, for good; a client may have several keys."""
    if role not in ROLES:
        raise SettingError("role", role, "one of " + ", ".join(ROLES))
    if not 0 < len(name) <= 64 or not name.isprintable():
        raise SettingError("name", name, "printable text of at most 64 letters")
    if role == "client":
        with space.ledger.reading() as db:
            _refuse_strangers(db, [name])
    one = Enrolment(str(key), role, name, spell(space.ledger.clock()))
    with space.ledger.transaction("enrol") as db:
        known = queue.enrolment(db, one.key)
        if known is None:
            queue.enrol(db, space.ledger.log, one)
        elif (known.role, known.name, known.revoked) != (role, name, None):
            was = f", revoked {known.revoked}" if known.revoked else ""
            raise SettingError("key", one.key, f"a new one: this is {known.role} {known.name}'s{was}")
    return known or one


def revoke(space: "Workspace", key: PublicKey) -> Enrolment:
    """From now on nothing it signs counts; what it signed before stays."""
    with space.ledger.transaction("revoke") as db:
        known = queue.enrolment(db, str(key))
        if known is None:
            raise SettingError("key", str(key), "one that is enrolled")
        if known.revoked is None:
            queue.revoke(db, space.ledger.log, known.key, spell(space.ledger.clock()))
        found = queue.enrolment(db, known.key)
    assert found is not None
    return found


def deliver(space: "Workspace", blobs: Sequence[bytes]) -> tuple[Receipt, ...]:
    """Signed wishes: however often one comes, it has one effect. In one transaction: a receipt means it is durable."""
    now = space.ledger.clock()
    with space.ledger.transaction("deliver") as db:
        return tuple(_answered(space, db, blob, lambda signed: _take(space, db, signed, now)) for blob in blobs)


def decide(space: "Workspace", blob: bytes) -> Receipt:
    """A signed verdict on a request: approved, held, released, rejected."""
    now = space.ledger.clock()
    with space.ledger.transaction("decide") as db:
        return _answered(space, db, blob, lambda signed: _hear(space, db, signed, now))


def by_hand(space: "Workspace", request: str, saying: str, reason: str) -> Receipt:
    """The custodian's own verdict, unsigned: hold, release, reject. Approving takes an operator's key."""
    now = spell(space.ledger.clock())
    if saying in ("hold", "reject") and not reason:
        raise SettingError("reason", reason, "given: the client is told why")
    with space.ledger.transaction("decide") as db:
        one = _known(db, request)
        action: lifecycle.Action = saying  # type: ignore[assignment]
        state: lifecycle.State = one.state  # type: ignore[assignment]
        to = lifecycle.target(action, "custodian", state, own=False, authorised=one.authorised is not None)
        said = {"kind": "fedforget/by-hand/1", "request": request, "verdict": saying, "reason": reason}
        queue.speak(db, one, Spoken(saying, now, said, "", ""))
        _turn(space, db, one, to, reason, now)
    return Receipt(request, to)


# --- within the transaction -------------------------------------------------------------------------------


def _take(space: "Workspace", db: Db, signed: Signed, now: datetime) -> Receipt:
    wish = Wish.from_document(signed.document)
    known = queue.find(db, wish.id)
    if known is not None:
        if (known.digest, known.key) == (signed.digest, str(signed.key)):
            return Receipt(known.id, known.state, again=True)
        raise RequestDenied("taken", f"there is another request of the id {wish.id}")
    who = queue.enrolment(db, str(signed.key))
    admit(signed, who, space.settings.federation, now)
    _refuse_strangers(db, wish.scope.clients)
    _once(db, signed, wish.said.nonce)
    received = spell(now)
    one = Queued(
        0,
        wish.id,
        "received",
        signed.digest,
        signed.document,
        str(signed.key),
        signed.signature.hex(),
        received,
        warn=spell(next_warning(instant(received), now)),
    )
    one = queue.receive(db, space.ledger.log, one)
    if not wish.own:
        return Receipt(wish.id, "received")
    to = lifecycle.target("vouch", "worker", "received", own=False)
    queue.move(db, space.ledger.log, [one], to, authorised=received)
    return Receipt(wish.id, to)


def _hear(space: "Workspace", db: Db, signed: Signed, now: datetime) -> Receipt:
    verdict = Verdict.from_document(signed.document)
    one = _known(db, verdict.said.request)
    if queue.nonce_used_for(db, str(signed.key), verdict.said.nonce) == signed.digest:
        return Receipt(one.id, one.state, again=True)
    wish, asker = Wish.from_document(one.document), queue.enrolment(db, one.key)
    state: lifecycle.State = one.state  # type: ignore[assignment]
    standing = Standing(wish, one.digest, one.key, state, one.authorised is not None)
    who = queue.enrolment(db, str(signed.key))
    to = weigh(verdict, str(signed.key), who, asker, standing, space.settings.federation, now)
    _once(db, signed, verdict.said.nonce)
    said = Spoken(verdict.saying, spell(now), signed.document, str(signed.key), signed.signature.hex())
    queue.speak(db, one, said)
    _turn(space, db, one, to, verdict.reason, spell(now))
    return Receipt(one.id, to)


def _turn(space: "Workspace", db: Db, one: Queued, to: str, reason: str, now: str) -> None:
    """Held, its shards stay left out of what is served; rejected, they are served again."""
    values: dict[str, str | None] = {"reason": reason or None}
    if to == "authorised" and one.authorised is None:
        values["authorised"] = now
    if to == "rejected":
        values["warn"] = None
        queue.lift(db, [one])
    queue.move(db, space.ledger.log, [one], to, **values)


def _once(db: Db, signed: Signed, nonce: str) -> None:
    if queue.nonce_used_for(db, str(signed.key), nonce) is not None:
        raise RequestDenied("replayed", "its nonce was used before")
    queue.use_nonce(db, str(signed.key), nonce, signed.digest)


def _known(db: Db, request: str) -> Queued:
    found = queue.find(db, request)
    if found is None:
        raise UnknownRequest(request)
    return found


def _refuse_strangers(db: Db, clients: Sequence[str]) -> None:
    """Nobody who was never there, and nobody who was forgotten before."""
    there = queue.seats(db, clients)
    unknown = set(clients) - set(there)
    if unknown:
        raise UnknownClient(unknown)
    before = [client for client in clients if there[client] is not None]
    if before:
        raise AlreadyForgotten(before)


def _answered(space: "Workspace", db: Db, blob: bytes, take: Callable[[Signed], Receipt]) -> Receipt:
    """Denials come before anything is written; what else goes wrong (a full disk) is no denial and undoes all."""
    try:
        return take(Signed.read(blob))
    except (RequestDenied, UnknownClient, AlreadyForgotten, UnknownRequest) as fault:
        kind, why = (fault.kind, fault.why) if isinstance(fault, RequestDenied) else ("impossible", str(fault))
        space.ledger.log(db, "denied", {"kind": kind, "digest": hashlib.sha256(blob).hexdigest()})
        return Receipt("", "denied", kind=kind, why=why)
