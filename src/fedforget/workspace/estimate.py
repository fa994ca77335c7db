"""Estimate: how long a forget will take, by what the rounds in force took when they were made.

The clients' work goes by the epoch and by the examples of whoever is to train. The wall clock adds what keeping cost a
round where clients train one after another, and where they train at once what is lost when the last of a round train
alone: five clients on two workers take as long as six.
"""

import math
from collections import Counter
from collections.abc import Iterable
from statistics import fmean, median

from ..federation import Place
from ..forgetting import Rebuild
from ..manifest import RoundRow
from .state import State


def estimate_seconds(state: State, work: Rebuild, client_epochs: int) -> tuple[float | None, float | None]:
    """Of the clients' work, one after another; and on the wall clock, the switch at the end left out."""
    rows = [row for row in state.rows.values() if row.cost.client_epochs and row.cost.seconds]
    if not rows:
        return None, None
    places = [Place(*cell, r) for cell, t in work.taints.items() for r in range(t.round, work.past.rounds(cell))]
    places = [place for place in places if work.after.present(*place.cell)]
    heavier = _examples(rows, (c for p in places for c in work.after.cohort(*p)))
    seconds = client_epochs * median(row.cost.seconds / row.cost.client_epochs for row in rows) * heavier
    timed = [row for row in rows if row.cost.wall]
    return seconds, _wall(timed, work, places, seconds) if timed else None


def _examples(rows: Iterable[RoundRow], clients: Iterable[str]) -> float:
    """How many examples they have on average, of those who trained so far."""
    known = {c: n for row in rows for c, n in zip(row.roster, row.examples, strict=True)}
    usual = fmean(n for row in rows for n in row.examples)
    return fmean([known.get(c, usual) for c in clients] or [usual]) / usual


def _wall(timed: list[RoundRow], work: Rebuild, places: list[Place], seconds: float) -> float:
    together = fmean(row.cost.wall / row.cost.seconds for row in timed)
    if together >= 1:  # one after another, and keeping comes on top
        return seconds + _keeping(timed, places)
    workers = max(1, round(1 / together))
    before = _alone(_tasks([(row.place, row.roster) for row in timed]), workers)
    after = _alone(_tasks([(place, work.after.cohort(*place)) for place in places]), workers)
    return seconds * median(row.cost.wall / row.cost.seconds for row in timed) * after / before


def _keeping(timed: list[RoundRow], places: list[Place]) -> float:
    """One wait for the disk a round of all shards, as much again for each shard, half as much to delete the old."""
    shards = Counter(_when(row.place) for row in timed)
    share = {when: n / (1 + n) for when, n in shards.items()}
    unit = median((row.cost.wall - row.cost.seconds) * share[_when(row.place)] for row in timed)
    return 1.5 * unit * sum(1 + n for n in Counter(map(_when, places)).values())


def _when(place: Place) -> tuple[int, int]:
    return place.stage, place.round


def _tasks(rounds: Iterable[tuple[Place, tuple[str, ...]]]) -> list[int]:
    """How many train at once, round by round over all shards."""
    found: Counter[tuple[int, int]] = Counter()
    for place, roster in rounds:
        found[_when(place)] += len(roster)
    return [count for count in found.values() if count]


def _alone(tasks: list[int], workers: int) -> float:
    """By how much it takes longer than if no worker ever waited."""
    return sum(math.ceil(n / workers) * workers for n in tasks) / sum(tasks) if tasks else 1.0
