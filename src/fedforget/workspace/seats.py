"""Seats: which holder keeps which slice, when a holder is away, has left, or was forgotten."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..coding import code_named
from ..errors import Damaged, Unrecoverable
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
    """Make the slices of holders that were forgotten again: on others or, where too few are left, for fewer."""
    for bundle in state.bundles:
        seats = {i for i, holder in enumerate(bundle.holders) if holder in left}
        if not seats:
            continue
        try:
            if len(_fresh(state, bundle, left)) >= len(seats):
                reseat(space, state, bundle, seats, left)
            else:
                bodies = state.archive.sealed(bundle, bundle.by_label)
                fewer = state.keeper().again(bundle, bodies, state.vault.epoch)
                delete(space, space.ledger.exchange_bundle(bundle, fewer))
        except (Unrecoverable, Damaged):
            vacated = tuple(VACANT if i in seats else h for i, h in enumerate(bundle.holders))
            _enter(space, bundle, replace(bundle, holders=vacated), left)


def reseat(space: "Workspace", state: State, bundle: Bundle, seats: Iterable[int], left: Collection[str]) -> Bundle:
    """The slices of those seats made again: where they were, or, where the holder left, with somebody new."""
    fresh = _fresh(state, bundle, left)
    to: dict[int, str] = {}
    for index in sorted(seats):
        holder = bundle.holders[index]
        if holder in left or holder == VACANT:
            holder = fresh.pop(0) if fresh else VACANT
        to[index] = holder
    kept = sum(to.get(i, holder) != VACANT for i, holder in enumerate(bundle.holders))
    needed = code_named(bundle.code).k
    if kept < needed:  # better a slice with somebody who left than none at all
        raise Unrecoverable(str(bundle), needed, kept, "nobody is left to take the others over")
    mended = state.archive.repair(bundle, {i: h for i, h in to.items() if h != VACANT})
    mended = replace(mended, holders=tuple(to.get(i, h) for i, h in enumerate(mended.holders)))
    _enter(space, bundle, mended, left)
    return mended


def _enter(space: "Workspace", old: Bundle, new: Bundle, left: Collection[str]) -> None:
    owed = [key for key in old.keys if key.holder in left]
    space.ledger.replace_bundle(new, owed)
    delete(space, owed)


def _fresh(state: State, bundle: Bundle, left: Collection[str]) -> list[str]:
    """Who could take a slice over: present in the shard (or anywhere), those first that the plan would choose."""
    if bundle.holders in ((HEAD,), (SERVER,)):
        return []
    shards = range(state.plan.shards) if bundle.shard == ALL_SHARDS else (bundle.shard,)
    chosen = list(state.keeper().holders(bundle.stage, bundle.shard))
    rest = [c for s in shards for c in state.plan.present(bundle.stage, s)]
    ranked = chosen + [c for c in rest if c not in chosen]
    return [c for c in ranked if c not in bundle.holders and c not in left]
