"""Ledger: one database that says what is in force. Every change of state is one transaction.

Slices and key files are written before the transaction that names them and deleted after the one that gives them
up, so a crash at any point leaves at most strays, never a gap.
"""

import errno
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from ..errors import Damaged, LedgerTooNew, LedgerTooOld, StorageFull, WorkspaceBusy, WorkspaceExists
from ..federation import Place
from ..manifest import Bundle, Entry, Label, Record, RoundRow
from ..plan import Cell, Member, Stage
from ..requests.times import spell
from ..slices import VACANT, SliceKey
from . import chain, database, erasures, exports, queue, rows, tables
from .chain import Branch, Chain, Clock, Event
from .disk import Probe, _quiet
from .inventory import inventory, unsound

__all__ = ["Branch", "Clock", "Event", "Ledger", "Request"]

_T = TypeVar("_T")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Request:
    """A wish to be forgotten, as far as it has got."""

    id: int
    state: str  # "rebuilding" | "executed" | "refused" | "overtaken"
    body: Mapping[str, Any]


def _alone(db: sa.Connection, rebuild: int) -> None:
    """It answers nothing in the queue."""


@dataclass(frozen=True)
class Ledger:
    engine: sa.Engine
    url: str
    probe: Probe = _quiet
    clock: Clock = _now

    # --- opening ------------------------------------------------------------------------------------------

    @staticmethod
    def create(
        url: str,
        settings: Mapping[str, Any],
        probe: Probe = _quiet,
        clock: Clock = _now,
        password: str | None = None,
    ) -> "Ledger":
        ledger = Ledger(database.engine(url, password), url, probe, clock)
        try:
            with ledger.transaction("create") as db:
                _refuse_occupied(db, ledger.name)
                tables.schema.create_all(db)
                if db.dialect.name != "sqlite":  # a file is deleted where its `init` did not come to its end
                    _set(db, "begun", True)
                _set(db, "version", tables.VERSION)
                _set(db, "settings", dict(settings))
                _set(db, "epoch", 0)
                ledger._append(db, "created", {"settings": dict(settings)})
        except BaseException:
            ledger.close()
            raise
        return ledger

    @staticmethod
    def open(url: str, probe: Probe = _quiet, clock: Clock = _now, password: str | None = None) -> "Ledger":
        ledger = Ledger(database.engine(url, password), url, probe, clock)
        try:
            version = ledger.get("version")
            if not isinstance(version, int):
                raise Damaged(ledger.name, "a version number", repr(version))
            if version > tables.VERSION:
                raise LedgerTooNew(ledger.name, version, tables.VERSION)
            if version < tables.VERSION:
                raise LedgerTooOld(ledger.name, version, tables.VERSION)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @staticmethod
    def version(url: str, password: str | None = None) -> int:
        """Of whatever ledger is there."""
        ledger = Ledger(database.engine(url, password), url)
        try:
            found = ledger.get("version")
        finally:
            ledger.close()
        if not isinstance(found, int):
            raise Damaged(ledger.name, "a version number", repr(found))
        return found

    def begun(self) -> None:
        """Its `init` came to its end: nobody may make another here."""
        if self.get("begun", False):
            with self.transaction("begun") as db:
                db.execute(sa.delete(tables.meta).where(tables.meta.c.key == "begun"))

    @property
    def name(self) -> str:
        """The database as messages call it: a file, or an address without its password."""
        address = self.engine.url
        if address.get_backend_name() == "sqlite" and address.database:
            return address.database
        return address.render_as_string(hide_password=True)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def transaction(self, name: str) -> Iterator[sa.Connection]:
        """All of it or nothing; the commit is announced to the probe."""
        with self._faults(), database.writing(self.engine) as db:
            yield db
            self.probe("commit", name)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """The database's complaints in our words."""
        try:
            yield
        except sa.exc.DatabaseError as fault:
            said = str(fault.orig)
            if "disk is full" in said:
                raise StorageFull(self.name) from fault
            if "is locked" in said or "lock timeout" in said:
                raise WorkspaceBusy(self.name, "another process") from fault
            away = database.unreachable(self.name, fault)
            if away is not None:
                raise away from fault
            raise Damaged(self.name, "a database", said) from fault
        except OSError as fault:
            if fault.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull(self.name) from fault
            raise

    @contextmanager
    def _legible(self) -> Iterator[None]:
        """Rows that cannot be read as what they should be are damage too."""
        try:
            with self._faults():
                yield
        except (ValueError, TypeError, LookupError, AttributeError) as fault:
            raise Damaged(self.name, "rows as they were written", f"{type(fault).__name__}: {fault}") from fault

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Several looks at one moment."""
        with self._legible(), self.engine.connect() as db:
            yield db

    # --- reading ------------------------------------------------------------------------------------------

    def get(self, key: str, otherwise: Any = None) -> Any:
        found = self._value(key)
        if found is None and otherwise is None:
            raise Damaged(self.name, f"an entry {key!r}", "none")
        return otherwise if found is None else found

    def noted(self, key: str) -> tuple[str, ...]:
        """Every different value ever noted under the key."""
        return tuple(self._value(key) or ())

    def _value(self, key: str) -> Any:
        with self._legible(), self.engine.connect() as db:
            text = db.scalar(sa.select(tables.meta.c.value).where(tables.meta.c.key == key))
            return None if text is None else json.loads(text)

    def note(self, key: str, value: str) -> None:
        known = self.noted(key)
        if value not in known:
            with self.transaction("note") as db:
                _set(db, key, [*known, value])
                self._append(db, "noted", {"what": key, "value": value})

    def put(self, key: str, value: Any) -> None:
        """Something passing, such as where a scrub got to: no event tells of it."""
        with self.transaction("put") as db:
            _set(db, key, value)

    def declare(self, key: str, value: Any) -> None:
        """A value the operator answers for: an event says when it came to be so."""
        with self.transaction("declare") as db:
            _set(db, key, value)
            self._append(db, "declared", {key: value})

    def _all(self, statement: sa.Select[Any]) -> list[Mapping[str, Any]]:
        with self._legible(), self.engine.connect() as db:
            return [dict(row) for row in db.execute(statement).mappings()]

    def _each(self, statement: sa.Select[Any], read: Callable[[Mapping[str, Any]], _T]) -> list[_T]:
        found = self._all(statement)
        with self._legible():
            return [read(row) for row in found]

    def members(self) -> tuple[tuple[Member, int | None], ...]:
        """Every seat ever given, and the request that emptied it."""
        query = sa.select(tables.members).order_by(tables.members.c.seat)
        away = erasures.absences(self)
        return tuple(self._each(query, lambda r: (rows.read_member(r, away.get(r["client"], ())), r["forgotten"])))

    def stages(self) -> tuple[Stage, ...]:
        return tuple(self._each(sa.select(tables.stages).order_by(tables.stages.c.stage), rows.read_stage))

    def rounds(self, pending: int | None = None) -> dict[Place, RoundRow]:
        query = sa.select(tables.rounds).where(_in_force(tables.rounds, pending))
        found = self._each(query, rows.read_round)
        return {row.place: row for row in sorted(found, key=lambda r: r.place)}

    def records(self, federation: str, pending: int | None = None) -> dict[Label, Record]:
        query = sa.select(tables.records).where(_in_force(tables.records, pending)).order_by(tables.records.c.id)
        found = self._each(query, lambda r: rows.read_record(federation, r))
        return {record.label: record for record in found}

    def bundles(self, federation: str, pending: int | None = None) -> tuple[Bundle, ...]:
        query = sa.select(tables.bundles).where(_in_force(tables.bundles, pending)).order_by(tables.bundles.c.id)
        return tuple(self._each(query, lambda r: rows.read_bundle(federation, r)))

    def debts(self) -> tuple[SliceKey, ...]:
        with self._legible():
            return tuple(sorted(self._each(sa.select(tables.debts), rows.read_debt)))

    def requests(self) -> tuple[Request, ...]:
        query = sa.select(tables.requests).order_by(tables.requests.c.id)
        return tuple(self._each(query, lambda r: Request(r["id"], r["state"], r["body"])))

    def request(self, id: int) -> Request:
        (row,) = self._all(sa.select(tables.requests).where(tables.requests.c.id == id))
        return Request(row["id"], row["state"], row["body"])

    # --- membership ---------------------------------------------------------------------------------------

    def open_stage(self, index: int, stage: Stage, members: Iterable[Member]) -> None:
        """A new stage with everybody's seat as it is from now on."""
        with self.transaction("stage") as db:
            db.execute(sa.insert(tables.stages).values(stage=index, **asdict(stage)))
            known = set(db.scalars(sa.select(tables.members.c.client)))
            for m in members:
                if m.client in known:
                    db.execute(sa.update(tables.members).where(tables.members.c.client == m.client).values(left=m.left))
                else:
                    db.execute(sa.insert(tables.members).values(**rows.member_row(m)))
            self._append(db, "stage", {"stage": index, **asdict(stage)})
            queue.go_back(db, self.log, "planned", "quarantined")  # their clients taint the new stage too

    # --- rounds -------------------------------------------------------------------------------------------

    def enter(self, entry: Entry, pending: int | None = None, paid: Iterable[SliceKey] = ()) -> tuple[SliceKey, ...]:
        """Rounds, records and bundles in force (or pending); older heads of the same cells give way.

        Returns the slices that are now owed deletion; `paid` are debts meanwhile settled.
        """
        with self.transaction("enter") as db:
            _forgive(db, paid)
            owed: list[SliceKey] = []
            for row in entry.rounds:
                owed += _drop_heads(db, row.place.cell, pending)
            _insert(db, tables.rounds, [rows.round_row(r, pending) for r in entry.rounds])
            _insert(db, tables.records, [rows.record_row(r, pending) for r in entry.records])
            _insert(db, tables.bundles, [rows.bundle_row(b, pending) for b in entry.bundles])
            _forgive(db, [key for b in entry.bundles for key in b.keys])  # owed once, but in use again
            for row in entry.rounds:
                body = {**row.place._asdict(), "generation": row.generation, "kind": row.kind}
                self._append(db, "round", {**body, "start": row.start_digest, "model": row.model_digest})
            if not entry.rounds:
                self._append(db, "recoded", {"bundles": [str(b) for b in entry.bundles]})
            _owe(db, owed)
        return tuple(owed)

    def replace_bundle(self, bundle: Bundle, gone: Sequence[SliceKey] = ()) -> None:
        """The same slices made again or on other holders; what the old ones still hold is owed deletion."""
        b = tables.bundles.c
        with self.transaction("repair") as db:
            where = [getattr(b, n) == getattr(bundle, n) for n in ("stage", "shard", "round", "generation")]
            changes = {"holders": list(bundle.holders), "hashes": list(bundle.hashes)}
            db.execute(sa.update(tables.bundles).where(*where, b.head.is_(rows.is_head(bundle))).values(**changes))
            _owe(db, gone)
            _forgive(db, bundle.keys)
            self._append(db, "repaired", {"bundle": str(bundle), "holders": [k.holder for k in gone]})

    def exchange_bundle(self, old: Bundle, new: Bundle) -> tuple[SliceKey, ...]:
        """The same records in other slices; the old ones are owed deletion, and returned."""
        b = tables.bundles.c
        with self.transaction("repair") as db:
            where = [getattr(b, n) == getattr(old, n) for n in ("stage", "shard", "round", "generation")]
            db.execute(sa.delete(tables.bundles).where(*where, b.head.is_(rows.is_head(old))))
            _insert(db, tables.bundles, [rows.bundle_row(new, None)])
            _owe(db, old.keys)
            self._append(db, "repaired", {"bundle": str(old), "holders": list(old.holders)})
        return old.keys

    def replace_head(self, place: Place, entry: Entry) -> None:
        """The newest model of a cell, sealed anew."""
        with self.transaction("repair") as db:
            _drop_heads(db, place.cell, None)
            _insert(db, tables.records, [rows.record_row(r, None) for r in entry.records])
            _insert(db, tables.bundles, [rows.bundle_row(b, None) for b in entry.bundles])
            self._append(db, "repaired", {"bundle": str(entry.bundles[0]), "holders": []})

    # --- forgetting ---------------------------------------------------------------------------------------

    def open_request(self, body: Mapping[str, Any], enter: Callable[[sa.Connection, int], None] = _alone) -> Request:
        """`enter` puts what it answers into the queue, or takes it on there, within the same transaction."""
        with self.transaction("request") as db:
            last = db.scalar(sa.select(sa.func.max(tables.requests.c.id))) or 0
            row = {"id": last + 1, "state": "rebuilding", "body": dict(body)}
            db.execute(sa.insert(tables.requests).values(**row))
            self._append(db, "requested", {"request": last + 1})
            enter(db, last + 1)
        return Request(last + 1, "rebuilding", body)

    def widen(self, request: Request, body: Mapping[str, Any], enter: Callable[[sa.Connection, int], None]) -> Request:
        """Requests that came while the rebuild runs join it."""
        with self.transaction("widen") as db:
            r = tables.requests
            db.execute(sa.update(r).where(r.c.id == request.id).values(body=dict(body)))
            self._append(db, "widened", {"request": request.id})
            enter(db, request.id)
        return Request(request.id, request.state, body)

    def refuse(self, request: Request, why: str) -> tuple[SliceKey, ...]:
        """A request that cannot be carried out: what was made for it goes, and its slices are owed deletion."""
        with self.transaction("refuse") as db:
            b, r = tables.bundles, tables.requests
            made = db.execute(sa.select(b).where(b.c.pending == request.id)).mappings()
            owed = [key for row in made for key in rows.read_bundle("", dict(row)).keys]
            for table in (tables.rounds, tables.records, tables.bundles):
                db.execute(sa.delete(table).where(table.c.pending == request.id))
            body = {**request.body, "why": why}
            db.execute(sa.update(r).where(r.c.id == request.id).values(state="refused", body=body))
            _owe(db, owed)
            self._append(db, "refused", {"request": request.id, "why": why})
            queue.gave_up(db, self.log, request.id, why)
        return tuple(owed)

    def switch(
        self,
        request: Request,
        taints: Mapping[Cell, int],
        rewrapped: Mapping[Label, bytes],
        epoch: int,
        outcome: Mapping[str, Any],
        federation: str,
    ) -> None:
        """The one step in which a forget takes effect.

        Old rounds, their records and keys leave the database; the pending ones come in force; surviving keys lie
        under the new epoch key; the leavers' seats are empty; the old slices are owed deletion.
        """
        with self.transaction("switch") as db:
            owed = _retire(db, federation, taints)
            for table in (tables.rounds, tables.records, tables.bundles):
                db.execute(sa.update(table).where(table.c.pending == request.id).values(pending=None))
            _rewrap(db, federation, rewrapped)
            for client in request.body["leave"]:
                m = tables.members
                db.execute(sa.update(m).where(m.c.client == client).values(forgotten=request.id))
            erasures.enter(db, request.id, request.body)
            done = {**request.body, "outcome": {**outcome, "slices": len(owed)}, "epoch": epoch}
            r = tables.requests
            db.execute(sa.update(r).where(r.c.id == request.id).values(state="executed", body=done))
            _set(db, "epoch", epoch)
            _owe(db, owed)
            told = {name: outcome[name] for name in ("guarantee", "touches") if name in outcome}
            self._append(db, "forgotten", {"request": request.id, "epoch": epoch, "slices": len(owed), **told})
            queue.carried_out(db, self.log, request.id, spell(self.clock()))
        with self._faults():
            database.settle(self.engine)

    def pay(self, keys: Iterable[SliceKey]) -> None:
        """Deletions that holders acknowledged."""
        if paid := tuple(keys):
            with self.transaction("pay") as db:
                _forgive(db, paid)
                self._append(db, "deleted", {"slices": len(paid)})

    def reset_after_restore(
        self,
        epoch: int,
        forgotten: Sequence[str],
        branch: Branch,
        replayed: Mapping[str, Any] | None = None,
        graves: Sequence[Member] = (),
    ) -> tuple[SliceKey, ...]:
        """An old backup: its keys are gone with their epoch. Empty the history, empty the seats that must be.

        `replayed`: the drops and absences it does not know of. `graves`: seats given, and emptied again by a forget,
        after the backup was made; they are entered as such, so that nobody sits there any more.
        """
        with self.transaction("restore") as db:
            owed = [
                k for b in db.execute(sa.select(tables.bundles)).mappings() for k in rows.read_bundle("", dict(b)).keys
            ]
            made = db.scalar(sa.select(sa.func.count()).select_from(tables.rounds))
            for table in (tables.rounds, tables.records, tables.bundles):
                db.execute(sa.delete(table))
            m = tables.members
            db.execute(sa.update(m).where(m.c.client.in_(forgotten), m.c.forgotten.is_(None)).values(forgotten=0))
            _insert(db, m, [{**rows.member_row(grave), "forgotten": 0} for grave in graves])
            erasures.enter(db, 0, {"leave": forgotten, **(replayed or {})})
            exports.restored(db)
            r = tables.requests
            db.execute(sa.update(r).where(r.c.state == "rebuilding").values(state="overtaken"))
            _set(db, "epoch", epoch)
            _owe(db, owed)
            gone = len(forgotten) + len(graves)
            body = {"epoch": epoch, "emptied": True, "forgotten": gone, "rounds": made, "lost": branch.lost}
            _branch_off(db, branch)
            self._append(db, "restored", body)
            queue.go_back(db, self.log, "planned", "quarantined", "rebuilding")
        return tuple(owed)

    def branch_off(self, branch: Branch) -> None:
        """An old backup whose keys still open it: its log goes on under another name."""
        epoch = self.get("epoch")
        with self.transaction("restore") as db:
            _branch_off(db, branch)
            body = {"epoch": epoch, "emptied": False, "forgotten": 0, "rounds": 0, "lost": branch.lost}
            self._append(db, "restored", body)

    # --- the chain ----------------------------------------------------------------------------------------

    def log(self, db: sa.Connection, kind: str, body: Mapping[str, Any]) -> None:
        """An event of the queue's, within its transaction."""
        self._append(db, kind, body)

    @property
    def chain(self) -> Chain:
        """The events, each bound to the one before, as they can be read and proved."""
        return Chain(self._all, self.name)

    def height(self) -> int:
        return self.chain.height()

    def events(self) -> Iterator[Event]:
        return self.chain.events()

    def broken_link(self) -> int | None:
        """The first event that is not what was entered."""
        return self.chain.broken_link()

    def branch(self) -> Mapping[str, Any]:
        """The name of this branch of the log, and the hash of the signed note it no longer follows."""
        found: Mapping[str, Any] = self.get("branch", {"name": "", "after": ""})
        return found

    def redact(self, seqs: Iterable[int], why: str) -> None:
        """Delete for good what those events say; their hashes stay, and with them every proof."""
        with self.transaction("redact") as db:
            chain.redact(db, self.clock, sorted(set(seqs)), why)

    def _append(self, db: sa.Connection, kind: str, body: Mapping[str, Any]) -> int:
        return chain.append(db, self.clock, kind, body)

    def inventory(self) -> str:
        """One hash over all that is in force."""
        with self._legible(), self.engine.connect() as db:
            return inventory(db)

    def unsound(self) -> str:
        """What the database itself finds wrong with its file."""
        with self._faults(), self.engine.connect() as db:
            return unsound(db)


