"""The methods of forgetting, as rows of one table, and the one call that runs any of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ..errors import SettingError
from ..federation import Absence, Cohort, Learner, Place, Round, Settings, Solver
from ..plan import Cell, Change, Plan, Taint
from .calibrated import Calibration, calibrated
from .clean import clean, references
from .exact import exact
from .guarantee import Guarantee, GuaranteeClass
from .past import Past, cells
from .rebuild import Rebuild, from_scratch, lineage, touched, touched_back_to_plain

Algorithm = Literal["restart", "scratch", "calibrate", "clean"]


@dataclass(frozen=True)
class Method:
    """One way of forgetting.

    `sharded` and `coded` say in which federation it is at home; the algorithm runs on any.
    """

    name: str
    title: str
    algorithm: Algorithm
    grade: GuaranteeClass
    sharded: bool = True
    coded: bool = True
    solver: Solver | None = None


METHODS: Mapping[str, Method] = {
    row.name: row
    for row in (
        Method("exact", "restart the shard before the leaver", "restart", "X1"),
        Method("clean", "calibrate by lengths the leaver never touched", "clean", "X3"),
        Method("calibrated", "calibrate by stored lengths", "calibrate", "A"),
        Method("SE", "the paper: sharded, coded, calibrated", "calibrate", "A"),
        Method("SE-uncoded", "the paper's, history kept plainly", "calibrate", "A", coded=False),
        Method("FE", "FedEraser: one shard, uncoded, calibrated", "calibrate", "A", sharded=False, coded=False),
        Method("FR", "retrain from scratch, one shard", "scratch", "X1", sharded=False, coded=False),
        Method("RR", "RapidRetrain: from scratch by the diagonal Fisher", "scratch", "X3", False, False, "fisher"),
    )
}


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise SettingError("method", name, "one of " + ", ".join(METHODS))
    return METHODS[name]


def prepare_work(method: Method, plan: Plan, past: Past, change: Change) -> Rebuild:
    """What the method would make again; changes nothing."""
    taints: dict[Cell, Taint]
    if method.algorithm == "scratch":
        taints = from_scratch(plan, past)
    elif method.algorithm == "restart":
        taints = touched_back_to_plain(plan, past, change)
    else:
        taints = touched(plan, past, change)
    return Rebuild(plan, plan.changed(change), change, past, taints)


def forget(
    method: Method,
    cohort: Cohort,
    learner: Learner,
    work: Rebuild,
    settings: Settings,
    calibration: Calibration | None = None,
) -> Iterator[Round]:
    """The rounds of the next generation, of the same kind as training yields."""
    calibration = calibration or Calibration()
    if method.algorithm == "calibrate":
        return calibrated(cohort, learner, work, settings, calibration)
    if method.algorithm == "clean":
        return clean(cohort, learner, work, settings, calibration)
    if method.solver in (None, settings.solver):
        return exact(cohort, learner, work, settings)
    return exact(cohort, learner, work, replace(settings, solver=method.solver), "retrained")


@dataclass(frozen=True)
class Estimate:
    """What a forget would touch and cost, without doing it."""

    taints: Mapping[Cell, Taint]
    rounds: int
    client_epochs: int
    guarantee: Guarantee


def estimate(method: Method, work: Rebuild, settings: Settings, calibration: Calibration | None = None) -> Estimate:
    """Count the rounds and client-epochs from the plan and the rosters: exact, unless clients get lost."""
    calibration = calibration or Calibration()
    if method.algorithm == "clean" and calibration.length is None:
        references(work)
    rounds = epochs = 0
    for cell, taint in work.taints.items():
        if not work.after.present(*cell):
            continue
        for index in range(taint.round, work.past.rounds(cell)):
            rounds += 1
            epochs += _round_epochs(method, work, Place(*cell, index), taint, settings, calibration)
    return Estimate(work.taints, rounds, epochs, assess(method, work, (), calibration))


def _round_epochs(
    method: Method, work: Rebuild, place: Place, taint: Taint, settings: Settings, calibration: Calibration
) -> int:
    if method.algorithm in ("restart", "scratch"):
        return settings.epochs * len(work.after.cohort(*place))
    if place.round == taint.round and not taint.inherited:
        return 0
    if not calibration.keeps(taint.round, place.round):
        return 0
    if method.algorithm == "clean":
        return calibration.epochs(settings.epochs) * len(work.after.cohort(*place))
    retained = [c for c in work.past.roster(place) if c not in work.change.gone(place.stage)]
    return calibration.epochs(settings.epochs) * len(retained)


class Attended(Protocol):
    """A round, or the ledger's row of one: who was missing where."""

    @property
    def place(self) -> Place: ...

    @property
    def absent(self) -> tuple[Absence, ...]: ...


