"""The ledger's tables, for SQLite and PostgreSQL alike."""

import sqlalchemy as sa

VERSION = 2

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

# What clients no longer train on, at which stages they no longer count, and what they committed to be left with.

drops = sa.Table(
    "drops",
    schema,
    sa.Column("client", sa.String(64), primary_key=True),
    sa.Column("example", sa.Integer, primary_key=True, autoincrement=False),  # as the client numbers them
    sa.Column("request", sa.Integer, nullable=False),
)

absences = sa.Table(
    "absences",
    schema,
    sa.Column("client", sa.String(64), primary_key=True),
    sa.Column("stage", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request", sa.Integer, nullable=False),
)

holdings = sa.Table(
    "holdings",
    schema,
    sa.Column("client", sa.String(64), primary_key=True),
    sa.Column("request", sa.Integer, nullable=False),
    sa.Column("commitment", sa.String(80), nullable=False),
    sa.Column("salt", sa.String(64)),  # known where the data are here; else the client's own
    sa.Column("examples", sa.Integer),
)

# Who was given which models when. `told`: of all forgotten up to that rebuild.
exports = sa.Table(
    "exports",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("time", sa.String(40), nullable=False),
    sa.Column("recipient", sa.String(128), nullable=False),
    sa.Column("combine", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("rebuild", sa.Integer, nullable=False),  # the last that had been carried out by then
    sa.Column("cells", sa.JSON, nullable=False),  # [stage, shard, rounds]: all whose training went into it
    sa.Column("restored", sa.Boolean, nullable=False),  # the ledger has since come back from a backup
    sa.Column("told", sa.Integer),
    sa.Index("ix_exports_recipient", "recipient", "digest"),
)

events = sa.Table(
    "events",
    schema,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("time", sa.String(40), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("body", sa.Text),  # NULL, with its salt: redacted
    sa.Column("salt", sa.String(64)),
    sa.Column("commitment", sa.String(64), nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)

# --- who may ask, and what was asked (requests above are rebuilds: each carries out a batch of these) --------

enrolments = sa.Table(
    "enrolments",
    schema,
    sa.Column("key", sa.String(80), primary_key=True),  # one key, one role, for good
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("client", sa.String(64), nullable=False),  # its name; for operators and auditors theirs
    sa.Column("enrolled", sa.String(20), nullable=False),
    sa.Column("revoked", sa.String(20)),
    sa.Index("ix_enrolments_client", "client"),
)

queue = sa.Table(
    "queue",
    schema,
    sa.Column("number", sa.Integer, primary_key=True),  # in order of receipt
    sa.Column("id", sa.String(64), nullable=False, unique=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),  # of what was signed
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("key", sa.String(80), nullable=False),  # that signed it; empty for the custodian's own hand
    sa.Column("signature", sa.String(128), nullable=False),
    sa.Column("received", sa.String(20), nullable=False),
    sa.Column("authorised", sa.String(20)),
    sa.Column("executed", sa.String(20)),
    sa.Column("warn", sa.String(20), index=True),  # when to warn next; none once the legal clock has stopped
    sa.Column("rebuild", sa.Integer, sa.ForeignKey("requests.id"), index=True),
    sa.Column("reason", sa.Text),  # why it is on hold, rejected, or needs a human
    sa.Index("ix_queue_state", "state", "number"),
)

verdicts = sa.Table(
    "verdicts",
    schema,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request", sa.Integer, sa.ForeignKey("queue.number"), nullable=False, index=True),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("time", sa.String(20), nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("key", sa.String(80), nullable=False),
    sa.Column("signature", sa.String(128), nullable=False),
)

nonces = sa.Table(
    "nonces",
    schema,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("nonce", sa.String(32), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),  # of the one document it was used for
)

# Shards of a stage that are left out of what is served until the request is carried out.
quarantined = sa.Table(
    "quarantined",
    schema,
    sa.Column("request", sa.String(64), primary_key=True),
    sa.Column("stage", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", sa.String(40), nullable=False),
)

# The Merkle tree over the events: each node whose leaves are all there.
tree = sa.Table(
    "tree",
    schema,
    sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("index", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("hash", sa.String(64), nullable=False),
)

# What was certified: the account whose hash the event of that place commits to.
certificates = sa.Table(
    "certificates",
    schema,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("origin", sa.String(200), nullable=False),  # of the log then
    sa.Column("account", sa.Text, nullable=False),
    sa.UniqueConstraint("request", "state"),
)
