"""Settle: put in order what a crash, an absent holder or a restored backup left behind."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..slices import SliceKey
from . import seats
from .keys import tombstone
from .state import unfinished

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
    """Whether the database is older than the newest key: its own key is gone, or it does not know who was forgotten.

    A forget that stopped just before its switch has left a newer key and tombstones too, but names whom it is for.
    """
    request = unfinished(space.ledger)
    leaving = set(request.body["leave"]) if request else set()
    present = {m.client for m, gone in space.ledger.members() if gone is None}
    return not space.keys.usable(epoch) or bool(buried(space, present - leaving))


def buried(space: "Workspace", clients: Iterable[str]) -> list[str]:
    """Which of them were forgotten, by the tombstones."""
    stones = space.keys.tombstones()
    return [c for c in clients if tombstone(space.settings.federation, c) in stones]


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
    space.ledger.reset_after_restore(epoch, buried(space, [m.client for m, _ in space.ledger.members()]))