# --- statements ---------------------------------------------------------------------------------------------


def _refuse_occupied(db: sa.Connection, name: str) -> None:
    """A database is one federation's; what an interrupted `init` left of one there gives way."""
    if sa.inspect(db).has_table("meta"):
        begun = db.scalar(sa.select(tables.meta.c.value).where(tables.meta.c.key == "begun"))
        if begun != "true":
            raise WorkspaceExists(name)
        tables.schema.drop_all(db)


def _in_force(table: sa.Table, pending: int | None) -> sa.ColumnElement[bool]:
    return table.c.pending.is_(None) if pending is None else table.c.pending == pending


def _set(db: sa.Connection, key: str, value: Any) -> None:
    db.execute(sa.delete(tables.meta).where(tables.meta.c.key == key))
    db.execute(sa.insert(tables.meta).values(key=key, value=json.dumps(value, sort_keys=True)))


def _branch_off(db: sa.Connection, branch: Branch) -> None:
    _set(db, "branch", {"name": branch.name, "after": branch.after})


def _insert(db: sa.Connection, table: sa.Table, values: list[dict[str, Any]]) -> None:
    if values:
        db.execute(sa.insert(table), values)


def _owe(db: sa.Connection, keys: Iterable[SliceKey]) -> None:
    owed = sorted({key for key in keys if key.holder != VACANT})
    _forgive(db, owed)  # owed already: once is enough
    _insert(db, tables.debts, [key._asdict() for key in owed])


