"""Upkeep: scrub finds slices that went bad before too many have; repair makes them again."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import Damaged, Unrecoverable
from ..history.fetch import examine
from ..history.fetch import repair as make_again
from ..manifest import Bundle
from ..slices import ALL_SHARDS, HEAD, SERVER, VACANT
from . import settle
from .progress import Progress
from .reports import RepairReport, ScrubReport
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


def scrub(space: "Workspace", portion: int, progress: Progress) -> ScrubReport:
    """Walk the bundles in their order; remember how far it got."""
    bundles = space.ledger.bundles(space.settings.federation)
    first = space.ledger.get("scrub", 0) if portion else 0
    first = first if first < len(bundles) else 0
    last = min(len(bundles), first + portion) if portion else len(bundles)
    findings: list[str] = []
    for at in range(first, last):
        progress("scrubbing", at - first, last - first)
        findings += [str(finding) for _, _, finding in examine(bundles[at], space.store) if finding]
    following = last if last < len(bundles) else 0
    space.ledger.put("scrub", following)
    checked = sum(len(b.holders) for b in bundles[first:last])
    return ScrubReport(checked, sum(len(b.holders) for b in bundles), following, tuple(findings))


def repair(space: "Workspace", gone: tuple[str, ...], progress: Progress) -> RepairReport:
    """Every bundle whose slices are not all good, or lie with somebody who left."""
    state = space.state()
    repaired: list[str] = []
    lost: list[str] = []
    vacant = 0
    for at, bundle in enumerate(state.bundles):
        progress("repairing", at, len(state.bundles))
        wrong = {i for i, _, finding in examine(bundle, space.store) if finding}
        wrong |= {i for i, holder in enumerate(bundle.holders) if holder in gone or holder == VACANT}
        if not wrong:
            continue
        try:
            mended = reseat(space, state, bundle, wrong, gone)
        except (Unrecoverable, Damaged) as fault:
            lost.append(str(fault))
            continue
        repaired += [str(mended.keys[i]) for i in sorted(wrong) if mended.holders[i] != VACANT]
        vacant += sum(h == VACANT for h in mended.holders)
    return RepairReport(tuple(repaired), vacant, tuple(lost))


def move_slices(space: "Workspace", state: State, gone: Iterable[str]) -> None:
    """Make the slices of holders that were forgotten again on others."""
    left = tuple(gone)
    for bundle in state.bundles:
        seats = {i for i, holder in enumerate(bundle.holders) if holder in left}
        if seats:
            try:
                reseat(space, state, bundle, seats, left)
            except (Unrecoverable, Damaged):
                vacated = tuple(VACANT if i in seats else h for i, h in enumerate(bundle.holders))
                _enter(space, bundle, replace(bundle, holders=vacated), left)


def reseat(space: "Workspace", state: State, bundle: Bundle, seats: Iterable[int], gone: tuple[str, ...]) -> Bundle:
    """The slices of those seats made again: where they were, or, where the holder left, with somebody new."""
    fresh = [h for h in _candidates(state, bundle) if h not in bundle.holders and h not in gone]
    to: dict[int, str] = {}
    for index in sorted(seats):
        holder = bundle.holders[index]
        if holder in gone or holder == VACANT:
            holder = fresh.pop(0) if fresh else VACANT
        to[index] = holder
    mended = make_again(bundle, space.store, {i: h for i, h in to.items() if h != VACANT})
    mended = replace(mended, holders=tuple(to.get(i, h) for i, h in enumerate(mended.holders)))
    _enter(space, bundle, mended, gone)
    return mended


def _enter(space: "Workspace", old: Bundle, new: Bundle, gone: tuple[str, ...]) -> None:
    owed = [key for key in old.keys if key.holder in gone]
    space.ledger.replace_bundle(new, owed)
    settle.delete(space, owed)


def _candidates(state: State, bundle: Bundle) -> list[str]:
    """Present clients of the shard (or of all), those first that the plan would choose."""
    if bundle.holders in ((HEAD,), (SERVER,)):
        return []
    shards = range(state.plan.shards) if bundle.shard == ALL_SHARDS else (bundle.shard,)
    chosen = list(state.keeper().holders(bundle.stage, bundle.shard))
    rest = [c for s in shards for c in state.plan.present(bundle.stage, s)]
    return chosen + [c for c in rest if c not in chosen]
