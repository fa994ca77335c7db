"""Federations small enough to run by the hundred, and how Hypothesis draws them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from fedforget.errors import NoReference
from fedforget.examples import Examples
from fedforget.federation import (
    Cohort,
    FitResult,
    FitTask,
    Learner,
    Leg,
    Place,
    Round,
    Settings,
    handed_over,
    initial_model,
    train,
    train_all,
)
from fedforget.forgetting import Calibration, Guarantee, Rebuild, Recorded, assess, forget, method_named, prepare_work
from fedforget.learners.descent import Descent
from fedforget.learners.linear import Softmax
from fedforget.learners.mlp import MLP
from fedforget.params import Params
from fedforget.plan import Cell, Change, Member, Plan, Stage
from fedforget.seeds import generator

FEATURES, CLASSES = 3, 2
SOFTMAX = Softmax(FEATURES, CLASSES, Descent(lr=0.5, batch=4))
PERCEPTRON = MLP(FEATURES, CLASSES, hidden=2, descent=Descent(lr=0.5, batch=4))
NAMES = tuple(f"client-{seat * 7 % 11:02d}" for seat in range(11))  # in another order than their seats


@dataclass(frozen=True)
class Here:
    """The plainest cohort there is: each client asked in turn, none ever lost but those without examples."""

    learner: Learner
    examples: Mapping[str, Examples]

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for task in tasks:
            mine = self.examples.get(task.client)
            if mine is not None and len(mine):
                model = self.learner.fit(task.params, mine, epochs=task.epochs, seed=task.seed, solver=task.solver)
                yield FitResult(task.place, task.client, model, len(mine))


def examples_of(client: str, size: int, seed: int = 0, scale: float = 1.0) -> Examples:
    rng = generator(seed, "examples", client)
    x = (scale * rng.standard_normal((size, FEATURES))).astype(np.float32)
    return Examples(x, rng.integers(0, CLASSES, size))


Trace = dict[Place, tuple[object, ...]]


def trace(rounds: Iterable[Round]) -> Trace:
    """Every bit of every round that a result could hide in."""
    return {
        r.place: (r.start.digest, r.model.digest, tuple((u.client, u.params.digest, u.examples) for u in r.uploads))
        for r in rounds
    }


@dataclass(frozen=True)
class Federation:
    """A plan, everybody's examples, how they learn, and what was recorded so far."""

    plan: Plan
    examples: Mapping[str, Examples]
    settings: Settings = field(default_factory=Settings)
    learner: Learner = SOFTMAX
    past: Recorded = field(default_factory=lambda: Recorded({}))

    @staticmethod
    def of(
        clients: int, shards: int, rounds: int, *, participants: int | None = None, seed: int = 0, epochs: int = 2
    ) -> "Federation":
        """One stage, trained, clients "a", "b", … in that order of seats."""
        names = "abcdefghijklmnop"[:clients]
        plan = Plan.of(names, shards=shards, rounds=rounds, seed=seed, participants=participants)
        return Federation(plan, {c: examples_of(c, 5 + i % 3) for i, c in enumerate(names)}, Settings(epochs)).trained()

    @property
    def cohort(self) -> Here:
        return Here(self.learner, self.examples)

    @property
    def trace(self) -> Trace:
        return trace(self.past.by_place.values())

    def trained(self, cohort: Cohort | None = None) -> "Federation":
        """From nothing, every stage."""
        rounds = train_all(cohort or self.cohort, self.plan, self.learner, self.settings)
        return replace(self, past=Recorded.of(rounds))

    def train(self, stage: int, until: int) -> "Federation":
        """Go on from what is recorded, up to a round of a stage."""

        def begin(cell: Cell) -> Params:
            return handed_over(self.plan, cell, final, initial_model(self.learner, self.plan, cell[0]))

        def final(cell: Cell) -> Params:
            return self.past.final(cell) if self.past.rounds(cell) else begin(cell)

        living = [s for s in range(self.plan.shards) if self.plan.present(stage, s)]
        legs = {s: Leg(self.past.rounds((stage, s)), final((stage, s)), until) for s in living}
        return replace(self, past=self.past.after(train(self.cohort, self.plan, legs, self.settings, stage=stage)))

    def without(self, leavers: Iterable[str]) -> "Federation":
        """The world they never joined, untrained."""
        return replace(self, plan=self.plan.without(set(leavers)), past=Recorded({}))

    def with_examples(self, client: str, examples: Examples) -> "Federation":
        return replace(self, examples={**self.examples, client: examples})

    def work(self, method: str, *leavers: str) -> Rebuild:
        return prepare_work(method_named(method), self.plan, self.past, Change(frozenset(leavers)))

    def rebuilt(
        self, method: str, work: Rebuild, calibration: Calibration | None = None, cohort: Cohort | None = None
    ) -> tuple[Round, ...]:
        row = method_named(method)
        return tuple(forget(row, cohort or self.cohort, self.learner, work, self.settings, calibration))

    def forget(self, method: str, *leavers: str, calibration: Calibration | None = None) -> "Federation":
        work = self.work(method, *leavers)
        rounds = self.rebuilt(method, work, calibration)
        return replace(self, plan=work.after, past=self.past.after(rounds, work.emptied))

    def grade(self, method: str, *leavers: str, calibration: Calibration | None = None) -> Guarantee:
        work = self.work(method, *leavers)
        rounds = self.rebuilt(method, work, calibration)
        return assess(method_named(method), work, rounds, calibration)


@dataclass(frozen=True)
class Wish:
    """Somebody is to be forgotten once training has got as far as (stage, until)."""

    stage: int
    until: int
    method: str
    leavers: tuple[str, ...]
    calibration: Calibration = field(default_factory=Calibration)


