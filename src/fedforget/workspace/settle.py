"""Settle: put in order what a crash, an absent holder or a restored backup left behind."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..slices import SliceKey
from .keys import tombstone
from .state import unfinished

if TYPE_CHECKING:
    from .workspace import Workspace


def settle(space: "Workspace") -> None:
    """Before any work: half-written files go, debts are asked for again, an old database is brought up to date."""
    space.disk.sweep(space.path)
    epoch = space.ledger.get("epoch")
    held = space.keys.epochs()
    if epoch not in held and held and held[-1] > epoch:
        restore(space, held[-1])
        epoch = held[-1]
    space.keys.load(epoch)
    space.keys.destroy_all_but(epoch)
    delete(space, space.ledger.debts())
    delete(space, strays(space), owed=False)


def delete(space: "Workspace", keys: Iterable[SliceKey], owed: bool = True) -> tuple[SliceKey, ...]:
    """Ask the holders to delete; those that acknowledged are no longer owed. Returns the rest."""
    asked = tuple(keys)
    paid = space.store.delete(asked) if asked else frozenset()
    if paid and owed:
        space.ledger.pay(sorted(paid))
    return tuple(key for key in asked if key not in paid)


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
    buried = space.keys.tombstones()
    federation = space.settings.federation
    gone = [m.client for m, _ in space.ledger.members() if tombstone(federation, m.client) in buried]
    space.ledger.reset_after_restore(epoch, gone)
