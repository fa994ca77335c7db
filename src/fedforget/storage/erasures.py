"""Erasures: what clients that stay no longer train on, and in which stages they no longer count.

Entered by the transaction that makes them true, the switch of a forget. What is known of a client that leaves goes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from . import tables

if TYPE_CHECKING:
    from .ledger import Ledger


@dataclass(frozen=True)
class Holding:
    """What a client committed to be left with: a salted digest, and how many examples, as far as it says."""

    commitment: str
    salt: str | None = None
    examples: int | None = None


def drops(ledger: "Ledger") -> dict[str, frozenset[int]]:
    """The examples each client no longer has."""
    return _sets(ledger, tables.drops.c.client, tables.drops.c.example)


def absences(ledger: "Ledger") -> dict[str, frozenset[int]]:
    """The stages in which each client counts as absent."""
    return _sets(ledger, tables.absences.c.client, tables.absences.c.stage)


def _sets(ledger: "Ledger", client: sa.Column[str], value: sa.Column[int]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for row in ledger._each(sa.select(client.table), dict):
        found.setdefault(row[client.name], set()).add(int(row[value.name]))
    return {name: frozenset(values) for name, values in sorted(found.items())}


def holdings(ledger: "Ledger") -> dict[str, Holding]:
    h = tables.holdings
    found = ledger._each(sa.select(h).order_by(h.c.client), dict)
    return {r["client"]: Holding(r["commitment"], r["salt"], r["examples"]) for r in found}


def enter(db: sa.Connection, request: int, body: Mapping[str, Any]) -> None:
    """What a request takes away. Known before is fine: a restored backup is told again."""
    for client, examples in body.get("drops", {}).items():
        _again(db, tables.drops, client, "example", examples, request)
    for client, stage in body.get("away", ()):
        _again(db, tables.absences, client, "stage", [stage], request)
    for client, holding in body.get("holdings", {}).items():
        _clear(db, tables.holdings, [client])
        db.execute(sa.insert(tables.holdings).values(client=client, request=request, **holding))
    for table in (tables.drops, tables.absences, tables.holdings):
        _clear(db, table, body["leave"])


def _again(db: sa.Connection, table: sa.Table, client: str, name: str, values: Iterable[int], request: int) -> None:
    c = table.c
    known = set(db.scalars(sa.select(c[name]).where(c.client == client)))
    new = [{"client": client, name: value, "request": request} for value in sorted(set(values) - known)]
    if new:
        db.execute(sa.insert(table), new)


def _clear(db: sa.Connection, table: sa.Table, clients: Collection[str]) -> None:
    if clients:
        db.execute(sa.delete(table).where(table.c.client.in_(list(clients))))
