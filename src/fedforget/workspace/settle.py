"""Settle: put in order what a crash, an absent holder or a restored backup left behind."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..slices import SliceKey
from ..storage import erasures
from . import scopes, seats
from .keys import tombstone
from .state import unfinished
from .tasks import seat_names

if TYPE_CHECKING:
    from .workspace import Workspace


def settle(space: "Workspace") -> None:
    """Before any work: half-written files go, debts are asked for again, an old database is brought up to date."""
    space.disk.sweep(space.path)
    space.ledger.begun()
    epoch = space.ledger.get("epoch")
    newest = max(space.keys.epochs(), default=epoch)
    if newest > epoch and outdated(space, epoch):
        restore(space, newest)
        epoch = newest
    space.keys.load(epoch)
    space.keys.destroy_all_but(epoch)
    seats.delete(space, space.ledger.debts())
    seats.delete(space, strays(space), owed=False)
    forgotten = {m.client for m, gone in space.ledger.members() if gone is not None}
    if forgotten:
        seats.vacate(space, space.state(), forgotten)


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

    @property
    def any(self) -> bool:
        return bool(self.clients or self.drops or self.away)


def _unknown(space: "Workspace", stones: Collection[str]) -> Unknown:
    federation = space.settings.federation
    present = [m for m, gone in space.ledger.members() if gone is None]
    clients = tuple(m.client for m in present if tombstone(federation, m.client) in stones)
    if not any(":" in text for text in stones):
        return Unknown(clients, {}, ())
    names = sorted({*seat_names(space.settings), *space.task.examples} - set(clients))
    known = erasures.drops(space.ledger)
    drops = scopes.graves(federation, stones, names, "examples")
    drops = {c: rows - known.get(c, frozenset()) for c, rows in drops.items()}
    stages = scopes.graves(federation, stones, names, "stages")
    away = tuple((m.client, t) for m in present for t in sorted(stages.get(m.client, frozenset()) - m.away))
    return Unknown(clients, {c: rows for c, rows in drops.items() if rows}, away)


def buried(space: "Workspace", clients: Iterable[str]) -> list[str]:
    """Which of them were forgotten, by the tombstones."""
    stones = space.keys.tombstones()
    return [c for c in clients if tombstone(space.settings.federation, c) in stones]


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


def restore(space: "Workspace", epoch: int) -> None:
    """An older database than the keys: nothing in it opens any more, and its seats may hold the forgotten.

    The tombstones are replayed and the history emptied; `train` makes the same models again, bit for bit, without
    the forgotten, for every draw is a function of the seed.
    """
    found = _unknown(space, space.keys.tombstones())
    drops = {client: sorted(rows) for client, rows in found.drops.items()}
    space.ledger.reset_after_restore(epoch, found.clients, {"drops": drops, "away": found.away})
