"""The paper's cost of K requests, the right sums beside it, and real plans that say which holds."""

from collections.abc import Mapping
from typing import Any, get_args

from ..evaluation.simulation import simulate
from ..evaluation.theory import Pattern, Timing, concurrent_time, curves, expected_cost, sequential_time
from ..plan import Draw
from .pictures import figure_of
from .recipe import Recipe
from .sheet import Sheet

PATTERNS: tuple[Pattern, ...] = ("even", "adapt", "random")


def compute(recipe: Recipe, seed: int) -> dict[str, Any]:
    """K against cost in shard trainings, by formula and by drawing."""
    v = recipe.values
    requests, trials = [int(k) for k in v["requests"]], int(v["trials"])
    clients, shards, each, rounds = (int(v[n]) for n in ("clients", "shards", "participants", "rounds"))
    draw: Draw = v.get("draw", "round")
    rows = []
    for timing in get_args(Timing):
        for pattern in PATTERNS:
            for k in requests:
                sizes = [clients // shards] * shards
                right = expected_cost(k, sizes, each, rounds, timing=timing, pattern=pattern, draw=draw)
                seen = simulate(
                    k,
                    clients,
                    shards,
                    each,
                    rounds,
                    timing=timing,
                    pattern=pattern,
                    draw=draw,
                    trials=trials,
                    seed=seed,
                )
                paper = sequential_time(k) if timing == "sequential" else concurrent_time(k, shards)
                rows.append(
                    {
                        "timing": timing,
                        "pattern": pattern,
                        "requests": k,
                        "paper": paper,
                        "right": right,
                        "simulated": seen.mean,
                        "error": seen.error,
                    }
                )
    everybody = curves(requests, [clients // shards] * shards, clients // shards, rounds, draw)
    whole = [{"timing": c.timing, "pattern": c.pattern, "cost": list(c.corrected)} for c in everybody]
    return {"rows": rows, "when_all_take_part": whole, "requests": requests}


def sheets(result: Mapping[str, Any]) -> tuple[Sheet, ...]:
    rows = []
    worst = 0.0
    for row in result["rows"]:
        off = abs(row["simulated"] - row["right"]) / row["error"] if row["error"] else 0.0
        worst = max(worst, off)
        rows.append(
            (
                row["timing"],
                row["pattern"],
                str(row["requests"]),
                f"{row['right']:.3f}",
                f"{row['simulated']:.3f} ± {1.96 * row['error']:.3f}",
                f"{row['paper']:.3f}",
                f"{row['right'] / row['paper']:.2f}",
            )
        )
    head = ("timing", "pattern", "K", "ours", "simulated", "the paper's", "ratio")
    note = (
        "Cost in trainings of one shard. *ours*: the corrected sum; *simulated*: real plans and `Plan.affected`, "
        f"95 % intervals (the farthest is {worst:.1f} standard errors off); *ratio*: ours over the paper's."
    )
    return (Sheet("K requests: cost", head, tuple(rows), head[2:], (note,)),)


def figures(result: Mapping[str, Any], stamp: str) -> dict[str, Any]:
    from ..plots import Line, Panel

    panels = []
    for timing in get_args(Timing):
        lines = []
        mine = [r for r in result["rows"] if r["timing"] == timing]
        ks = result["requests"]
        lines.append(Line("the paper's formula", ks, [r["paper"] for r in mine[: len(ks)]], 0))
        for style, pattern in enumerate(PATTERNS, 1):
            these = [r for r in mine if r["pattern"] == pattern]
            lines.append(Line(f"{pattern}, corrected sum", ks, [r["right"] for r in these], style))
            low, high = ([r["simulated"] + side * 1.96 * r["error"] for r in these] for side in (-1, 1))
            seen = [r["simulated"] for r in these]
            lines.append(Line(f"{pattern}, simulated", ks, seen, style, low, high, points=True))
        title = "one after another" if timing == "sequential" else "in one batch"
        panels.append(Panel(title, "requests K", "shard trainings", lines))
    return {"theory": figure_of([panels], stamp, height=3.0)}