def _forgive(db: sa.Connection, keys: Iterable[SliceKey]) -> None:
    gone = [{f"_{name}": value for name, value in key._asdict().items()} for key in sorted(set(keys))]
    if gone:
        match = sa.and_(*(getattr(tables.debts.c, n) == sa.bindparam(f"_{n}") for n in SliceKey._fields))
        db.execute(sa.delete(tables.debts).where(match), gone)


def _drop_heads(db: sa.Connection, cell: Cell, pending: int | None) -> list[SliceKey]:
    b, r = tables.bundles, tables.records
    mine = (b.c.stage == cell[0], b.c.shard == cell[1], b.c.head.is_(True), _in_force(b, pending))
    found = [rows.read_bundle("", dict(row)) for row in db.execute(sa.select(b).where(*mine)).mappings()]
    db.execute(sa.delete(b).where(*mine))
    db.execute(
        sa.delete(r).where(r.c.stage == cell[0], r.c.shard == cell[1], r.c.kind == "head", _in_force(r, pending))
    )
    return [key for bundle in found for key in bundle.keys]


def _retire(db: sa.Connection, federation: str, taints: Mapping[Cell, int]) -> list[SliceKey]:
    """Take what is tainted, and every bundle with something tainted in it, out of the database."""
    owed: list[SliceKey] = []
    b = tables.bundles
    for row in db.execute(sa.select(b).where(b.c.pending.is_(None))).mappings():
        bundle = rows.read_bundle(federation, dict(row))
        if any(first <= bundle.round for cell, first in taints.items() if cell in bundle.cells):
            owed += bundle.keys
            db.execute(sa.delete(b).where(b.c.id == row["id"]))
    for (stage, shard), first in taints.items():
        for table in (tables.rounds, tables.records):
            c = table.c
            db.execute(
                sa.delete(table).where(c.pending.is_(None), c.stage == stage, c.shard == shard, c.round >= first)
            )
    return owed


def _rewrap(db: sa.Connection, federation: str, rewrapped: Mapping[Label, bytes]) -> None:
    r = tables.records
    names = ("stage", "shard", "round", "generation", "kind", "client")
    if rewrapped:
        match = sa.and_(*(getattr(r.c, n) == sa.bindparam(f"_{n}") for n in names))
        values = [{**{f"_{n}": getattr(label, n) for n in names}, "_key": key} for label, key in rewrapped.items()]
        db.execute(sa.update(r).where(match).values(wrapped=sa.bindparam("_key")), values)
