"""Audit: can anybody tell from the models who was forgotten? Membership attacks with reference federations.

Two questions, one way of answering. Of a workspace that forgot somebody: the models it serves. Of clients that are
named: what forgetting them, together or each alone, would come to by each method. Everything is trained again in
memory, the workspace itself is only read; the data of the forgotten must be at hand, which in a simulation it is.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import AlreadyForgotten, NoReference, NotTrained, SettingError, UnknownClient
from ..evaluation.audit import ATTACKS, CLIENTS_ENOUGH, AttackName, Prosecution, tell_apart
from ..evaluation.curves import Attack
from ..evaluation.references import example_members, references
from ..evaluation.signals import VIEWS, Memo, Questions, Signals, View, ask, listen
from ..evaluation.worlds import Models, Scene, Trial, differing, mates, together, trial
from ..forgetting import METHODS, Calibration, method_named
from ..seeds import derive
from .inspect import sample
from .progress import Progress

if TYPE_CHECKING:
    from .workspace import Workspace

POPULATION = 1000  # examples RMIA compares with; more tell little
SIMULATED = ("exact", "clean", "calibrated")
BEFORE, SERVED = "not forgotten", "served"


@dataclass(frozen=True)
class Finding:
    """What one attack makes of one world, against the world the clients never joined."""

    data: str  # "forgotten" | "retained"
    world: str  # "not forgotten" | "served" | a method
    view: View
    attack: AttackName
    result: Attack


@dataclass(frozen=True)
class AuditReport:
    path: str
    task: str
    learner: str
    partition: str
    forgotten: tuple[str, ...]
    retained: tuple[str, ...]  # clients of the same shards who stay, looked at beside
    served: bool  # of the models a workspace serves; else of what forgetting would come to
    together: bool  # forgotten at once; else each alone
    references: int
    trainings: int
    seed: int
    examples: Mapping[str, int]
    identical: Mapping[str, bool]  # world → its models are, bit for bit, those of the never-joined one
    drawn: str  # what the intervals draw again
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    seconds: float

    def finding(self, data: str, world: str, view: View = "shard", attack: AttackName = "LiRA") -> Finding:
        for found in self.findings:
            if (found.data, found.world, found.view, found.attack) == (data, world, view, attack):
                return found
        raise SettingError("finding", (data, world, view, attack), "one the report has")


@dataclass(frozen=True)
class Case:
    """Clients forgotten together, and clients of the same shards who stay."""

    leavers: tuple[str, ...]
    mates: tuple[str, ...]


@dataclass(frozen=True)
class Docket:
    """What is to be looked at: the federation with everybody in it, the cases, and what is served if there is any."""

    scene: Scene
    cases: tuple[Case, ...]
    methods: tuple[str, ...]
    served: Models | None
    given: bool  # the methods were asked for, not chosen by default

    @property
    def candidates(self) -> tuple[str, ...]:
        return together([(*case.leavers, *case.mates) for case in self.cases])


def docket(space: "Workspace", clients: Collection[str], methods: Sequence[str], each: bool = False) -> Docket:
    """The cases of a question; refuses what cannot be asked, before anything is trained."""
    members = space.ledger.members()
    forgotten = sorted(m.client for m, gone in members if gone is not None)
    state = space.state()
    for name in methods:
        method_named(name)
    if clients:
        unknown = set(clients) - {m.client for m, _ in members}
        if unknown:
            raise UnknownClient(unknown, state.plan.clients)
        if set(clients) & set(forgotten):
            raise AlreadyForgotten(set(clients) & set(forgotten))
        plan, named = state.plan, tuple(sorted(set(clients)))
        groups = [(c,) for c in named] if each else [named]
        chosen, served = tuple(methods) or SIMULATED, None
    else:
        if not forgotten:
            raise SettingError("client", "", "the name of a client to ask about, for nobody was forgotten yet")
        if state.missing():
            raise NotTrained(space.path, f"a finished stage {state.stage}")
        plan, groups = replace(state.plan, members=tuple(m for m, _ in members)), [tuple(forgotten)]
        chosen, served = tuple(methods), state.served()
    cases = tuple(Case(tuple(group), mates(plan, group)) for group in groups)
    scene = Scene(space.cohort, space.learner, plan, space.settings.training)
    return Docket(scene, cases, chosen, served, bool(methods))


def audit_report(
    space: "Workspace",
    clients: Collection[str] = (),
    methods: Sequence[str] = (),
    *,
    each: bool = False,
    references: int = 64,
    trainings: int = 1,
    calibration: Calibration | None = None,
    seed: int = 0,
    resamples: int = 1000,
    progress: Progress,
) -> AuditReport:
    """Every world against the never-joined one, by each attack, as the leavers' shards and as the ensemble show it."""
    began = time.perf_counter()
    if trainings < 1:
        raise SettingError("trainings", trainings, "1 or more")
    case = docket(space, clients, methods, each)
    prosecution = _prosecution(space, case, references, seed, progress)
    hearings = []
    for t in range(trainings):
        progress("trainings", t, trainings)
        # The first training is the federation's own; the others are as it might have been.
        hearings.append(_hear(case, prosecution.questions, derive(seed, "audit", t) if t else None, t, calibration))
    progress("trainings", trainings, trainings)
    owners, names = prosecution.questions.owners, case.candidates
    return AuditReport(
        str(space.path),
        space.settings.task,
        space.settings.learner,
        space.settings.partition,
        together([c.leavers for c in case.cases]),
        together([c.mates for c in case.cases]),
        case.served is not None,
        len(case.cases) == 1,
        references,
        trainings,
        seed,
        {"forgotten": _count(owners, names, case, "leavers"), "retained": _count(owners, names, case, "mates")},
        {w: all(h.identical.get(w, True) for h in hearings) for w in _worlds(hearings) if w != BEFORE},
        _drawn(case, trainings),
        tuple(_findings(case, prosecution, hearings, resamples, seed)),
        tuple(sorted({note for h in hearings for note in h.notes})),
        time.perf_counter() - began,
    )


