"""Run: a training or a forgetting, step by step on its track."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from ..federation import Cohort, Leg, Round, initial_model, train
from ..forgetting import Calibration, Guarantee, Rebuild, assess, forget, method_named, prepare_work
from ..params import Params
from ..plan import Change
from ..workspace.progress import by_index
from .case import Case, Request
from .measure import Asker, Questions
from .track import Row, Step, Timing, Track, TrackPast, cost_of
from .world import World

Tell = Callable[[int], None]  # client-epochs done


@dataclass(frozen=True)
class Finished:
    """A cell's deterministic result, and what was measured beside it."""

    result: Mapping[str, Any]
    timing: Timing


def run_training(world: World, case: Case, folder: Path, tell: Tell) -> tuple[Track, Finished]:
    """Train to the end, from wherever the track has got to."""
    plan, learner = world.plan, world.learner
    start = initial_model(learner, plan, 0)
    track = Track(folder, start.layout, full=True)
    steps = list(track.steps())
    for step in steps:
        tell(_epochs(step))
    rounds = plan.stages[0].rounds
    if len(steps) < rounds:
        models = {s: track.model(len(steps) - 1, s) if steps else start for s in range(plan.shards)}
        legs = {s: Leg(len(steps), model, rounds) for s, model in models.items()}
        each = by_index(train(world.cohort, plan, legs, world.settings), lambda *_: plan.shards)
        for group, timing in timed(each, world.cohort):
            new = frozenset(r.place for r in group if plan.newcomers(*r.place))
            step = Step(group[0].place.round, tuple(Row.of(r) for r in group), timing, {})
            track.save(step, group, new)
            steps.append(step)
            tell(_epochs(step))
    models = {s: track.model(rounds - 1, s) for s in range(plan.shards)}
    scores = Asker(learner, Questions.of(world, case.probe, plan.clients[:1])).scores(models)
    kept = ("test_accuracy", "test_loss")
    result = {
        "rounds": rounds * plan.shards,
        "client_epochs": sum(_epochs(s) for s in steps),
        "digests": _digests(models),
        "scores": {way: {name: row[name] for name in kept} for way, row in scores.items()},
    }
    return track, Finished(result, reduce(Timing.__add__, (s.timing for s in steps)))


def asker_for(world: World, case: Case, past: TrackPast) -> Asker:
    """Who asks about the leavers; one for all methods, for they start from the same model."""
    assert case.request is not None
    leavers = case.request.leavers(world.federation, world.names)
    asker = Asker(world.learner, Questions.of(world, case.probe, leavers))
    asker.learn(originals(world, past))
    return asker


def originals(world: World, past: TrackPast) -> dict[int, Params]:
    return {s: past.final((0, s)) for s in range(world.plan.shards)}


def run_request(world: World, case: Case, past: TrackPast, asker: Asker, folder: Path, tell: Tell) -> Finished:
    """Make the leavers forgotten, from wherever the track has got to."""
    assert case.request is not None
    request, plan, original = case.request, world.plan, originals(world, past)
    leavers = request.leavers(world.federation, world.names)
    method = method_named(request.method)
    work = prepare_work(method, plan, past, Change(frozenset(leavers)))
    track = Track(folder, past.track.layout)
    steps = list(track.steps())
    for step in steps:
        tell(_epochs(step))
    living = work.after.living_shards(0)
    models = {s: original[s] for s in living} | _newest(track, steps)
    for group, timing in timed(_rebuilding(world, request, resumed(work, track, steps)), world.cohort):
        models |= {r.place.shard: r.model for r in group}
        step = Step(group[0].place.round, tuple(Row.of(r) for r in group), timing, asker.mark(models))
        track.save(step, group)
        steps.append(step)
        tell(_epochs(step))
    rows = [row for step in steps for row in step.rows]
    result = {
        "leavers": list(leavers),
        "guarantee": _guarantee(assess(method, work, rows, Calibration(request.ratio))),
        "touched": sorted(shard for _, shard in work.taints),
        "from_round": min((t.round for t in work.taints.values()), default=0),
        "rounds": len(rows),
        "client_epochs": sum(r.client_epochs for r in rows),
        "digests": _digests(models),
        "before": asker.scores({s: original[s] for s in living}),
        "after": asker.scores(models),
        "shards": {str(s): _shard(asker, original[s], models[s]) for _, s in sorted(work.taints) if s in models},
        "curve": _curve(steps),
    }
    return Finished(result, reduce(Timing.__add__, (s.timing for s in steps), Timing()))


def resumed(work: Rebuild, track: Track, steps: list[Step]) -> Rebuild:
    """The rebuild with what the track already has of it."""
    if not steps:
        return work
    following = steps[-1].index + 1
    begun = {(0, s): (following, model) for s, model in _newest(track, steps).items()}
    return Rebuild(work.before, work.after, work.change, work.past, work.taints, begun)


def _rebuilding(world: World, request: Request, work: Rebuild) -> Iterator[tuple[Round, ...]]:
    def expected(stage: int, index: int) -> int:
        legs = [c for c, t in work.taints.items() if c[0] == stage and t.round <= index and work.after.present(*c)]
        return len(legs)

    method = method_named(request.method)
    rounds = forget(method, world.cohort, world.learner, work, world.settings, Calibration(request.ratio))
    return by_index(rounds, expected)


def _newest(track: Track, steps: list[Step]) -> dict[int, Params]:
    newest: dict[int, int] = {row.place.shard: step.index for step in steps for row in step.rows}
    return {shard: track.model(index, shard) for shard, index in newest.items()}


def timed(groups: Iterator[tuple[Round, ...]], cohort: Cohort) -> Iterator[tuple[tuple[Round, ...], Timing]]:
    """Each step with what it took, measuring and keeping left out."""
    while True:
        began, spent = time.perf_counter(), cpu_seconds(cohort)
        group = next(groups, None)
        wall, after = time.perf_counter() - began, cpu_seconds(cohort)
        if group is None:
            return
        cost = cost_of(group)
        cpu = _between(spent, after)
        yield group, Timing(wall, cost.seconds, cost.slowest, cpu)


def _between(spent: Mapping[int, float] | None, after: Mapping[int, float] | None) -> float | None:
    """None where it is not known, or a worker was started again in between."""
    if spent is None or after is None or spent.keys() != after.keys():
        return None
    return sum(after.values()) - sum(spent.values())


def cpu_seconds(cohort: Cohort) -> dict[int, float] | None:
    """Processor time of each worker process: what a busy machine disturbs least. None where there is none to tell."""
    pids = getattr(cohort, "pids", None)
    if pids is None:  # in this process, whose time is the server's too
        return None
    try:
        ticks = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids}
        return {p: (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") for p, (user, system) in ticks.items()}
    except (OSError, ValueError):  # no Linux, or a worker that just ended
        return None


def _epochs(step: Step) -> int:
    return sum(row.client_epochs for row in step.rows)


def _curve(steps: list[Step]) -> list[dict[str, Any]]:
    done, found = 0, []
    for step in steps:
        done += _epochs(step)
        found.append({"round": step.index, "client_epochs": done, **step.mark})
    return found


def _digests(models: Mapping[int, Params]) -> dict[str, str]:
    return {str(s): models[s].digest for s in sorted(models)}


def _shard(asker: Asker, before: Params, after: Params) -> dict[str, Any]:
    """A touched shard's own model: what the others would hide in what is served."""
    return {"before": asker.alone(before), "after": asker.alone(after)}


def _guarantee(guarantee: Guarantee) -> dict[str, Any]:
    return {"grade": guarantee.grade, "reason": guarantee.reason}
