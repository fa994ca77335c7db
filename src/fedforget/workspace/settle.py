"""Settle: put in order what a crash, an absent holder or a restored backup left behind."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..plan import Member
from ..slices import SliceKey
from ..storage import erasures
from ..storage.ledger import Branch
from . import certify, log, scopes, seats
from .keys import tombstone
from .state import unfinished
from .tasks import names_of, seat_names

if TYPE_CHECKING:
    from .workspace import Workspace


def settle(space: "Workspace") -> tuple[str, ...]:
    """Before any work: half-written files go, debts are asked for again, an old database is brought up to date.

    Returns what the operator has to know of it.
    """
    space.disk.sweep(space.path)
    space.ledger.begun()
    notices = put_back(space)
    epoch = space.ledger.get("epoch")
    space.keys.load(epoch)
    space.keys.destroy_all_but(epoch)
    seats.delete(space, space.ledger.debts())
    sweep(space)
    forgotten = {m.client for m, gone in space.ledger.members() if gone is not None}
    if forgotten:
        seats.vacate(space, space.state(), forgotten)
    log.signing_key(space)
    certify.certify(space)
    return notices


def put_back(space: "Workspace") -> tuple[str, ...]:
    """Bring a ledger up to date that was put back from a backup."""
    notices = undone(space)
    if not notices:
        return ()
    epoch = space.ledger.get("epoch")
    newest, branch = max(space.keys.epochs(), default=epoch), log.branch_of(log.standing(space))
    if newest > epoch and outdated(space, epoch):
        restore(space, newest, branch)
    else:
        space.ledger.branch_off(branch)
    return notices


def undone(space: "Workspace") -> tuple[str, ...]:
    """What putting an old ledger back has undone, and has to be done again; nothing where it is the newest."""
    epoch, found = space.ledger.get("epoch"), log.standing(space)
    newest = max(space.keys.epochs(), default=epoch)
    older = newest > epoch and outdated(space, epoch)
    if not older and found.kind != "put back":
        return ()
    lost = f": {found.lost} events that were signed are not in it" if found.lost else ""
    notices = [f"the ledger was put back from a backup{lost}"]
    if older:
        again = _unknown(space, space.keys.tombstones())
        names = sorted({*again.clients, *again.seats})
        rounds = len(space.ledger.rounds())
        notices.append(f"forgotten again by the tombstones: {', '.join(names) or 'nobody'}")
        if again.drops or again.away:
            parts = sorted({*again.drops, *(client for client, _ in again.away)})
            notices.append(f"forgotten again in part, by the tombstones: {', '.join(parts)}")
        notices.append(f"its {rounds} rounds do not open any more; training makes them again without the forgotten")
    else:
        notices.append("what was trained since is trained again")
    return tuple(notices)


def outdated(space: "Workspace", epoch: int) -> bool:
    """Whether the database is older than the newest key: its own key is gone, or it does not know what was forgotten.

    A forget that stopped just before its switch has left a newer key and tombstones too, but names what it is for.
    """
    request = unfinished(space.ledger)
    own = scopes.stones(space.settings.federation, scopes.Erasure.of(request)) if request else ()
    return not space.keys.usable(epoch) or _unknown(space, space.keys.tombstones() - set(own)).any


@dataclass(frozen=True)
class Unknown:
    """What tombstones say was forgotten and the database does not."""

    clients: tuple[str, ...]
    drops: Mapping[str, Collection[int]]
    away: tuple[tuple[str, int], ...]
    seats: Mapping[str, int] = field(default_factory=dict)  # of clients that joined after the backup was made

    @property
    def any(self) -> bool:
        return bool(self.clients or self.drops or self.away or self.seats)


def _unknown(space: "Workspace", stones: Collection[str]) -> Unknown:
    federation = space.settings.federation
    members = space.ledger.members()
    present = [m for m, gone in members if gone is None]
    clients = tuple(m.client for m in present if tombstone(federation, m.client) in stones)
    seats = buried_seats(space, stones, {m.client for m, _ in members})
    if not any(":" in text for text in stones):
        return Unknown(clients, {}, (), seats)
    names = sorted({*seat_names(space.settings), *space.task.examples} - {*clients, *seats})
    known = erasures.drops(space.ledger)
    drops = scopes.graves(federation, stones, names, "examples")
    drops = {c: rows - known.get(c, frozenset()) for c, rows in drops.items()}
    stages = scopes.graves(federation, stones, names, "stages")
    away = tuple((m.client, t) for m in present for t in sorted(stages.get(m.client, frozenset()) - m.away))
    return Unknown(clients, {c: rows for c, rows in drops.items() if rows}, away, seats)


def buried_seats(space: "Workspace", stones: Collection[str], members: Collection[str]) -> Mapping[str, int]:
    """Free seats whose names have tombstones: they joined, and were forgotten, after this database was backed up.

    The data are read only where a tombstone is of nobody who ever had a seat here.
    """
    federation = space.settings.federation
    known = {tombstone(federation, name) for name in members}
    if all(":" in text or text in known for text in stones):
        return {}
    names = enumerate(names_of(space.task, space.settings))
    return {name: seat for seat, name in names if name not in members and tombstone(federation, name) in stones}


def under_way(space: "Workspace", erasure: scopes.Erasure) -> bool:
    """Whether it has tombstones already."""
    return bool(space.keys.tombstones() & set(scopes.stones(space.settings.federation, erasure)))


def strays(space: "Workspace") -> Iterator[SliceKey]:
    """Slices no manifest knows: written just before a crash, or kept by a holder that was away."""
    request = unfinished(space.ledger)
    federation = space.settings.federation
    known = {key for b in space.ledger.bundles(federation) for key in b.keys}
    if request is not None:
        known |= {key for b in space.ledger.bundles(federation, request.id) for key in b.keys}
    owed = set(space.ledger.debts())
    yield from [key for key in space.store.keys() if key not in known | owed]  # noqa: SIM118


def sweep(space: "Workspace") -> None:
    """Delete what no manifest knows.

    But after a backup was put back what has been made since stays until it was made again: the wrong backup may have
    been taken. What lies under an older key than today's goes at once, for it may be of the forgotten.
    """
    kept = space.ledger.get("epoch") if space.ledger.branch()["name"] and space.state().missing() else None
    seats.delete(space, [key for key in strays(space) if key.generation != kept], owed=False)


def restore(space: "Workspace", epoch: int, branch: Branch) -> None:
    """An older database than the keys: nothing in it opens any more, and its seats may hold the forgotten.

    The tombstones are replayed and the history emptied; `train` makes the same models again, bit for bit, without
    the forgotten, for every draw is a function of the seed.
    """
    found = _unknown(space, space.keys.tombstones())
    drops = {client: sorted(rows) for client, rows in found.drops.items()}
    stage = len(space.ledger.stages())
    graves = [Member(name, seat, stage) for name, seat in found.seats.items()]
    space.ledger.reset_after_restore(epoch, found.clients, branch, {"drops": drops, "away": found.away}, graves)
