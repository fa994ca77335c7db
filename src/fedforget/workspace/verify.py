"""Verify: is everything there, is it what it was, and is nothing of the forgotten left?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import FedForgetError, SettingError
from ..federation import Averaging, Leg, Place, Round, average, march, train_all
from ..forgetting import standing
from ..history.fetch import examine
from ..seeds import generator
from . import settle
from .progress import Progress
from .reports import Check, VerifyReport
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


def verify_report(space: "Workspace", replay: int, never_joined: bool, seed: int, progress: Progress) -> VerifyReport:
    if replay < 0:
        raise SettingError("replay", replay, "0 or more")
    state = space.state()
    findings: list[str] = []
    checks = [
        _chain(space),
        _slices(state, findings, progress),
        _records(state, progress),
        _lineage(state),
        _forgotten(space, state),
        _strays(space),
    ]
    if replay:
        checks.append(_replay(space, state, replay, seed, progress))
    if never_joined:
        checks.append(_never_joined(space, state, progress))
    return VerifyReport(tuple(checks), tuple(findings))


def _chain(space: "Workspace") -> Check:
    broken = space.ledger.broken_link()
    count = sum(1 for _ in space.ledger.events())
    return Check("ledger", broken is None, f"{count} events" if broken is None else f"event {broken} was altered")


def _slices(state: State, findings: list[str], progress: Progress) -> Check:
    """Every slice against its hash; a record survives while k are good."""
    short: list[str] = []
    count = 0
    state.archive.ahead(state.bundles, whole=True)
    for at, bundle in enumerate(state.bundles):
        progress("slices", at, len(state.bundles))
        wrong = [str(finding) for _, _, finding in examine(bundle, state.store) if finding]
        findings += wrong
        count += len(bundle.holders)
        if len(bundle.holders) - len(wrong) < int(bundle.code.split("/")[2]):
            short.append(str(bundle))
    detail = f"{count} slices, {len(findings)} missing or altered"
    return Check("slices", not short, detail + (f"; too few of {', '.join(short[:3])}" if short else ""))


def _records(state: State, progress: Progress) -> Check:
    """Every record decodes, has its digest and opens."""
    for at, bundle in enumerate(state.bundles):
        progress("records", at, len(state.bundles))
        try:
            state.archive.open(bundle.by_label)
        except FedForgetError as fault:
            return Check("records", False, str(fault))
    homeless = set(state.records) - set(state.archive.bundles)
    detail = f"{len(state.records)} records open" if not homeless else f"{next(iter(homeless))} is in no slice"
    return Check("records", not homeless, detail)


def _lineage(state: State) -> Check:
    """Each round begins where the one before ended, and ends in the mean of its uploads."""
    try:
        for place, row in state.rows.items():
            start = place.round and state.rows[place._replace(round=place.round - 1)].model_digest
            if place.round and start != row.start_digest:
                return Check("lineage", False, f"{place} does not begin where the round before ended")
            if place.round == 0 and state.begin(place.cell).digest != row.start_digest:
                return Check("lineage", False, f"{place} does not begin where its stage should")
            wrong = _ends_wrong(state, place)
            if wrong:
                return Check("lineage", False, f"{place}: {wrong}")
        for shard in state.plan.living_shards(state.stage):
            state.final((state.stage, shard))
    except (FedForgetError, KeyError) as fault:
        return Check("lineage", False, str(fault))
    return Check("lineage", True, f"{len(state.rows)} rounds follow from one another")


def _ends_wrong(state: State, place: Place) -> str:
    kinds = {label.kind for label in state.labels.get(place, ())}
    row = state.rows[place]
    if "upload" not in kinds or "model" in kinds:
        return ""
    start = state.past.checkpoint(place) if not row.roster else None
    uploads = state.past.uploads(place)
    model = start if start is not None else average(uploads[0].params, uploads, state.settings.weighted)
    return "" if model.digest == row.model_digest else "its uploads do not average to its model"


def _forgotten(space: "Workspace", state: State) -> Check:
    """No roster, record, key, holder or seat has a forgotten client in it, and only one epoch key is left."""
    gone = set(state.forgotten)
    found = [f"the roster of {p}" for p, row in state.rows.items() if gone & set(row.roster)]
    found += [f"a record: {label}" for label in state.records if label.client in gone]
    found += [f"the holders of {b}" for b in state.bundles if gone & set(b.holders)]
    found += [f"the plan: {c}" for c in gone & set(state.plan.clients)]
    found += [f"an old key: epoch {e}" for e in space.keys.epochs() if e != state.vault.epoch]
    detail = f"{len(gone)} forgotten, no trace in force" if not found else "still in " + "; ".join(found[:3])
    return Check("forgotten", not found, detail)


def _strays(space: "Workspace") -> Check:
    strays, owed = list(settle.strays(space)), space.ledger.debts()
    detail = f"{len(owed)} deletions owed by holders that are away" if owed else "nothing left over"
    return Check("strays", not strays, detail if not strays else f"{len(strays)} unknown slices, such as {strays[0]}")


def _replay(space: "Workspace", state: State, count: int, seed: int, progress: Progress) -> Check:
    """Train a random sample of plain rounds again and compare bits."""
    plain = [p for p, row in state.rows.items() if row.kind == "plain" and not row.absent and _has_start(state, p)]
    chosen = generator(seed, "replay").permutation(len(plain))[:count]
    for at, index in enumerate(chosen):
        progress("replaying", at, len(chosen))
        place = plain[int(index)]
        leg = Leg(place.round, state.past.checkpoint(place), place.round + 1)
        recipe = Averaging(state.plan, space.training)
        (again,) = march(space.cohort, place.stage, {place.shard: leg}, recipe)
        if again.model.digest != state.rows[place].model_digest:
            return Check("replay", False, f"{place} trained again ends in {again.model.digest[:12]}")
    return Check("replay", True, f"{len(chosen)} rounds trained again, bit for bit the same")


def _has_start(state: State, place: Place) -> bool:
    if state.settings.keeping.keep == "full" or place.round == 0:
        return True
    return any(label.kind == "start" for label in state.labels.get(place, ()))


def _never_joined(space: "Workspace", state: State, progress: Progress) -> Check:
    """Train the world in which the forgotten never joined, whole, and compare every model.

    Shards that were calibrated promise less (X3, A) and are named, not compared.
    """
    grades = standing(state.plan, state.past)
    total = sum(stage.rounds for stage in state.plan.stages) * state.plan.shards
    differs: list[str] = []
    same = 0
    for done, round in enumerate(_world(space, state)):
        progress("never joined", done, total)
        row = state.rows.get(round.place)
        if row is None or grades[round.place.shard] != "X1":
            continue
        if row.model_digest == round.model.digest:
            same += 1
        else:
            differs.append(str(round.place))
    if differs:
        return Check("never joined", False, f"{len(differs)} models differ, first at {differs[0]}")
    less = ", ".join(f"shard {s} is {g}" for s, g in grades.items() if g != "X1")
    detail = f"{same} models bit-identical to the run the forgotten never joined"
    return Check("never joined", True, detail + (f"; not claimed where {less}" if less else ""))


def _world(space: "Workspace", state: State) -> Iterator[Round]:
    return train_all(space.cohort, state.plan, space.learner, space.training)
