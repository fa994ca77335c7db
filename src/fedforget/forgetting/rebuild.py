"""Rebuild: march a recipe over what a change taints, stage after stage, and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..federation import Cohort, Learner, Leg, Place, Recipe, Round, handed_over, initial_model, march
from ..params import Params
from ..plan import Cell, Change, Plan, Taint
from .past import Past, cells, first_where, influences


@dataclass(frozen=True)
class Rebuild:
    """What is to be made again: the plan without the leavers, and from which round in which cell."""

    before: Plan
    after: Plan
    change: Change
    past: Past
    taints: Mapping[Cell, Taint]
    # Where an interrupted rebuild had got to: cell → (next round, model).
    done: Mapping[Cell, tuple[int, Params]] = field(default_factory=dict)

    @property
    def emptied(self) -> tuple[Cell, ...]:
        """Tainted cells that nobody is left in: their rounds go, none comes."""
        return tuple(c for c in self.taints if not self.after.present(*c))


def touched(plan: Plan, past: Past, change: Change) -> dict[Cell, Taint]:
    """The recorded part of what the change taints."""
    taints = plan.affected(change, influences(plan, past))
    return {c: t for c, t in taints.items() if t.round < past.rounds(c)}


def touched_back_to_plain(plan: Plan, past: Past, change: Change) -> dict[Cell, Taint]:
    """As `touched`, but back to before any round in these lineages that plain training did not make.

    Whoever restarts from inside a calibrated stretch keeps its calibration; from before it, nothing.
    """
    also: dict[Cell, int] = {}
    while True:
        taints = plan.affected(change, influences(plan, past), also)
        odd: dict[Cell, int] = {}
        for cell in with_ancestors(plan, taints):
            first = first_where(past, cell, lambda kind: kind != "plain")
            if first is not None:
                odd[cell] = first
        if odd == also:
            return {c: t for c, t in taints.items() if t.round < past.rounds(c)}
        also = odd


def from_scratch(plan: Plan, past: Past) -> dict[Cell, Taint]:
    """Everything there is."""
    return {cell: Taint(0) for cell in cells(plan, past)}


def with_ancestors(plan: Plan, descendants: Iterable[Cell]) -> set[Cell]:
    """The cells, and all those whose models went into theirs by hand-over."""
    found: set[Cell] = set()
    frontier = set(descendants)
    while frontier:
        found |= frontier
        frontier = {p for cell in frontier for p in plan.predecessors(cell)} - found
    return found


def lineage(plan: Plan, past: Past, descendants: Iterable[Cell]) -> tuple[Place, ...]:
    """Every recorded round that went into the cells' models."""
    return tuple(Place(*c, r) for c in sorted(with_ancestors(plan, descendants)) for r in range(past.rounds(c)))


def run(cohort: Cohort, learner: Learner, work: Rebuild, recipe: Recipe) -> Iterator[Round]:
    """The rounds of the next generation; `finals` of rebuilt cells feed the stages after them."""
    finals: dict[Cell, Params] = {}

    def final(cell: Cell) -> Params:
        if cell not in finals:
            finals[cell] = work.past.final(cell) if work.past.rounds(cell) else begin(cell)
        return finals[cell]

    def begin(cell: Cell) -> Params:
        return handed_over(work.after, cell, final, initial_model(learner, work.after, cell[0]))

    for stage in range(len(work.after.stages)):
        legs: dict[int, Leg] = {}
        for cell, taint in sorted(work.taints.items()):
            if cell[0] != stage:
                continue
            if cell in work.done:
                first, model = work.done[cell]
            else:
                first = taint.round
                model = begin(cell) if first == 0 else work.past.checkpoint(Place(*cell, first))
            finals[cell] = model
            if work.after.present(*cell):
                legs[cell[1]] = Leg(first, model, work.past.rounds(cell))
        for round in march(cohort, stage, legs, recipe):
            finals[round.place.cell] = round.model
            yield round
