"""The ledger's tables, for SQLite and PostgreSQL alike."""

import sqlalchemy as sa

VERSION = 1

schema = sa.MetaData()

meta = sa.Table(
    "meta",
    schema,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

members = sa.Table(
    "members",
    schema,
    sa.Column("client", sa.String(64), primary_key=True),
    sa.Column("seat", sa.Integer, unique=True, nullable=False),
    sa.Column("joined", sa.Integer, nullable=False),
    sa.Column("left", sa.Integer),
    sa.Column("forgotten", sa.Integer),  # the request that forgot it
)

stages = sa.Table(
    "stages",
    schema,
    sa.Column("stage", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("handover", sa.String(16), nullable=False),
)


def _where() -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer, nullable=False) for name in ("stage", "shard", "round", "generation")]


def _status() -> list[sa.Column[int]]:
    """NULL: in force. A number: made for that request, and in force once it is executed."""
    return [sa.Column("pending", sa.Integer, index=True)]


rounds = sa.Table(
    "rounds",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    *_where(),
    *_status(),
    sa.Column("body", sa.JSON, nullable=False),
    sa.UniqueConstraint("stage", "shard", "round", "generation"),
)

records = sa.Table(
    "records",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    *_where(),
    *_status(),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("client", sa.String(64), nullable=False),
    sa.Column("code", sa.String(64), nullable=False),
    sa.Column("compressed", sa.Boolean, nullable=False),
    sa.Column("plain", sa.Integer, nullable=False),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("wrapped", sa.LargeBinary),
    sa.UniqueConstraint("stage", "shard", "round", "generation", "kind", "client"),
)

bundles = sa.Table(
    "bundles",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    *_where(),
    *_status(),
    sa.Column("head", sa.Boolean, nullable=False),
    sa.Column("code", sa.String(64), nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("spots", sa.JSON, nullable=False),
    sa.Column("holders", sa.JSON, nullable=False),
    sa.Column("hashes", sa.JSON, nullable=False),
    sa.UniqueConstraint("stage", "shard", "round", "generation", "head"),
)

debts = sa.Table(
    "debts",
    schema,
    *[
        sa.Column(n, sa.Integer, primary_key=True, autoincrement=False)
        for n in ("stage", "shard", "round", "generation")
    ],
    sa.Column("holder", sa.String(64), primary_key=True),
)

nodes = sa.Table(
    "nodes",
    schema,
    sa.Column("key", sa.String(64), primary_key=True),  # SHA-256 of a SuperNode's public key
    sa.Column("client", sa.String(64), unique=True, nullable=False),
    sa.Column("bound", sa.Text, nullable=False),  # when
)

requests = sa.Table(
    "requests",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("body", sa.JSON, nullable=False),
)

events = sa.Table(
    "events",
    schema,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.String(40), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)
