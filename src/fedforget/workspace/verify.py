"""Verify: is everything there, is it what it was, and is nothing of the forgotten left?"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..errors import FedForgetError, SettingError
from ..federation import Averaging, Leg, Place, Round, average, march, train_all
from ..forgetting import standing
from ..history.fetch import examine
from ..seeds import generator
from ..storage import erasures
from ..storage.erasures import Holding
from . import certify, log, settle
from .keys import tombstone
from .lost import AsRecorded
from .progress import Progress
from .reports import Check, VerifyReport
from .scopes import Erasure, KeepsData, commitment, effective, stones
from .state import State, unfinished

if TYPE_CHECKING:
    from .workspace import Workspace


def verify_report(space: "Workspace", replay: int, never_joined: bool, seed: int, progress: Progress) -> VerifyReport:
    if replay < 0:
        raise SettingError("replay", replay, "0 or more")
    undone = settle.undone(space)
    if undone:
        return VerifyReport((Check("ledger", False, "; ".join(undone) + "; `fedforget train DIR` does it"),), ())
    state = space.state()
    findings: list[str] = []
    checks = [
        log.check(space),
        _slices(state, findings, progress),
        _records(state, progress),
        _lineage(state),
        _forgotten(space, state),
        _strays(space),
        *filter(None, (certify.check(space), _restores(space))),
    ]
    held = erasures.holdings(space.ledger)
    if held:
        checks.append(_holdings(space, held))
    if replay:
        checks.append(_replay(space, state, replay, seed, progress))
    if never_joined:
        checks.append(_never_joined(space, state, progress))
    return VerifyReport(tuple(checks), tuple(findings))


def _slices(state: State, findings: list[str], progress: Progress) -> Check:
    """Every slice against its hash; a record survives while k are good."""
    short: list[str] = []
    count = 0
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
        short = [(cell, done) for cell, done in state.missing().items() if cell[0] < state.stage]
        for (stage, shard), done in short[:1]:
            wanted = f"of its {state.plan.stages[stage].rounds} rounds; `fedforget train DIR` makes the rest"
            return Check("lineage", False, f"stage {stage}, shard {shard} has {done} {wanted}")
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
    found += [f"{c}, who has a tombstone" for c in _buried(space, state)]
    found += [f"an old key: epoch {e}" for e in space.keys.epochs() if e != state.vault.epoch]
    dropped = erasures.drops(space.ledger)
    left = {c: len(mine) for c, mine in effective(space.task.examples, dropped).items()} if dropped else {}
    for place, row in state.rows.items():
        counts = zip(row.roster, row.examples, strict=True)
        found += [f"{place}: {c} with {n} examples" for c, n in counts if c in dropped and n != left.get(c, n)]
        present = state.plan.present(*place.cell)
        found += [f"{place}: {c} was taken out of it" for c in row.roster if c not in present and c not in gone]
    some = f", {sum(map(len, dropped.values()))} examples dropped" if dropped else ""
    detail = f"{len(gone)} forgotten{some}, no trace in force" if not found else "still in " + "; ".join(found[:3])
    return Check("forgotten", not found, detail)


def _buried(space: "Workspace", state: State) -> list[str]:
    """Who is in the plan, a roster or a holder's seat although a tombstone is kept, whatever the ledger says of it."""
    request, federation = unfinished(space.ledger), space.settings.federation
    ahead = set(stones(federation, Erasure.of(request))) if request else set()  # a forget just before its switch
    graves = space.keys.tombstones() - ahead
    names = {*state.plan.clients, *(c for row in state.rows.values() for c in row.roster)}
    names |= {holder for bundle in state.bundles for holder in bundle.holders}
    return sorted(name for name in names - set(state.forgotten) if tombstone(federation, name) in graves)