def _prosecution(space: "Workspace", case: Docket, count: int, seed: int, progress: Progress) -> Prosecution:
    """Train the reference federations, each with half of the candidates, and keep what they answer."""
    candidates, plan = case.candidates, case.scene.plan
    shards = {c: plan.shard_of(c) for c in candidates}
    questions = ask(shards, space.task.examples, sample(space.task.test, POPULATION))
    scene, answers, there = case.scene, [], []
    progress("reference models", 0, count)
    for model in references(
        scene.cohort, scene.learner, plan, scene.settings, candidates, count=count, seed=derive(seed, "references")
    ):
        answers.append(listen(scene.learner, model.models, questions))
        there.append(model.members)
        progress("reference models", model.index + 1, count)
    return Prosecution(questions, answers, example_members(np.array(there), questions.owners))


@dataclass(frozen=True, eq=False)
class Hearing:
    """What one training's worlds answer, case by case."""

    worlds: Mapping[str, Sequence[Signals]]
    never: Sequence[Signals]  # without the leavers
    mateless: Sequence[Signals | None]  # with the leavers, without their mates
    identical: Mapping[str, bool]
    notes: list[str] = field(default_factory=list)


def _hear(case: Docket, questions: Questions, salt: int | None, t: int, calibration: Calibration | None) -> Hearing:
    stored = any(METHODS[m].algorithm in ("calibrate", "clean") for m in case.methods)
    training = trial(case.scene.reseeded(salt), keep_uploads=stored)
    memo: Memo = {}
    notes: list[str] = []

    def hear(models: Models) -> Signals:
        return listen(case.scene.learner, models, questions, memo)

    @cache
    def without(clients: tuple[str, ...]) -> Models:
        return training.without(clients).models

    worlds: dict[str, list[Signals]] = {}
    same: dict[str, bool] = {}
    never: list[Signals] = []
    mateless: list[Signals | None] = []
    for each in case.cases:
        never.append(hear(without(each.leavers)))
        mateless.append(hear(without(each.mates)) if each.mates else None)
        worlds.setdefault(BEFORE, []).append(hear(training.everybody))
        for name, models in _forgotten(case, training, each, t, calibration, notes).items():
            worlds.setdefault(name, []).append(hear(models))
            same[name] = same.get(name, True) and not differing(models, without(each.leavers))
    whole = {name: found for name, found in worlds.items() if len(found) == len(case.cases)}
    return Hearing(whole, never, mateless, same, notes)


def _forgotten(
    case: Docket, training: Trial, each: Case, t: int, calibration: Calibration | None, notes: list[str]
) -> dict[str, Models]:
    """The case's other worlds: as served, and after each method."""
    found: dict[str, Models] = {}
    if case.served is not None and t == 0:
        found[SERVED] = case.served
    for name in case.methods:
        try:
            found[name] = training.after(name, each.leavers, calibration).models
        except NoReference as fault:
            if case.given:
                raise
            notes.append(f"{name} is left out: {fault}")
    return found


def _worlds(hearings: Sequence[Hearing]) -> tuple[str, ...]:
    """Those every training has, and what is served, which only the first can have."""
    shared = [w for w in hearings[0].worlds if w == SERVED or all(w in h.worlds for h in hearings)]
    return tuple(shared)


def _findings(
    case: Docket, prosecution: Prosecution, hearings: Sequence[Hearing], resamples: int, seed: int
) -> Iterator[Finding]:
    places = {c: at for at, c in enumerate(case.candidates)}
    owners = prosecution.questions.owners
    for data in ("forgotten", "retained"):
        sides = [each.leavers if data == "forgotten" else each.mates for each in case.cases]
        rows = [np.isin(owners, [places[c] for c in side]) for side in sides]
        if not any(chosen.any() for chosen in rows):
            continue
        owner = np.concatenate([owners[chosen] for chosen in rows])
        base = [h.never if data == "forgotten" else h.mateless for h in hearings]
        for view, attack in product(VIEWS, ATTACKS):
            outside = np.array([_scores(prosecution, view, attack, answers, rows) for answers in base])
            for world in _worlds(hearings):
                heard = [h.worlds[world] for h in hearings if world in h.worlds]
                inside = np.array([_scores(prosecution, view, attack, answers, rows) for answers in heard])
                result = tell_apart(inside, outside[: len(inside)], owner, resamples=resamples, seed=seed)
                yield Finding(data, world, view, attack, result)


def _scores(
    prosecution: Prosecution,
    view: View,
    attack: AttackName,
    answers: Sequence[Signals | None],
    rows: Sequence[NDArray[np.bool_]],
) -> NDArray[np.float64]:
    """Case after case, each asked about its own examples."""
    asked = zip(answers, rows, strict=True)
    parts = [prosecution.scores(attack, view, a, chosen) for a, chosen in asked if a is not None and chosen.any()]
    return np.concatenate(parts)


def _count(owners: NDArray[np.intp], names: Sequence[str], case: Docket, side: str) -> int:
    """Examples looked at, each as often as a case asks about it."""
    return sum(int(np.isin(np.array(names)[owners], getattr(each, side)).sum()) for each in case.cases)


def _drawn(case: Docket, trainings: int) -> str:
    leavers = sum(len(each.leavers) for each in case.cases)
    unit = "clients" if leavers >= CLIENTS_ENOUGH else "examples of these clients"
    return f"trainings and {unit}" if trainings > 1 else f"{unit}, these very models"
