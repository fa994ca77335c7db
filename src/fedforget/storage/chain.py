"""Chain: the ledger's events, append-only: each bound to the one before, all under one Merkle root.

An event's body can be deleted with its salt (`redact`), and nothing else of it changes: see `evidence.entry`.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from ..canonical import canonical
from ..errors import Damaged, SettingError
from ..evidence import merkle
from ..evidence.entry import START, commitment, event_hash
from . import tables

Clock = Callable[[], datetime]
Rows = Callable[[sa.Select[Any]], list[Mapping[str, Any]]]
_SALT = 32


@dataclass(frozen=True)
class Event:
    seq: int
    time: str
    kind: str
    body: Mapping[str, Any] | None  # None: redacted
    salt: str | None
    previous: str
    hash: str

    @property
    def opened(self) -> dict[str, Any]:
        """All that is needed to compute its hash again."""
        names = ("seq", "time", "kind", "body", "salt", "previous")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Branch:
    """How a log goes on that was put back from a backup: under its own name, for it contradicts what was signed."""

    name: str
    after: str  # SHA-256 of the newest signed note
    lost: int | None  # how many events, where that is known


def append(db: sa.Connection, clock: Clock, kind: str, body: Mapping[str, Any]) -> int:
    """One more event; returns its place. The body is canonical JSON: decimal numbers travel as text."""
    e = tables.events
    last = db.execute(sa.select(e.c.seq, e.c.hash).order_by(e.c.seq.desc()).limit(1)).first()
    seq, previous = (last.seq + 1, bytes.fromhex(last.hash)) if last else (0, START)
    time = clock().astimezone(UTC).isoformat(timespec="seconds")
    _insert(db, seq, time, kind, canonical(body), previous)
    return seq


def _insert(db: sa.Connection, seq: int, time: str, kind: str, text: bytes, previous: bytes) -> bytes:
    salt = os.urandom(_SALT)
    committed = commitment(salt, text)
    leaf = event_hash(seq, time, kind, committed, previous)
    row = {"seq": seq, "time": time, "kind": kind, "body": text.decode(), "salt": salt.hex()}
    links = {"commitment": committed.hex(), "previous": previous.hex(), "hash": leaf.hex()}
    db.execute(sa.insert(tables.events).values(**row, **links))
    n = tables.tree.c

    def node(level: int, index: int) -> bytes:
        found = db.scalar(sa.select(n.hash).where(n.level == level, n.index == index))
        return bytes.fromhex(found or "")

    grown = [{"level": lv, "index": at, "hash": h.hex()} for lv, at, h in merkle.grown(seq, leaf, node)]
    db.execute(sa.insert(tables.tree), grown)
    return leaf


def convert(db: sa.Connection, old: Iterable[tuple[int, str, str, str]]) -> None:
    """Events of a ledger of version 1 (place, time, kind, body), chained without salts, entered anew."""
    previous = START
    for seq, time, kind, body in old:
        previous = _insert(db, seq, time, kind, canonical(json.loads(body)), previous)


def redact(db: sa.Connection, clock: Clock, seqs: list[int], why: str) -> None:
    """Delete what those events say, for good; that it was done is an event of its own."""
    e = tables.events
    for seq in seqs:
        kind = db.scalar(sa.select(e.c.kind).where(e.c.seq == seq, e.c.body.is_not(None)))
        if kind is None:
            raise SettingError(
                "event", seq, "one that is there and says something; `fedforget log show DIR` lists them"
            )
        if kind in ("certified", "redacted"):
            raise SettingError("event", seq, f"another: a {kind!r} event holds hashes and numbers only, others need it")
        db.execute(sa.update(e).where(e.c.seq == seq).values(body=None, salt=None))
    append(db, clock, "redacted", {"events": seqs, "why": why})


@dataclass(frozen=True)
class Chain:
    """The events as they can be read and proved."""

    rows: Rows
    name: str

    def height(self) -> int:
        """How many there are: whoever reads without a lock sees by it that something changed meanwhile."""
        (row,) = self.rows(sa.select(sa.func.count().label("height")).select_from(tables.events))
        return int(row["height"])

    def events(self) -> Iterator[Event]:
        for row in self.rows(sa.select(tables.events).order_by(tables.events.c.seq)):
            yield self._event(row)

    def event(self, seq: int) -> Event:
        found = self.rows(sa.select(tables.events).where(tables.events.c.seq == seq))
        if not found:
            raise SettingError("event", seq, f"one of the {self.height()} there are, from 0 on")
        return self._event(found[0])

    def _event(self, row: Mapping[str, Any]) -> Event:
        try:
            body = None if row["body"] is None else json.loads(row["body"])
        except (ValueError, TypeError) as fault:
            raise Damaged(self.name, f"event {row['seq']} as it was written", str(fault)) from fault
        return Event(row["seq"], row["time"], row["kind"], body, row["salt"], row["previous"], row["hash"])

    def root(self, size: int) -> bytes:
        """The Merkle root over the first `size` events, from O(log n) nodes."""
        return merkle.root_hash(size, self._node)

    def inclusion(self, seq: int, size: int) -> list[bytes]:
        return merkle.inclusion_proof(seq, size, self._node)

    def consistency(self, first: int, second: int) -> list[bytes]:
        return merkle.consistency_proof(first, second, self._node)

    def _node(self, level: int, index: int) -> bytes:
        n = tables.tree.c
        found = self.rows(sa.select(n.hash).where(n.level == level, n.index == index))
        if not found:
            raise Damaged(self.name, f"the hash over events from {index << level} on", "none")
        try:
            return bytes.fromhex(found[0]["hash"])
        except ValueError as fault:
            raise Damaged(self.name, f"the hash over events from {index << level} on", str(fault)) from fault

    def broken_link(self) -> int | None:
        """The first event that is not what its hash, or the tree over all, says."""
        previous, redacted, hidden = START, set[int](), set[int]()
        nodes = {(r["level"], r["index"]): r["hash"] for r in self.rows(sa.select(tables.tree))}
        made: dict[tuple[int, int], bytes] = {}
        at = -1
        for at, row in enumerate(self.rows(sa.select(tables.events).order_by(tables.events.c.seq))):
            try:
                text, leaf = _checked(at, row, previous)
                if text is None:
                    hidden.add(at)
                elif row["kind"] == "redacted":
                    redacted |= set(json.loads(text)["events"])
            except (ValueError, TypeError, LookupError, AttributeError):
                return at
            for level, index, found in merkle.grown(at, leaf, lambda level, index: made[level, index]):
                made[level, index] = found
                if nodes.pop((level, index), None) != found.hex():
                    return at
            previous = leaf
        if nodes:
            return at + 1
        return min(hidden ^ (redacted & set(range(at + 1))), default=None)


def _checked(at: int, row: Mapping[str, Any], previous: bytes) -> tuple[str | None, bytes]:
    """The body's text (None: redacted) and the leaf of a row that is as it was written; ValueError where it is not."""
    text, salt = row["body"], row["salt"]
    if text is not None and commitment(bytes.fromhex(salt), text.encode()).hex() != row["commitment"]:
        raise ValueError("body")
    if text is None and salt is not None:
        raise ValueError("salt")
    leaf = event_hash(at, row["time"], row["kind"], bytes.fromhex(row["commitment"]), previous)
    if (row["seq"], row["previous"], row["hash"]) != (at, previous.hex(), leaf.hex()):
        raise ValueError("link")
    return text, leaf