def _holdings(space: "Workspace", held: Mapping[str, Holding]) -> Check:
    """Whoever dropped examples has what it committed to, as far as its data are here or it can be asked."""
    here = effective(space.task.examples, erasures.drops(space.ledger))
    other = {c: () for c in held if c not in here}
    said = space.cohort.drop(other) if other and isinstance(space.cohort, KeepsData) else {}
    wrong = [c for c, h in held.items() if c in here and h.commitment != commitment(here[c], h.salt or "")]
    wrong += [c for c, h in said.items() if h.commitment != held[c].commitment]
    checked = len(held) - len(other) + len(said)
    detail = f"{checked} of {len(held)} clients have what they committed to" if not wrong else f"not of {wrong[0]}"
    return Check("data sets", not wrong, detail)


def _strays(space: "Workspace") -> Check:
    strays, owed = list(settle.strays(space)), space.ledger.debts()
    detail = f"{len(owed)} deletions owed by holders that are away" if owed else "nothing left over"
    return Check("strays", not strays, detail if not strays else f"{len(strays)} unknown slices, such as {strays[0]}")


def _restores(space: "Workspace") -> Check | None:
    """Which backups were put back, and what had to be done again; None where none ever was."""
    found = [e for e in space.ledger.events() if e.kind == "restored" and e.body is not None]
    if not found:
        return None
    last = found[-1].body or {}
    again = f"{last['forgotten']} clients kept forgotten, {last['rounds']} rounds emptied to be trained again"
    return Check("restores", True, f"a backup was put back {len(found)} times, last {found[-1].time}: {again}")


def _replay(space: "Workspace", state: State, count: int, seed: int, progress: Progress) -> Check:
    """Train a random sample of plain rounds again and compare bits; none of those made under other numerics."""
    now, steady = space.bits()
    plain = [p for p, row in state.rows.items() if row.kind == "plain" and not row.absent and _has_start(state, p)]
    here = [p for p in plain if steady and state.rows[p].deterministic and state.rows[p].numerics in ("", now)]
    if not here:
        return Check("replay", None, "nothing to train again" + (f": no round was made under {now}" if plain else ""))
    chosen = generator(seed, "replay").permutation(len(here))[:count]
    for at, index in enumerate(chosen):
        progress("replaying", at, len(chosen))
        place = here[int(index)]
        leg = Leg(place.round, state.past.checkpoint(place), place.round + 1)
        recipe = Averaging(state.plan, state.settings.training)
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

    Whoever was lost when the rounds were made is lost in that world too. Shards that promise less (X2, X3, A) are
    named, not compared, and so are models that were made under other numerics than today's, where they differ.
    """
    grades = standing(state.plan, state.past)
    now, steady = space.bits()
    less = [f"shard {s} is {g}" for s, g in grades.items() if g != "X1"]
    if not steady or not any(grades[place.shard] == "X1" for place in state.rows):
        why = ", ".join(less) if steady else "the device's kernels are not deterministic"
        return Check("never joined", None, f"nothing to compare: {why if state.rows else 'no round was trained'}")
    total = sum(stage.rounds for stage in state.plan.stages) * state.plan.shards
    differs: list[Place] = []
    same = 0
    for done, round in enumerate(_world(space, state)):
        progress("never joined", done, total)
        row = state.rows.get(round.place)
        if row is None or grades[round.place.shard] != "X1":
            continue
        if row.model_digest == round.model.digest:
            same += 1
        else:
            differs.append(round.place)
    wrong = [place for place in differs if state.rows[place].numerics in ("", now)]
    if wrong:
        return Check("never joined", False, f"{len(wrong)} models differ, first at {wrong[0]}")
    others = sorted({state.rows[place].numerics for place in differs})
    less += [f"models were made under {other}, not {now}" for other in others]
    if not same:
        return Check("never joined", None, f"nothing to compare: {', '.join(less)}")
    detail = f"{same} models bit-identical to the run the forgotten never joined"
    return Check("never joined", True, detail + (f"; not claimed where {', '.join(less)}" if less else ""))


def _world(space: "Workspace", state: State) -> Iterator[Round]:
    return train_all(AsRecorded(space.cohort, state.rows), state.plan, space.learner, space.settings.training)
