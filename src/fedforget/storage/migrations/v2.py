"""Version 2: keys, the queue, verdicts, quarantine; dropped examples, absences, commitments, exports; nodes.

Rebuilds made before it enter the queue as by hand, and say in a scope what they were for. The events get salts, and a
Merkle tree over them; going back takes both away and chains them as version 1 did, to the same hashes.
"""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from ...errors import SettingError
from .. import chain

_STATES = {"executed": "executed", "rebuilding": "rebuilding", "refused": "rejected", "overtaken": "rejected"}

_NEW = ("epoch", "asked", "away", "drops", "holdings")  # what a rebuild's body has since


def up(op: Operations, clock: chain.Clock) -> None:
    _new_tables(op)
    _enter_what_was(op.get_bind())
    _salt_the_events(op, clock)


def _new_tables(op: Operations) -> None:
    op.create_table(
        "enrolments",
        sa.Column("key", sa.String(80), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("enrolled", sa.String(20), nullable=False),
        sa.Column("revoked", sa.String(20)),
    )
    op.create_index("ix_enrolments_client", "enrolments", ["client"])
    op.create_table(
        "queue",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("key", sa.String(80), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
        sa.Column("received", sa.String(20), nullable=False),
        sa.Column("authorised", sa.String(20)),
        sa.Column("executed", sa.String(20)),
        sa.Column("warn", sa.String(20)),
        sa.Column("rebuild", sa.Integer, sa.ForeignKey("requests.id")),
        sa.Column("reason", sa.Text),
    )
    op.create_index("ix_queue_warn", "queue", ["warn"])
    op.create_index("ix_queue_rebuild", "queue", ["rebuild"])
    op.create_index("ix_queue_state", "queue", ["state", "number"])
    op.create_table(
        "verdicts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("request", sa.Integer, sa.ForeignKey("queue.number"), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("time", sa.String(20), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("key", sa.String(80), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
    )
    op.create_index("ix_verdicts_request", "verdicts", ["request"])
    op.create_table(
        "nonces",
        sa.Column("key", sa.String(80), primary_key=True),
        sa.Column("nonce", sa.String(32), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_table(
        "quarantined",
        sa.Column("request", sa.String(64), primary_key=True),
        sa.Column("stage", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("since", sa.String(40), nullable=False),
    )
    op.create_table(
        "drops",
        sa.Column("client", sa.String(64), primary_key=True),
        sa.Column("example", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("request", sa.Integer, nullable=False),
    )
    op.create_table(
        "absences",
        sa.Column("client", sa.String(64), primary_key=True),
        sa.Column("stage", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("request", sa.Integer, nullable=False),
    )
    op.create_table(
        "holdings",
        sa.Column("client", sa.String(64), primary_key=True),
        sa.Column("request", sa.Integer, nullable=False),
        sa.Column("commitment", sa.String(80), nullable=False),
        sa.Column("salt", sa.String(64)),
        sa.Column("examples", sa.Integer),
    )
    op.create_table(
        "exports",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("time", sa.String(40), nullable=False),
        sa.Column("recipient", sa.String(128), nullable=False),
        sa.Column("combine", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("rebuild", sa.Integer, nullable=False),
        sa.Column("cells", sa.JSON, nullable=False),
        sa.Column("restored", sa.Boolean, nullable=False),
        sa.Column("told", sa.Integer),
    )
    op.create_index("ix_exports_recipient", "exports", ["recipient", "digest"])
    op.create_table(
        "nodes",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("client", sa.String(64), unique=True, nullable=False),
        sa.Column("bound", sa.Text, nullable=False),
    )
    op.create_table(
        "tree",
        sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("index", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "certificates",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("request", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("origin", sa.String(200), nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.UniqueConstraint("request", "state"),
    )


def _salt_the_events(op: Operations, clock: chain.Clock) -> None:
    db = op.get_bind()
    old = db.execute(sa.text("SELECT seq, time, kind, body, hash FROM events ORDER BY seq")).all()
    op.drop_table("events")
    op.create_table(
        "events",
        *_event_columns(),
        sa.Column("body", sa.Text),
        sa.Column("salt", sa.String(64)),
        sa.Column("commitment", sa.String(64), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    chain.convert(db, [(row.seq, row.time, row.kind, row.body) for row in old])
    chain.append(db, clock, "migrated", {"from": 1, "to": 2, "head": old[-1].hash})


def _event_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
    ]


def _chain_the_events_plainly(op: Operations, clock: chain.Clock) -> None:
    db = op.get_bind()
    new = db.execute(sa.text("SELECT seq, time, kind, body FROM events ORDER BY seq")).all()
    op.drop_table("events")
    op.create_table(
        "events",
        *_event_columns(),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    told = (len(new), clock().isoformat(timespec="seconds"), "migrated", '{"from":2,"to":1}')
    enter = sa.text("INSERT INTO events VALUES (:seq, :time, :kind, :body, :previous, :hash)")
    previous = "0" * 64
    for seq, time, kind, body in (*new, told):
        text = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
        hashed = hashlib.sha256("\n".join((str(seq), time, kind, previous, text)).encode()).hexdigest()
        row = {"seq": seq, "time": time, "kind": kind, "body": text, "previous": previous, "hash": hashed}
        db.execute(enter, row)
        previous = hashed


def down(op: Operations, clock: chain.Clock) -> None:
    redacted = op.get_bind().execute(sa.text("SELECT seq FROM events WHERE body IS NULL")).scalars().first()
    if redacted is not None:
        raise SettingError("version", 1, f"2 with event {redacted} redacted, for version 1 needs every body")
    open_still = sa.text("SELECT id FROM queue WHERE key <> '' AND state NOT IN ('executed', 'final', 'rejected')")
    waiting = op.get_bind().execute(open_still).scalars().all()
    if waiting:
        raise SettingError("version", 1, f"2 while requests wait ({waiting[0]}), for version 1 has no place for them")
    for table in ("drops", "absences"):
        known = op.get_bind().execute(sa.text(f"SELECT client FROM {table}")).scalars().first()
        if known is not None:
            raise SettingError(
                "version", 1, f"2 while part of {known} is forgotten, for version 1 knows whole clients only"
            )
    _chain_the_events_plainly(op, clock)
    for table in (
        "certificates",
        "tree",
        "nodes",
        "exports",
        "holdings",
        "absences",
        "drops",
        "quarantined",
        "nonces",
        "verdicts",
        "queue",
        "enrolments",
    ):
        op.drop_table(table)
    db = op.get_bind()
    for id, _, body in _requests(db):
        _write(db, id, {name: value for name, value in body.items() if name not in _NEW})


def _enter_what_was(db: sa.Connection) -> None:
    """What was forgotten by hand before there was a queue: when, the events tell; under which key epoch, too."""
    asked: dict[int, str] = {}
    ended: dict[int, tuple[str, int | None]] = {}
    events = db.execute(sa.text("SELECT time, kind, body FROM events ORDER BY seq"))
    for time, kind, text in events:
        if kind in ("requested", "forgotten", "refused"):
            body = json.loads(text)
            if kind == "requested":
                asked[body["request"]] = _spelled(time)
            else:
                ended[body["request"]] = _spelled(time), body.get("epoch")
    enter = sa.text(
        "INSERT INTO queue"
        " (id, state, digest, document, key, signature, received, authorised, executed, rebuild, reason)"
        " VALUES (:id, :state, '', :document, '', '', :received, :received, :executed, :rebuild, :reason)"
    )
    for id, state, body in _requests(db):
        name = f"by-hand-{id}"
        scope = {"kind": "client", "clients": body["leave"]}
        document = {"kind": "fedforget/by-hand/1", "request": name, "scope": scope}
        when, epoch = ended.get(id, (None, None))
        row: dict[str, Any] = {"id": name, "state": _STATES[state], "rebuild": id, "reason": body.get("why")}
        row |= {"document": json.dumps(document, sort_keys=True, ensure_ascii=False), "received": asked[id]}
        db.execute(enter, row | {"executed": when if state == "executed" else None})
        new = {"asked": [scope], "away": [], "drops": {}, "holdings": {}}
        _write(db, id, {**body, **new} if epoch is None else {**body, **new, "epoch": epoch})


def _requests(db: sa.Connection) -> list[tuple[int, str, dict[str, Any]]]:
    found = db.execute(sa.text("SELECT id, state, body FROM requests ORDER BY id")).all()
    return [(id, state, json.loads(body) if isinstance(body, str) else body) for id, state, body in found]


def _write(db: sa.Connection, id: int, body: dict[str, Any]) -> None:
    table = sa.table("requests", sa.column("id"), sa.column("body", sa.JSON))
    db.execute(sa.update(table).where(table.c.id == id).values(body=body))


def _spelled(time: str) -> str:
    """Events have `2026-03-04T05:06:07+00:00`."""
    return f"{time[:19]}Z"
