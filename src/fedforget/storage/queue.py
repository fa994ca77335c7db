"""Queue: the requests in the ledger. Statements alone; who may do what is decided before they are called.

Each function works within a transaction of the ledger's and touches as many rows as it names, found by an index.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from ..plan import Cell
from ..requests.admission import Enrolment
from . import tables

Db = sa.Connection
Log = Callable[[Db, str, Mapping[str, Any]], None]
_AT_ONCE = 500  # values in one statement; databases have their limits
_T = TypeVar("_T")
_q = tables.queue.c


class Moved(Exception):
    """Somebody held or rejected a request just now."""


@dataclass(frozen=True, eq=False)
class Queued:
    """A request as the ledger has it."""

    number: int
    id: str
    state: str
    digest: str
    document: Mapping[str, Any]
    key: str
    signature: str
    received: str
    authorised: str | None = None
    executed: str | None = None
    warn: str | None = None
    rebuild: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Spoken:
    """A verdict on a request."""

    verdict: str
    time: str
    document: Mapping[str, Any]
    key: str
    signature: str


# --- keys -----------------------------------------------------------------------------------------------------


def enrol(db: Db, log: Log, one: Enrolment) -> None:
    row = {"key": one.key, "role": one.role, "client": one.name, "enrolled": one.enrolled, "revoked": one.revoked}
    db.execute(sa.insert(tables.enrolments).values(**row))
    log(db, "enrolled", {"key": one.key, "role": one.role})


def revoke(db: Db, log: Log, key: str, time: str) -> None:
    e = tables.enrolments
    db.execute(sa.update(e).where(e.c.key == key).values(revoked=time))
    log(db, "revoked", {"key": key})


def enrolment(db: Db, key: str) -> Enrolment | None:
    row = db.execute(sa.select(tables.enrolments).where(tables.enrolments.c.key == key)).first()
    return None if row is None else Enrolment(row.key, row.role, row.client, row.enrolled, row.revoked)


def enrolments(db: Db) -> tuple[Enrolment, ...]:
    e = tables.enrolments
    found = db.execute(sa.select(e).order_by(e.c.role, e.c.client, e.c.enrolled, e.c.key))
    return tuple(Enrolment(row.key, row.role, row.client, row.enrolled, row.revoked) for row in found)


def nonce_used_for(db: Db, key: str, nonce: str) -> str | None:
    """The digest of the document that carried it."""
    n = tables.nonces.c
    found: str | None = db.scalar(sa.select(n.digest).where(n.key == key, n.nonce == nonce))
    return found


def use_nonce(db: Db, key: str, nonce: str, digest: str) -> None:
    db.execute(sa.insert(tables.nonces).values(key=key, nonce=nonce, digest=digest))


def seats(db: Db, clients: Sequence[str]) -> dict[str, int | None]:
    """Who of them ever had a seat, and the rebuild that emptied it."""
    m, found = tables.members.c, {}
    for some in _portions(clients):
        found.update(
            {r.client: r.forgotten for r in db.execute(sa.select(m.client, m.forgotten).where(m.client.in_(some)))}
        )
    return found


# --- requests -------------------------------------------------------------------------------------------------


def receive(db: Db, log: Log, one: Queued) -> Queued:
    """Enter a request; its number is its place in the queue."""
    names = ("id", "state", "digest", "key", "signature", "received", "authorised", "executed", "warn", "rebuild")
    row = {name: getattr(one, name) for name in names}
    text = json.dumps(dict(one.document), sort_keys=True, ensure_ascii=False)
    entered = db.execute(sa.insert(tables.queue).values(**row, document=text)).inserted_primary_key
    log(db, "received", {"request": one.id, "wish": one.digest})
    assert entered is not None  # both databases say what number they gave
    return replace(one, number=int(entered[0]))


def find(db: Db, id: str) -> Queued | None:
    row = db.execute(sa.select(tables.queue).where(_q.id == id)).mappings().first()
    return None if row is None else _read(row)


def listed(db: Db, states: Collection[str] = (), after: int = 0, limit: int | None = None) -> tuple[Queued, ...]:
    """In order of receipt: those in the states, or all; `after` and `limit` are for pages."""
    query = sa.select(tables.queue).where(_q.number > after).order_by(_q.number)
    if states:
        query = query.where(_q.state.in_(sorted(states)))
    return tuple(_read(row) for row in db.execute(query if limit is None else query.limit(limit)).mappings())


def counts(db: Db) -> dict[str, int]:
    """How many there are in each state."""
    query = sa.select(_q.state, sa.func.count().label("number")).group_by(_q.state)
    return {row.state: row.number for row in db.execute(query)}


def of_rebuild(db: Db, rebuild: int) -> tuple[Queued, ...]:
    found = db.execute(sa.select(tables.queue).where(_q.rebuild == rebuild).order_by(_q.number)).mappings()
    return tuple(_read(row) for row in found)


def executed_by(db: Db, time: str) -> tuple[Queued, ...]:
    """Executed at that time or before, and not yet final."""
    query = sa.select(tables.queue).where(_q.state == "executed", _q.executed <= time).order_by(_q.number)
    return tuple(_read(row) for row in db.execute(query).mappings())


def _read(row: sa.RowMapping) -> Queued:
    return Queued(**{**dict(row), "document": json.loads(row["document"])})


def move(db: Db, log: Log, some: Sequence[Queued], to: str, **values: Any) -> None:
    """Take requests to another state, all in one event."""
    for numbers in _portions([r.number for r in some]):
        db.execute(sa.update(tables.queue).where(_q.number.in_(numbers)).values(state=to, **values))
    if some:
        log(db, to, {"requests": [r.id for r in some]})


def those_in(db: Db, some: Sequence[Queued], state: str) -> list[Queued]:
    """Who of them is in that state now."""
    queries = (
        sa.select(_q.number).where(_q.number.in_(numbers), _q.state == state)
        for numbers in _portions([one.number for one in some])
    )
    there = {number for query in queries for number in db.scalars(query)}
    return [one for one in some if one.number in there]


def demand(db: Db, some: Sequence[Queued], state: str) -> None:
    """All of them, or nothing of what the transaction was to do."""
    if len(those_in(db, some, state)) < len(some):
        raise Moved


def speak(db: Db, request: Queued, said: Spoken) -> None:
    text = json.dumps(dict(said.document), sort_keys=True, ensure_ascii=False)
    row = {"verdict": said.verdict, "time": said.time, "key": said.key, "signature": said.signature}
    db.execute(sa.insert(tables.verdicts).values(request=request.number, document=text, **row))


def verdicts(db: Db, request: Queued) -> tuple[Spoken, ...]:
    v = tables.verdicts
    names = ("verdict", "time", "document", "key", "signature")
    found = db.execute(sa.select(v).where(v.c.request == request.number).order_by(v.c.id)).mappings()
    return tuple(Spoken(**{n: json.loads(row[n]) if n == "document" else row[n] for n in names}) for row in found)


def to_warn(db: Db, now: str) -> tuple[Queued, ...]:
    """Whose next warning is due."""
    found = db.execute(sa.select(tables.queue).where(_q.warn <= now).order_by(_q.warn, _q.number)).mappings()
    return tuple(_read(row) for row in found)


def warned(db: Db, log: Log, when: Mapping[int, str], ids: Sequence[str]) -> None:
    """When to warn of them next."""
    if when:
        match = sa.update(tables.queue).where(_q.number == sa.bindparam("_number")).values(warn=sa.bindparam("_warn"))
        db.execute(match, [{"_number": number, "_warn": warn} for number, warn in when.items()])
        log(db, "warned", {"requests": list(ids)})


# --- quarantine -----------------------------------------------------------------------------------------------


def quarantine(db: Db, log: Log, cells: Mapping[str, Iterable[Cell]], since: str) -> None:
    """From now on these shards of these stages are left out of what is served, for these requests.

    Where a request had quarantined cells before, those of both count; the event names every cell, once.
    """
    t = tables.quarantined.c
    had: set[tuple[str, int, int]] = set()
    for some in _portions(sorted(cells)):
        query = sa.select(t.request, t.stage, t.shard).where(t.request.in_(some))
        had |= {(row.request, row.stage, row.shard) for row in db.execute(query)}
    new = [
        {"request": request, "stage": stage, "shard": shard, "since": since}
        for request, mine in sorted(cells.items())
        for stage, shard in sorted(set(mine))
        if (request, stage, shard) not in had
    ]
    if new:
        db.execute(sa.insert(tables.quarantined), new)
        log(db, "left out", {"cells": sorted({(row["stage"], row["shard"]) for row in new})})


def lift(db: Db, some: Sequence[Queued]) -> None:
    """What was left out for these requests is served again, unless it is left out for others too."""
    for ids in _portions([r.id for r in some]):
        db.execute(sa.delete(tables.quarantined).where(tables.quarantined.c.request.in_(ids)))


def left_out(db: Db) -> dict[Cell, str]:
    """The quarantined shards of stages, and since when."""
    t = tables.quarantined.c
    query = sa.select(t.stage, t.shard, sa.func.min(t.since).label("since")).group_by(t.stage, t.shard)
    return {(row.stage, row.shard): row.since for row in db.execute(query.order_by(t.stage, t.shard))}


# --- rebuilds -------------------------------------------------------------------------------------------------


def carried_out(db: Db, log: Log, rebuild: int, time: str) -> None:
    """With the switch of its rebuild a request is sealed and executed, in the same transaction."""
    some = of_rebuild(db, rebuild)
    move(db, log, some, "sealed")
    move(db, log, some, "executed", executed=time, warn=None)
    lift(db, some)


def gave_up(db: Db, log: Log, rebuild: int, why: str) -> None:
    """Its rebuild cannot be carried out: a human must see to it, and what was left out stays so.

    Whoever forgets by hand is told at once and nothing is left waiting.
    """
    some = of_rebuild(db, rebuild)
    move(db, log, [r for r in some if r.key], "needs_human", reason=why, rebuild=None)
    by_hand = [r for r in some if not r.key]
    move(db, log, by_hand, "rejected", reason=why, warn=None)
    lift(db, by_hand)


def go_back(db: Db, log: Log, *states: str) -> None:
    """A restored ledger, or a new stage: whatever is in these states is planned anew."""
    move(db, log, listed(db, states), "authorised", rebuild=None)


def oldest_debt(db: Db) -> int | None:
    """The earliest generation a holder still has slices of that it is to delete."""
    found: int | None = db.scalar(sa.select(sa.func.min(tables.debts.c.generation)))
    return found


def _portions(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for at in range(0, len(values), _AT_ONCE):
        yield values[at : at + _AT_ONCE]
