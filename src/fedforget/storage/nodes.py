"""Nodes: which SuperNode is which client, by the SHA-256 of its public key, bound once and for good."""

import sqlalchemy as sa

from . import tables
from .ledger import Ledger


def bound(ledger: Ledger) -> dict[str, str]:
    """Every key ever bound, and its client."""
    return {row["key"]: row["client"] for row in ledger._all(sa.select(tables.nodes))}


def bind(ledger: Ledger, key: str, client: str) -> None:
    """Neither may be bound yet."""
    with ledger.transaction("bind") as db:
        db.execute(sa.insert(tables.nodes).values(key=key, client=client, bound=ledger.clock().isoformat()))
        ledger._append(db, "bound", {"key": key, "client": client})


def release(ledger: Ledger, client: str) -> None:
    """The client may come back with another key: its node was replaced."""
    with ledger.transaction("release") as db:
        db.execute(sa.delete(tables.nodes).where(tables.nodes.c.client == client))
        ledger._append(db, "released", {"client": client})
