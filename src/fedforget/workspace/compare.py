"""Compare: how far a model that forgot is from the one retrained without the leavers, by what is quickly measured.

Distance in parameters and predictions, accuracy, relearn time and, where asked for, a backdoor planted at the leavers.
As `audit`, of the models a workspace serves, or of what forgetting named clients would come to; all in memory.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import NoReference, SettingError
from ..evaluation.backdoor import Trigger, plant, success
from ..evaluation.combination import combine
from ..evaluation.distance import parameter_distance, prediction_distance
from ..evaluation.quality import accuracy, loss
from ..evaluation.relearn import Goal, epochs_until
from ..evaluation.worlds import Forgot, Models, Scene, Trial, differing, trial
from ..examples import Examples
from ..federation import Cohort, Cost
from ..forgetting import METHODS, Calibration
from ..params import Params
from ..seeds import derive
from .audit import BEFORE, SERVED, SIMULATED, Docket, docket
from .progress import Progress

if TYPE_CHECKING:
    from .workspace import Workspace

NEVER, AGAIN = "never joined", "another seed"


@dataclass(frozen=True)
class Row:
    """One world beside the one the leavers never joined. Of the leavers' shards, means where they are several."""

    world: str
    identical: bool
    relative: float  # ‖w − w*‖ / ‖w*‖
    agreement: float  # the ensemble's, on test examples
    divergence: float  # Jensen–Shannon, nats
    test_accuracy: float
    forgotten_accuracy: float
    retained_accuracy: float | None
    relearn: float | None  # epochs until the forgotten data is fitted as before; None: not tried, or not within limit
    client_epochs: int | None


@dataclass(frozen=True)
class BackdoorRow:
    """How often the trigger works on test examples of other classes."""

    world: str
    shard: float
    served: float


@dataclass(frozen=True)
class CompareReport:
    path: str
    task: str
    forgotten: tuple[str, ...]
    retained: tuple[str, ...]
    served: bool
    relearn_limit: int
    rows: tuple[Row, ...]
    backdoor: tuple[BackdoorRow, ...]
    notes: tuple[str, ...]
    seconds: float

    def row(self, world: str) -> Row:
        for row in self.rows:
            if row.world == world:
                return row
        raise SettingError("world", world, "one of " + ", ".join(r.world for r in self.rows))


@dataclass(frozen=True)
class World:
    models: Models
    cost: Cost | None = None


def compare_report(
    space: "Workspace",
    clients: Collection[str] = (),
    methods: Sequence[str] = (),
    *,
    calibration: Calibration | None = None,
    relearn: int = 20,
    backdoor: bool = False,
    seed: int = 0,
    progress: Progress,
) -> CompareReport:
    """Every world against the one the leavers never joined, of the same randomness."""
    began = time.perf_counter()
    if relearn < 0:
        raise SettingError("relearn", relearn, "0 (leave it out) or more epochs")
    found = docket(space, clients, methods)
    if backdoor and space.task.dataset.kind != "image":
        raise SettingError("backdoor", space.settings.task, "a task of pictures: a trigger is a square of pixels")
    notes: list[str] = []
    steps = 3 if backdoor else 2
    progress("comparing", 0, steps)
    training = _train(found, found.scene, found.methods)
    worlds = _worlds(found, training, found.methods, calibration, notes)
    if found.served is not None:
        worlds[SERVED] = World(found.served)
    progress("comparing", 1, steps)
    other = trial(found.scene.reseeded(derive(seed, "compare")), keep_uploads=False)
    worlds[AGAIN] = World(other.without(found.cases[0].leavers).models)
    rows = tuple(_row(space, found, name, worlds, relearn) for name in worlds)
    progress("comparing", 2, steps)
    planted = tuple(_backdoor(space, found, calibration, seed)) if backdoor else ()
    progress("comparing", steps, steps)
    return CompareReport(
        str(space.path),
        space.settings.task,
        found.cases[0].leavers,
        found.cases[0].mates,
        found.served is not None,
        relearn,
        rows,
        planted,
        tuple(notes),
        time.perf_counter() - began,
    )


def _train(found: Docket, scene: Scene, methods: Sequence[str]) -> Trial:
    return trial(scene, keep_uploads=any(METHODS[m].algorithm in ("calibrate", "clean") for m in methods))