def assess(
    method: Method,
    work: Rebuild,
    rebuilt: Sequence[Attended],
    calibration: Calibration | None = None,
    conditions: tuple[str, ...] = (),
) -> Guarantee:
    """The class the outcome has earned, and why. `conditions`: what the engine knows to have changed."""
    calibration = calibration or Calibration()
    who, what = _forgotten(work.change)
    if not work.taints:
        return Guarantee("X0", f"no {who} was ever drawn into a recorded round")
    merged = merged_taints(work)
    note = f"; a merged hand-over carried the {who}s into {merged}" if merged else ""
    if method.grade == "X1":
        lost = conditions + _lost(work, rebuilt)
        where = _restarts(work)
        if lost:
            return Guarantee("X2", f"restarted {where}, but conditions changed{note}", lost)
        return Guarantee("X1", f"restarted {where}, before any {what}{note}")
    if method.grade == "X3":
        if method.algorithm == "scratch":
            return Guarantee("X3", f"retrained from scratch by another algorithm than training ({method.solver}){note}")
        lengths = f"a public constant, {calibration.length:g}" if calibration.length is not None else _lenders(work)
        return Guarantee("X3", f"{_restarts(work)}; step lengths from {lengths}{note}")
    return Guarantee("A", f"stored step lengths were measured while the {who}s took part{note}")


def _forgotten(change: Change) -> tuple[str, str]:
    """What is forgotten, in a word, and what it did first."""
    if change.leave and not change.edit | change.away:
        return "leaver", "leaver took part"
    if change.edit and not change.leave | change.away:
        return "forgotten example", "forgotten example was used"
    return "forgotten part", "forgotten part was played"


def _lenders(work: Rebuild) -> str:
    return ", ".join(f"shard {s} by shard {d}" for s, d in references(work).items()) or "nowhere: no round needed one"


def _restarts(work: Rebuild) -> str:
    parts = [f"stage {t} shard {s} from round {taint.round}" for (t, s), taint in sorted(work.taints.items())]
    return ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")


def merged_taints(work: Rebuild) -> str:
    """The shards a `merged` hand-over tainted although none of their own clients leaves."""
    own = {work.before.shard_of(c) for c in work.change.clients}
    reached = work.before.affected(work.change).keys() & work.taints.keys()  # no borrowed lengths: hand-over alone
    caught = sorted({s for (_, s) in reached if s not in own})
    return ", ".join(f"shard {s}" for s in caught)


def _lost(work: Rebuild, rebuilt: Sequence[Attended]) -> tuple[str, ...]:
    """Why the outcome is not what never-joined training would have made.

    Clients lost in the replayed rounds, then or now; before these, rounds that an earlier forget made again under
    changed conditions. Who was lost when the rounds before were first trained is part of the run that is meant.
    """
    found = [f"{a.client} was lost in {r.place} of the replay" for r in rebuilt for a in r.absent if a.lost]
    for cell, taint in sorted(work.taints.items()):
        for index in range(taint.round, work.past.rounds(cell)):
            place = Place(*cell, index)
            found += [
                f"{c} had been lost in {place}" for c in work.past.lost(place) if c not in work.change.gone(place.stage)
            ]
    places = lineage(work.before, work.past, work.taints)
    again = [place for place in places if not _replayed(work, place) and work.past.made(place).changed]
    found += [f"{again[0]} had been made again under changed conditions, as one of {len(again)}"] if again else []
    return tuple(found)


def _replayed(work: Rebuild, place: Place) -> bool:
    taint = work.taints.get(place.cell)
    return taint is not None and taint.round <= place.round


def standing(plan: Plan, past: Past) -> dict[int, GuaranteeClass]:
    """What each shard's lineage, with all that was handed over to it, is worth by how its rounds were made.

    Plain rounds are exact (X1), and X2 where conditions changed when they were made again, or between them.
    """
    grades: dict[int, GuaranteeClass] = {}
    for shard in range(plan.shards):
        places = lineage(plan, past, (c for c in cells(plan, past) if c[1] == shard))
        kinds = {past.kind(p) for p in places}
        plain: GuaranteeClass = "X2" if _conditional(past, places) else "X1"
        grades[shard] = "A" if "calibrated" in kinds else plain if kinds <= {"plain"} else "X3"
    return grades


def _conditional(past: Past, places: Sequence[Place]) -> bool:
    made = {past.made(place) for place in places}
    under = {m.numerics for m in made if m.numerics}
    return len(under) > 1 or any(m.changed or not m.deterministic for m in made)
