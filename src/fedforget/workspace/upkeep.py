"""Upkeep: scrub finds slices that went bad before too many have; repair makes them again."""

from itertools import takewhile
from typing import TYPE_CHECKING

from ..errors import Damaged, SealBroken, SettingError, UnknownClient, Unrecoverable
from ..federation import Averaging, Leg, Place, march
from ..history.fetch import examine
from ..manifest import Bundle
from ..params import Params
from ..slices import VACANT
from ..storage.rows import is_head
from . import seats
from .lost import AsRecorded
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
    for at, bundle in enumerate(sorted(state.bundles, key=lambda b: b.stage)):  # later stages begin where these end
        progress("repairing", at, len(state.bundles))
        wrong = {i for i, _, finding in examine(bundle, space.store) if finding}
        wrong |= {i for i, holder in enumerate(bundle.holders) if holder in gone or holder == VACANT}
        wrong |= {i for i, known in enumerate(bundle.hashes) if known is None}
        if not wrong:
            continue
        try:
            if is_head(bundle):
                mended = head_again(space, space.state(), bundle)
            else:
                mended = seats.reseat(space, state, bundle, wrong, gone)
        except (Unrecoverable, Damaged) as fault:
            lost.append(str(fault))
            continue
        repaired += [str(mended.keys[i]) for i in sorted(wrong) if mended.holders[i] != VACANT]
        vacant += sum(h == VACANT for h in mended.holders)
    return RepairReport(tuple(repaired), vacant, tuple(lost))


def head_again(space: "Workspace", state: State, bundle: Bundle) -> Bundle:
    """A newest model that was lost: from the uploads it is the average of or, where none are kept, trained again."""
    place = Place(bundle.stage, bundle.shard, bundle.round)
    try:
        model = state.past.final(place.cell)
    except (Unrecoverable, Damaged):
        model = trained_again(space, state, place)
    entry = state.keeper().head(place, model, bundle.generation)
    space.ledger.replace_head(place, entry)
    return entry.bundles[0]


def trained_again(space: "Workspace", state: State, last: Place) -> Params:
    """The model after a round, from the nearest kept one before it; what comes out has the digest in the ledger."""
    rounds = [last._replace(round=r) for r in range(last.round, -1, -1)]
    for first in takewhile(lambda place: state.rows[place].kind == "plain", rounds):
        try:
            leg = Leg(first.round, state.past.checkpoint(first), last.round + 1)
        except (Unrecoverable, Damaged, SealBroken):
            continue
        recipe = Averaging(state.plan, state.settings.training)
        *_, made = march(AsRecorded(space.cohort, state.rows), last.stage, {last.shard: leg}, recipe)
        if made.model.digest != state.rows[last].model_digest:
            raise Damaged(f"the model after {last}", state.rows[last].model_digest[:12], made.model.digest[:12])
        return made.model
    raise Unrecoverable(f"the model after {last}", 1, 0, "neither it nor one to train it again from is left")


def ready(space: "Workspace", stage: int) -> tuple[State, dict[int, Leg]]:
    """What is left of a stage; newest models that were lost are made again first."""
    state = space.state()
    try:
        return state, state.legs(stage)
    except (Unrecoverable, Damaged):
        for bundle in sorted(state.bundles, key=lambda b: b.stage):
            if is_head(bundle) and any(finding for _, _, finding in examine(bundle, space.store)):
                head_again(space, state, bundle)
                state = space.state()
    return state, state.legs(stage)
