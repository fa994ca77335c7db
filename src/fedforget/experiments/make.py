"""Make: the cells of a recipe that are not there yet, each training shared by all that start from it."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from ..forgetting import METHODS
from ..workspace.progress import Progress
from .case import Case, Federation
from .cells import Cell, Cells, measured
from .measure import Asker
from .run import Finished, asker_for, run_request, run_training
from .track import TrackPast
from .world import World, lab, opened


@dataclass(frozen=True)
class Made:
    """The cells in the order of the cases, and how many of them were made now."""

    cells: tuple[Cell, ...]
    made: int


@dataclass(frozen=True)
class Bench:
    """Where things are while cells are made. `room`: tracks, thrown away once their cells are done."""

    cells: Cells
    room: Path
    data: Path | None = None
    workers: int | None = None


@dataclass
class Ticker:
    """Work done so far: of finished cells their price, and of the one under way what it told, up to its own."""

    progress: Progress
    what: str
    total: int
    done: int
    most: int = 0
    within: int = 0

    def begin(self, case: Case | None) -> None:
        """None: a walk through a training that was paid for before."""
        self.most, self.within = price(case) if case else 0, 0
        self.tell(0)

    def tell(self, epochs: int) -> None:
        self.within = min(self.most, self.within + epochs)
        self.progress(self.what, self.done + self.within, self.total)

    def end(self, case: Case) -> None:
        self.done += price(case)
        self.most = self.within = 0
        self.tell(0)


def make(cases: Sequence[Case], bench: Bench, progress: Progress, what: str) -> Made:
    """Every cell, from the shelf or made now. Killed at any moment, the same call goes on where it was."""
    found = {case.name: cell for case in cases if (cell := bench.cells.get(case.name, case.digest)) is not None}
    ticker = Ticker(progress, what, sum(map(price, cases)), sum(price(c) for c in cases if c.name in found))
    ticker.tell(0)
    made = 0
    for worlds in by_lab(case for case in cases if case.name not in found):
        with opened([shared.federation for shared in worlds], bench.data, bench.workers) as open_worlds:
            for shared, missing in worlds.items():
                room, world = bench.room / shared.digest[:16], open_worlds[shared.federation]
                for case, finished in _of_world(world, missing, room, ticker):
                    cell = Cell(case.name, case.values(), finished.result, measured(finished.timing, world.learner))
                    bench.cells.put(cell)
                    found[case.name] = cell
                    made += 1
                    ticker.end(case)
                shutil.rmtree(room, ignore_errors=True)
    return Made(tuple(found[case.name] for case in cases), made)


def by_lab(cases: Iterable[Case]) -> list[dict[Case, list[Case]]]:
    """Cases by what they can share: learner and cohort; within that, data and, sharded or not, training."""
    labs: dict[tuple[Any, ...], dict[Case, list[Case]]] = {}
    for case in cases:
        shared = Case(replace(case.federation, sharded=True), case.probe)
        labs.setdefault(lab(case.federation), {}).setdefault(shared, []).append(case)
    return [
        {shared: sorted(every, key=lambda c: c.federation.sharded) for shared, every in worlds.items()}
        for worlds in labs.values()
    ]


def _of_world(world: World, missing: Sequence[Case], room: Path, ticker: Ticker) -> Iterator[tuple[Case, Finished]]:
    """Each missing cell of both worlds; a training is walked through again only if something starts from it."""
    for federation, group in groupby(missing, key=lambda c: c.federation):
        cases, place = list(group), room / federation.world
        here = world.of(federation)
        training = next((case for case in cases if case.request is None), None)
        ticker.begin(training)
        track, trained = run_training(here, cases[0].training, place / "training", ticker.tell)
        if training is not None:
            yield training, trained
        past, askers = TrackPast.of(track), dict[tuple[str, ...], Asker]()
        for case in cases:
            if case.request is None:
                continue
            ticker.begin(case)
            leavers = case.request.leavers(federation, here.names)
            if leavers not in askers:
                askers[leavers] = asker_for(here, case, past)
            folder = place / f"{case.request.name}-{case.digest[:8]}"
            yield case, run_request(here, case, past, askers[leavers], folder, ticker.tell)


def price(case: Case) -> int:
    """About how many client-epochs a cell takes, for the time left."""
    federation = case.federation
    whole = federation.rounds * federation.epochs * federation.participants
    if case.request is None:
        return whole
    method = METHODS[case.request.method]
    part = 1.0 if method.algorithm in ("scratch", "restart") else 1 / case.request.ratio
    return round(whole * part * _touched(federation, case.request.count, case.request.pattern, method.algorithm))


def _touched(federation: Federation, count: int, pattern: str, algorithm: str) -> float:
    if algorithm == "scratch" or not federation.sharded:
        return 1.0
    return (min(count, federation.shards) if pattern == "even" else 1) / federation.shards