def _worlds(
    found: Docket, training: Trial, methods: Sequence[str], calibration: Calibration | None, notes: list[str]
) -> dict[str, World]:
    leavers = found.cases[0].leavers
    worlds = {BEFORE: World(training.everybody, training.cost)}
    never: Forgot = training.without(leavers)
    worlds[NEVER] = World(never.models, never.cost)
    for name in methods:
        try:
            forgot = training.after(name, leavers, calibration)
        except NoReference as fault:
            if found.given:
                raise
            notes.append(f"{name} is left out: {fault}")
        else:
            worlds[name] = World(forgot.models, forgot.cost)
    return worlds


def _row(space: "Workspace", found: Docket, name: str, worlds: Mapping[str, World], limit: int) -> Row:
    learner, data, test = space.learner, space.task.examples, space.task.test
    (case,) = found.cases
    world, never = worlds[name], worlds[NEVER].models
    shards = _shards(found, world.models, never)
    forgotten = Examples.join([data[c] for c in case.leavers])
    retained = Examples.join([data[c] for c in case.mates]) if case.mates else None

    def served(models: Models, x: NDArray[Any]) -> NDArray[Any]:
        return combine("ensemble", learner, [models[s] for s in sorted(models)], x)

    said = served(world.models, test.x)
    apart = prediction_distance(said, served(never, test.x))
    return Row(
        name,
        not differing(world.models, never),
        float(np.mean([parameter_distance(world.models[s], never[s]).relative for s in shards])),
        apart.agreement,
        apart.js,
        accuracy(said, test.y),
        accuracy(served(world.models, forgotten.x), forgotten.y),
        None if retained is None else accuracy(served(world.models, retained.x), retained.y),
        _relearn(space, found, world.models, worlds[BEFORE].models, shards, limit),
        None if world.cost is None else world.cost.client_epochs,
    )


def _shards(found: Docket, one: Models, other: Models) -> list[int]:
    """The leavers' shards, as far as both worlds still have them."""
    shards = {found.scene.plan.shard_of(c) for c in found.cases[0].leavers} & set(one) & set(other)
    if not shards:
        leavers = ", ".join(found.cases[0].leavers)
        raise SettingError("client", leavers, "such that somebody is left in a shard of theirs")
    return sorted(shards)


def _relearn(
    space: "Workspace", found: Docket, models: Models, before: Models, shards: Sequence[int], limit: int
) -> float | None:
    """Epochs on the forgotten data until it is fitted as well as before it was forgotten, mean over the shards."""
    if not limit:
        return None
    taken: list[int] = []
    for shard in shards:
        mine = [c for c in found.cases[0].leavers if found.scene.plan.shard_of(c) == shard]
        examples = Examples.join([space.task.examples[c] for c in mine])
        goal = Goal(loss=loss(space.learner.predict(before[shard], examples.x), examples.y))
        epochs = epochs_until(space.learner, models[shard], examples, goal, limit=limit)
        if epochs is None:
            return None
        taken.append(epochs)
    return float(np.mean(taken))


def _backdoor(space: "Workspace", found: Docket, calibration: Calibration | None, seed: int) -> Iterator[BackdoorRow]:
    """The same federation with a trigger at the leavers, and what is left of it in each world."""
    data = space.task.examples
    trigger = Trigger(target=0, value=float(max(np.max(e.x) for e in data.values() if len(e))))
    leavers = found.cases[0].leavers
    marked = {c: plant(trigger, data[c], seed=derive(seed, "plant", c)) for c in leavers}
    methods = found.methods or SIMULATED
    with _cohort(space, {**data, **marked}) as cohort:
        scene = replace(found.scene, cohort=cohort)
        worlds = _worlds(replace(found, given=False), _train(found, scene, methods), methods, calibration, [])
    for name, world in worlds.items():
        shards = _shards(found, world.models, worlds[NEVER].models)
        own = [_obeys(space, trigger, [world.models[s]]) for s in shards]
        all_shards = _obeys(space, trigger, [world.models[s] for s in sorted(world.models)])
        yield BackdoorRow(name, float(np.mean(own)), all_shards)


def _obeys(space: "Workspace", trigger: Trigger, models: Sequence[Params]) -> float:
    return success(trigger, lambda x: combine("ensemble", space.learner, models, x), space.task.test)


@contextmanager
def _cohort(space: "Workspace", data: Mapping[str, Examples]) -> Iterator[Cohort]:
    """An engine over other data, ended afterwards."""
    cohort = space.make_cohort(replace(space.task, examples=data), space.settings, space.workers)
    try:
        yield cohort
    finally:
        stop = getattr(cohort, "close", None)
        if stop is not None:
            stop()
