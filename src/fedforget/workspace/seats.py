"""Seats: which holder keeps which slice, when a holder is away, has left, or was forgotten."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import Damaged, Unrecoverable
from ..history.fetch import repair as make_again
from ..manifest import Bundle
from ..slices import ALL_SHARDS, HEAD, SERVER, VACANT, SliceKey
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


def delete(space: "Workspace", keys: Iterable[SliceKey], owed: bool = True) -> tuple[SliceKey, ...]:
    """Ask the holders to delete; those that acknowledged are no longer owed. Returns the rest."""
    asked = tuple(keys)
    paid = space.store.delete(asked) if asked else frozenset()
    if paid and owed:
        space.ledger.pay(sorted(paid))
    return tuple(key for key in asked if key not in paid)


def vacate(space: "Workspace", state: State, left: Collection[str]) -> None:
    """Make the slices of holders that were forgotten again on others."""
    for bundle in state.bundles:
        seats = {i for i, holder in enumerate(bundle.holders) if holder in left}
        if seats:
            try:
                reseat(space, state, bundle, seats, left)
            except (Unrecoverable, Damaged):
                vacated = tuple(VACANT if i in seats else h for i, h in enumerate(bundle.holders))
                _enter(space, bundle, replace(bundle, holders=vacated), left)


def reseat(space: "Workspace", state: State, bundle: Bundle, seats: Iterable[int], left: Collection[str]) -> Bundle:
    """The slices of those seats made again: where they were, or, where the holder left, with somebody new."""
    fresh = [h for h in _candidates(state, bundle) if h not in bundle.holders and h not in left]
    to: dict[int, str] = {}
    for index in sorted(seats):
        holder = bundle.holders[index]
        if holder in left or holder == VACANT:
            holder = fresh.pop(0) if fresh else VACANT
        to[index] = holder
    mended = make_again(bundle, space.store, {i: h for i, h in to.items() if h != VACANT})
    mended = replace(mended, holders=tuple(to.get(i, h) for i, h in enumerate(mended.holders)))
    _enter(space, bundle, mended, left)
    return mended


def _enter(space: "Workspace", old: Bundle, new: Bundle, left: Collection[str]) -> None:
    owed = [key for key in old.keys if key.holder in left]
    space.ledger.replace_bundle(new, owed)
    delete(space, owed)


def _candidates(state: State, bundle: Bundle) -> list[str]:
    """Present clients of the shard (or of all), those first that the plan would choose."""
    if bundle.holders in ((HEAD,), (SERVER,)):
        return []
    shards = range(state.plan.shards) if bundle.shard == ALL_SHARDS else (bundle.shard,)
    chosen = list(state.keeper().holders(bundle.stage, bundle.shard))
    rest = [c for s in shards for c in state.plan.present(bundle.stage, s)]
    return chosen + [c for c in rest if c not in chosen]
