"""Upkeep: scrub finds slices that went bad before too many have; repair makes them again."""

from typing import TYPE_CHECKING

from ..errors import Damaged, SettingError, UnknownClient, Unrecoverable
from ..federation import Place
from ..history.fetch import examine
from ..manifest import Bundle
from ..slices import VACANT
from ..storage.rows import is_head
from . import seats
from .progress import Progress
from .reports import RepairReport, ScrubReport
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


def scrub(space: "Workspace", portion: int, progress: Progress) -> ScrubReport:
    """Walk the bundles in their order; remember how far it got."""
    if portion < 0:
        raise SettingError("portion", portion, "0 for all, or more")
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
    strangers = (
        set(gone) - {h for b in state.bundles for h in b.holders} - {m.client for m, _ in space.ledger.members()}
    )
    if strangers:
        raise UnknownClient(strangers)
    repaired: list[str] = []
    lost: list[str] = []
    vacant = 0
    for at, bundle in enumerate(state.bundles):
        progress("repairing", at, len(state.bundles))
        wrong = {i for i, _, finding in examine(bundle, space.store) if finding}
        wrong |= {i for i, holder in enumerate(bundle.holders) if holder in gone or holder == VACANT}
        wrong |= {i for i, known in enumerate(bundle.hashes) if known is None}
        if not wrong:
            continue
        try:
            if is_head(bundle):
                mended = head_again(space, state, bundle)
            else:
                mended = seats.reseat(space, state, bundle, wrong, gone)
        except (Unrecoverable, Damaged) as fault:
            lost.append(str(fault))
            continue
        repaired += [str(mended.keys[i]) for i in sorted(wrong) if mended.holders[i] != VACANT]
        vacant += sum(h == VACANT for h in mended.holders)
    return RepairReport(tuple(repaired), vacant, tuple(lost))


def head_again(space: "Workspace", state: State, bundle: Bundle) -> Bundle:
    """A newest model that was lost, from the uploads it is the average of."""
    place = Place(bundle.stage, bundle.shard, bundle.round)
    entry = state.keeper().head(place, state.past.final(place.cell), bundle.generation)
    space.ledger.replace_head(place, entry)
    return entry.bundles[0]
