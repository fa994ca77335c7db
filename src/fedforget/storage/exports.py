"""Exports: the register of who was given which models, and which shards are left out of what is served."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ..plan import Cell
from . import tables

if TYPE_CHECKING:
    from .ledger import Ledger


@dataclass(frozen=True)
class Export:
    """One hand-over. `cells` are the rounds of every shard of every stage that went into it."""

    id: int
    time: str
    recipient: str
    combine: str
    digest: str
    generation: int
    rebuild: int
    cells: tuple[tuple[int, int, int], ...]
    restored: bool = False
    told: int | None = None


def register(ledger: "Ledger", one: Export) -> Export:
    """Enter it before anything is handed over. The same to the same recipient again is the same hand-over."""
    e = tables.exports
    with ledger.transaction("export") as db:
        known = (e.c.recipient == one.recipient, e.c.digest == one.digest, e.c.combine == one.combine)
        for row in db.execute(sa.select(e).where(*known, e.c.rebuild == one.rebuild)).mappings():
            return _read(dict(row))
        last = db.scalar(sa.select(sa.func.max(e.c.id))) or 0
        made = Export(last + 1, *(getattr(one, name) for name in list(asdict(one))[1:]))
        db.execute(sa.insert(e).values(**{**asdict(made), "cells": [list(cell) for cell in made.cells]}))
        ledger._append(db, "exported", {"export": made.id, "digest": made.digest, "generation": made.generation})
    return made


def exported(ledger: "Ledger") -> tuple[Export, ...]:
    return tuple(ledger._each(sa.select(tables.exports).order_by(tables.exports.c.id), _read))


def told(ledger: "Ledger", ids: Sequence[int], rebuild: int) -> None:
    """Their recipients know of all that was forgotten up to this rebuild."""
    e = tables.exports
    with ledger.transaction("told") as db:
        db.execute(sa.update(e).where(e.c.id.in_(list(ids))).values(told=rebuild, restored=False))
        ledger._append(db, "told", {"exports": sorted(ids), "rebuild": rebuild})


def restored(db: sa.Connection) -> None:
    """An older ledger came back: nobody knows any more what of the exports was forgotten since."""
    db.execute(sa.update(tables.exports).values(restored=True))


def left_out(ledger: "Ledger") -> dict[Cell, tuple[str, ...]]:
    """The quarantined shards of stages, and the requests they are left out for."""
    found: dict[Cell, tuple[str, ...]] = {}
    q = tables.quarantined
    for row in ledger._each(sa.select(q).order_by(q.c.stage, q.c.shard, q.c.request), dict):
        cell = (int(row["stage"]), int(row["shard"]))
        found[cell] = (*found.get(cell, ()), row["request"])
    return found


def _read(row: Mapping[str, Any]) -> Export:
    cells = tuple((stage, shard, rounds) for stage, shard, rounds in row["cells"])
    return Export(**{**row, "cells": cells})
