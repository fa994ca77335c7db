"""Worlds: the same training as it was, as it would have been without some clients, and after forgetting them.

One *trial* is a training of the federation under randomness of its own; all its worlds share that randomness, so
what differs between them is who took part and how they were forgotten, and nothing else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..federation import Cohort, Cost, Learner, Leg, Round, Settings, handed_over, initial_model, train, train_all
from ..forgetting import METHODS, Calibration, Recorded, forget, prepare_work
from ..params import Params
from ..plan import Cell, Change, Plan
from .references import ReseededCohort, ReseededLearner

Models = Mapping[int, Params]  # by shard: what is served


@dataclass(frozen=True)
class Scene:
    """A federation that can be trained again: everybody in the plan, those to be forgotten among them."""

    cohort: Cohort
    learner: Learner
    plan: Plan
    settings: Settings

    def reseeded(self, salt: int | None) -> "Scene":
        """The same federation under randomness of its own; None leaves the plan's."""
        if salt is None:
            return self
        return replace(self, cohort=ReseededCohort(self.cohort, salt), learner=ReseededLearner(self.learner, salt))


@dataclass(frozen=True)
class Forgot:
    """What forgetting made: the served models, and what they cost."""

    models: Models
    cost: Cost


@dataclass(frozen=True)
class Trial:
    """One training, ready to be asked for its other worlds."""

    scene: Scene
    past: Recorded
    finals: Mapping[Cell, Params]
    cost: Cost

    @property
    def everybody(self) -> Models:
        return _served(self.scene.plan, self.finals)

    def without(self, clients: Collection[str]) -> Forgot:
        """The world `clients` never joined: each shard they touched trained whole, from its first round.

        Not by way of a checkpoint, so that exact forgetting has something to be held against.
        """
        scene, after = self.scene, self.scene.plan.without(clients)
        touched = scene.plan.affected(Change(frozenset(clients)))
        finals = {cell: model for cell, model in self.finals.items() if cell not in touched}
        cost = Cost()
        for stage in range(len(after.stages)):
            initial = initial_model(scene.learner, after, stage)
            rounds = after.stages[stage].rounds
            cells = [(stage, s) for s in range(after.shards) if (stage, s) in touched]
            begins = {cell: handed_over(after, cell, finals.__getitem__, initial) for cell in cells}
            finals.update(begins)
            legs = {cell[1]: Leg(0, model, rounds) for cell, model in begins.items() if after.present(*cell)}
            for round in train(scene.cohort, after, legs, scene.settings, stage=stage):
                finals[round.place.cell] = round.model
                cost += round.cost
        return Forgot(_served(after, finals), cost)

    def after(self, method: str, clients: Collection[str], calibration: Calibration | None = None) -> Forgot:
        """This training after forgetting `clients` all at once by one of `METHODS`."""
        scene, row = self.scene, METHODS[method]
        work = prepare_work(row, scene.plan, self.past, Change(frozenset(clients)))
        finals = {cell: model for cell, model in self.finals.items() if cell not in work.taints}
        cost = Cost()
        for round in forget(row, scene.cohort, scene.learner, work, scene.settings, calibration):
            finals[round.place.cell] = round.model
            cost += round.cost
        for cell in work.emptied:
            initial = initial_model(scene.learner, work.after, cell[0])
            finals[cell] = handed_over(work.after, cell, finals.__getitem__, initial)
        return Forgot(_served(work.after, finals), cost)


def trial(scene: Scene, *, keep_uploads: bool = True) -> Trial:
    """Train the scene. Without its uploads a trial is small, but only exact forgetting can be asked of it."""
    rounds: list[Round] = []
    cost = Cost()
    for round in train_all(scene.cohort, scene.plan, scene.learner, scene.settings):
        rounds.append(round if keep_uploads else replace(round, uploads=()))
        cost += round.cost
    past = Recorded.of(rounds)
    finals: dict[Cell, Params] = {}
    for cell in _cells(scene.plan):
        initial = initial_model(scene.learner, scene.plan, cell[0])
        trained = past.rounds(cell)
        finals[cell] = past.final(cell) if trained else handed_over(scene.plan, cell, finals.__getitem__, initial)
    return Trial(scene, past, finals, cost)


def _cells(plan: Plan) -> Iterator[Cell]:
    return ((stage, shard) for stage in range(len(plan.stages)) for shard in range(plan.shards))


def _served(plan: Plan, finals: Mapping[Cell, Params]) -> Models:
    last = len(plan.stages) - 1
    return {shard: finals[last, shard] for shard in plan.living_shards(last)}


def differing(one: Models, other: Models) -> tuple[int, ...]:
    """The shards whose served models are not the same bits in both."""
    return tuple(sorted(s for s in {*one, *other} if one.get(s) != other.get(s)))


def mates(plan: Plan, clients: Collection[str], each: int | None = None) -> tuple[str, ...]:
    """For each client somebody of its shard who stays, as far as there are any: what forgetting must not touch.

    One fewer than stay, for the world without them must leave somebody to train in the shard.
    """
    last = len(plan.stages) - 1
    found: list[str] = []
    for shard in range(plan.shards):
        present = plan.present(last, shard)
        leaving = [c for c in clients if plan.shard_of(c) == shard]
        staying = [c for c in present if c not in clients]
        found += staying[: min(len(leaving) if each is None else each, max(0, len(staying) - 1))] if leaving else []
    return tuple(sorted(found))


def together(groups: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Everybody in any of the groups, by name."""
    return tuple(sorted({c for group in groups for c in group}))
