"""Outlook: what requests come down to, which shards they touch, and that these are left out of what is served.

Needs neither history nor data nor a lock, so that a request that comes while a rebuild runs takes effect at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import AlreadyForgotten, SettingError
from ..forgetting import Calibration
from ..plan import Cell, Influence, Plan
from ..requests import Scope
from ..requests.times import spell
from ..storage import queue
from ..storage.ledger import Request
from ..storage.queue import Db, Queued
from . import forget as forgetting
from .scopes import Ground, Part, resolve, union

if TYPE_CHECKING:
    from .workspace import Workspace


def scope_of(one: Queued) -> Scope:
    return Scope.from_document(one.document["scope"])


# --- plan and quarantine ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """What planning needs to know, read without the history or the data."""

    ground: Ground
    influences: tuple[Influence, ...]

    @property
    def plan(self) -> Plan:
        return self.ground.plan

    def cells(self, part: Part) -> tuple[Cell, ...]:
        """Every shard of every stage that is not free of it, those included that have still to train."""
        return tuple(sorted(self.plan.affected(part.change, self.influences)))


def outlook(space: "Workspace") -> Outlook:
    rows = space.ledger.rounds()
    borrowed = tuple(
        Influence(p.cell, p.round, (p.stage, row.source)) for p, row in rows.items() if row.source is not None
    )
    return Outlook(Ground.of(space), borrowed)


def advance(space: "Workspace") -> None:
    """Plan what is authorised, and leave its shards out of what is served."""
    with space.ledger.reading() as db:
        waiting = queue.listed(db, {"authorised"})
    if not waiting:
        return
    known = outlook(space)
    todo, cells, skipped, stuck = _sorted_out(space, known, waiting)
    now = spell(space.ledger.clock())
    with space.ledger.transaction("advance") as db:
        log = space.ledger.log
        todo = queue.those_in(db, todo, "authorised")
        queue.move(db, log, todo, "planned")
        queue.quarantine(db, log, {one.id: cells[one.number] for one in todo}, now)
        queue.move(db, log, todo, "quarantined")
        for one in queue.those_in(db, skipped, "authorised"):
            skip(db, space, one, known.ground.seats, now)
        for one in queue.those_in(db, list(stuck), "authorised"):
            queue.move(db, log, [one], "needs_human", reason=stuck[one])


def _sorted_out(
    space: "Workspace", known: Outlook, waiting: Iterable[Queued]
) -> tuple[list[Queued], dict[int, tuple[Cell, ...]], list[Queued], dict[Queued, str]]:
    """What is to be done and where; what others have done already; what nobody knows how to do."""
    parts: dict[Queued, Part] = {}
    skipped: list[Queued] = []
    stuck: dict[Queued, str] = {}
    for one in waiting:
        try:
            parts[one] = resolve(space, known.ground, scope_of(one))
        except AlreadyForgotten:
            skipped.append(one)
        except SettingError as fault:
            stuck[one] = str(fault)
    cells: dict[int, tuple[Cell, ...]] = {}
    for together in by_shards(known.plan, parts).values():  # planned together: one look a shard, not one a request
        found = known.cells(union(parts[one] for one in together))
        cells.update({one.number: found for one in together})
    return list(parts), cells, skipped, stuck


def by_shards(plan: Plan, parts: Mapping[Queued, Part]) -> dict[frozenset[int], list[Queued]]:
    """Requests by the shards their clients sit in."""
    found: dict[frozenset[int], list[Queued]] = {}
    for one, part in parts.items():
        found.setdefault(frozenset(plan.shard_of(c) for c in part.change.clients), []).append(one)
    return found


def skip(db: Db, space: "Workspace", one: Queued, seats: Mapping[str, int | None], now: str) -> None:
    """Everybody it names was forgotten already, for another request."""
    last = max((seats[c] or 0 for c in scope_of(one).clients), default=0)
    queue.move(db, space.ledger.log, [one], "executed", executed=now, warn=None, rebuild=last or None)
    queue.lift(db, [one])


# --- by the custodian's own hand ----------------------------------------------------------------------------


def open_by_hand(space: "Workspace", part: Part, method: str, calibration: Calibration) -> Request:
    """`fedforget forget`: a request like any other, through the same states, in one transaction."""
    (scope,) = part.scopes
    cells = outlook(space).cells(part)
    now = spell(space.ledger.clock())

    def enter(db: Db, rebuild: int) -> None:
        id, log = f"by-hand-{rebuild}", space.ledger.log
        document = {"kind": "fedforget/by-hand/1", "request": id, "scope": scope.to_document()}
        one = queue.receive(db, log, Queued(0, id, "received", "", document, "", "", now))
        for state in ("authorised", "planned", "quarantined"):
            if state == "quarantined":
                queue.quarantine(db, log, {id: cells}, now)
            queue.move(db, log, [one], state, authorised=now)
        queue.move(db, log, [one], "rebuilding", rebuild=rebuild)

    return forgetting.open_request(space, part, method, calibration, enter)
