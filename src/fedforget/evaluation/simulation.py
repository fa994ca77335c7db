"""The sums of `theory`, checked by drawing: real plans, real requests, and what `Plan.affected` says they taint."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SettingError
from ..plan import Change, Draw, Plan
from ..seeds import derive, generator
from .theory import Pattern, Timing, spread


@dataclass(frozen=True)
class Simulated:
    """A mean over trials and its standard error, in C̄."""

    mean: float
    error: float
    trials: int


def simulate(
    requests: int,
    clients: int,
    shards: int,
    participants: int,
    rounds: int,
    *,
    timing: Timing,
    pattern: Pattern = "random",
    draw: Draw = "round",
    trials: int = 200,
    seed: int = 0,
) -> Simulated:
    """Each trial has a plan of its own seed and leavers drawn from it; shards have equal sizes (S divides C)."""
    if clients % shards:
        raise SettingError("clients", clients, f"a multiple of the shards, {shards}, so that all are of one size")
    if trials < 2:
        raise SettingError("trials", trials, "2 or more, for an error to be estimated")
    names = [f"client-{i:04d}" for i in range(clients)]
    costs = []
    for trial in range(trials):
        plan = Plan.of(
            names,
            shards=shards,
            rounds=rounds,
            seed=derive(seed, "simulation", trial),
            participants=participants,
            draw=draw,
        )
        leavers = pick(plan, requests, pattern, derive(seed, "leavers", trial))
        costs.append(concurrent_rounds(plan, leavers) if timing == "concurrent" else sequential_rounds(plan, leavers))
    shares = np.array(costs) / rounds
    return Simulated(float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(trials)), trials)


def pick(plan: Plan, requests: int, pattern: Pattern, seed: int) -> tuple[str, ...]:
    """Who asks to be forgotten, in the order of asking."""
    random = generator(seed, "pick")
    everybody = plan.clients
    if pattern == "random":
        return tuple(everybody[i] for i in random.permutation(len(everybody))[:requests])
    rows = [plan.present(0, shard) for shard in range(plan.shards)]
    chosen: list[str] = []
    for row, count in zip(rows, spread(requests, [len(row) for row in rows], pattern), strict=True):
        chosen += [row[i] for i in random.permutation(len(row))[:count]]
    return tuple(chosen[i] for i in random.permutation(len(chosen)))


def concurrent_rounds(plan: Plan, leavers: Sequence[str]) -> int:
    """Shard-rounds trained again when all leave at once."""
    after = plan.without(leavers)
    taints = plan.affected(Change(frozenset(leavers)))
    return sum(plan.stages[t].rounds - taint.round for (t, s), taint in taints.items() if after.present(t, s))


def sequential_rounds(plan: Plan, leavers: Sequence[str]) -> int:
    """Shard-rounds trained again when they leave one after another, each from the plan the others have left."""
    total = 0
    for leaver in leavers:
        total += concurrent_rounds(plan, [leaver])
        plan = plan.without([leaver])
    return total