@dataclass(frozen=True)
class Chapter:
    """A wish, the federation before it, what was done, the federation after."""

    wish: Wish
    before: Federation
    done: Wish
    after: Federation


def life(federation: Federation, wishes: Sequence[Wish]) -> Iterator[Chapter]:
    """Train on, forgetting on the way; where clean forgetting finds no lengths, by a constant one."""
    now = federation
    for wish in wishes:
        before = trained_until(now, wish.stage, wish.until)
        try:
            done, now = wish, before.forget(wish.method, *wish.leavers, calibration=wish.calibration)
        except NoReference:
            done = replace(wish, calibration=replace(wish.calibration, length=0.25))
            now = before.forget(wish.method, *wish.leavers, calibration=done.calibration)
        yield Chapter(wish, before, done, now)


def lived(federation: Federation, wishes: Sequence[Wish]) -> Federation:
    """What the life comes to."""
    return [chapter.after for chapter in life(federation, wishes)][-1]


def trained_until(federation: Federation, stage: int, until: int) -> Federation:
    now = federation
    for earlier in range(stage):
        now = now.train(earlier, now.plan.stages[earlier].rounds)
    return now.train(stage, until)


def finished(federation: Federation) -> Federation:
    """Trained to the end of its plan."""
    last = len(federation.plan.stages) - 1
    return trained_until(federation, last, federation.plan.stages[last].rounds)


def recorded(world: Federation, like: Federation) -> Trace:
    """The never-joined world, as far as the other has got."""
    far = {(t, s): like.past.rounds((t, s)) for t in range(len(like.plan.stages)) for s in range(like.plan.shards)}
    return {place: bits for place, bits in world.trained().trace.items() if place.round < far[place.cell]}


# --- how Hypothesis draws them ----------------------------------------------------------------------------

ANY_SHARDS, FEW_OR_MANY = st.integers(1, 4), st.integers(1, 9)


@st.composite
def plans(
    draw: st.DrawFn,
    max_stages: int = 3,
    shards: st.SearchStrategy[int] = ANY_SHARDS,
    clients: st.SearchStrategy[int] = FEW_OR_MANY,
) -> Plan:
    count = draw(shards)
    first = draw(clients)
    plan = Plan(
        seed=draw(st.integers(0, 1 << 20)),
        shards=count,
        members=tuple(Member(client, seat) for seat, client in enumerate(NAMES[:first])),
        stages=(Stage(draw(st.sampled_from([3, 4, 2, 1]))),),
        participants=draw(st.sampled_from([None, 1, 2, 3])),
        draw=draw(st.sampled_from(["round", "stage"])),
    )
    for _ in range(draw(st.integers(0, max_stages - 1))):
        seats = range(len(plan.members), min(len(NAMES), len(plan.members) + draw(st.integers(0, 2))))
        stage = Stage(draw(st.integers(1, 3)), draw(st.sampled_from(["lineage", "merged", "fresh"])))
        leave = draw(st.sets(st.sampled_from(plan.clients), max_size=2))
        plan = plan.next_stage(stage, join={NAMES[seat]: seat for seat in seats}, leave=leave)
    return plan


@st.composite
def federations(
    draw: st.DrawFn,
    max_stages: int = 3,
    shards: st.SearchStrategy[int] = ANY_SHARDS,
    clients: st.SearchStrategy[int] = FEW_OR_MANY,
) -> Federation:
    plan = draw(plans(max_stages, shards, clients))
    sizes = draw(st.lists(st.integers(1, 6), min_size=len(NAMES), max_size=len(NAMES)))
    examples = {client: examples_of(client, size) for client, size in zip(NAMES, sizes, strict=True)}
    settings = Settings(epochs=draw(st.integers(1, 2)), weighted=draw(st.booleans()))
    return Federation(plan, examples, settings, draw(st.sampled_from([SOFTMAX, PERCEPTRON])))


@st.composite
def batches_of_leavers(draw: st.DrawFn, plan: Plan, at_least: int = 1, at_most: int = 3) -> list[tuple[str, ...]]:
    """Disjoint, one after another; now and then a whole shard."""
    left = list(draw(st.permutations(plan.clients)))
    batches: list[tuple[str, ...]] = []
    for size in draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 3, "shard"]), min_size=at_least, max_size=at_most)):
        shard = plan.shard_of(left[0]) if left else 0
        batch = [c for c in left if plan.shard_of(c) == shard] if size == "shard" else left[:size]
        left = [c for c in left if c not in batch]
        if batch:
            batches.append(tuple(batch))
    return batches


calibrations = st.builds(
    Calibration,
    ratio=st.sampled_from([1.0, 2.0]),
    interval=st.sampled_from([1, 1, 1, 2]),
    compat=st.sampled_from(["paper", "paper", "released"]),
)


@st.composite
def wishes(draw: st.DrawFn, plan: Plan, methods: Sequence[str], at_least: int = 1) -> list[Wish]:
    """In the order of time, oftener late than early: the more is recorded, the more there is to forget."""
    ends = [(stage, opened.rounds) for stage, opened in enumerate(plan.stages)]
    moments = [(stage, until) for stage, rounds in ends for until in range(1, rounds + 1)]
    batches = draw(batches_of_leavers(plan, at_least, 4))
    times = sorted(draw(st.sampled_from([ends[-1]] * len(moments) + moments)) for _ in batches)
    return [
        Wish(stage, until, draw(st.sampled_from(list(methods))), batch, draw(calibrations))
        for (stage, until), batch in zip(times, batches, strict=True)
    ]
