"""Clean forgetting (X3): calibration whose step lengths never saw the leaver.

Begins like calibration from the retained uploads of the leavers' first round, and trains as short; but who takes
part is drawn from the plan without the leavers, and each update gets the mean length the same round had in another
shard, isolated from this one in every stage, or a public constant. Nothing the leaver's data could move is read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import NoReference
from ..federation import Cohort, FitResult, FitTask, Learner, Place, Round, Settings, ask, average, sift
from ..params import Params
from .calibrated import Calibration, prepare, prepares, rescale
from .past import Past, cells, first_where
from .rebuild import Rebuild, run, with_ancestors


def clean(
    cohort: Cohort, learner: Learner, work: Rebuild, settings: Settings, calibration: Calibration
) -> Iterator[Round]:
    sources = {} if calibration.length is not None else references(work)
    return run(cohort, learner, work, Cleaning(work, settings, calibration, sources))


def references(work: Rebuild) -> dict[int, int]:
    """For each tainted shard, the shard whose lengths it borrows: the next one around that is free of the leavers.

    Free means: no cell of it is tainted in any stage, and no approximate forgetting left a residue in its lineage
    that the borrowed lengths would carry over. Which one it is depends on who was planned where, never on what they
    sent: a choice that passed a shard over for its uploads would itself hold a trace of those who sent them. A shard
    that has no round to make again borrows nothing.
    """
    tainted = {shard for _, shard in work.taints}
    found: dict[int, int] = {}
    for shard in sorted(tainted):
        places = tuple(_measured(work, shard))
        if not places:
            continue
        around = [(shard + step) % work.before.shards for step in range(1, work.before.shards)]
        free = [d for d in around if d not in tainted and _usable(work, d, {place.stage for place in places})]
        if not free:
            why = "every other shard is tainted too, holds an approximate residue, or was not trained as long"
            raise NoReference(shard, why)
        for place in places:
            if _lender(work.past, place._replace(shard=free[0])) is None:
                why = f"shard {free[0]}, whose turn it is, has no upload in stage {place.stage} up to {place.round}"
                raise NoReference(shard, why)
        found[shard] = free[0]
    return found


def _usable(work: Rebuild, donor: int, stages: Iterable[int]) -> bool:
    past = work.past
    own = (cell for cell in cells(work.before, past) if cell[1] == donor)
    for cell in with_ancestors(work.before, own):
        if first_where(past, cell, lambda kind: kind == "calibrated") is not None:
            return False
    return all(work.before.present(stage, donor) and past.rounds((stage, donor)) for stage in stages)


def _measured(work: Rebuild, shard: int) -> Iterator[Place]:
    """The rounds of the shard that may need a length: all that are made again, but those of eq. prepare."""
    for (stage, s), taint in work.taints.items():
        if s == shard and work.after.present(stage, s):
            for round in range(taint.round, work.past.rounds((stage, s))):
                if not prepares(work, Place(stage, s, round)):
                    yield Place(stage, s, round)


def _lender(past: Past, place: Place) -> Place | None:
    """The donor's round to measure: the same, or its nearest earlier one where somebody took part."""
    for round in range(min(place.round, past.rounds(place.cell) - 1), -1, -1):
        if past.roster(place._replace(round=round)):
            return place._replace(round=round)
    return None


@dataclass(frozen=True)
class Cleaning:
    """The recipe: ask the plan's cohort without the leavers, fold by borrowed lengths."""

    work: Rebuild
    settings: Settings
    calibration: Calibration
    sources: dict[int, int]

    def ask(self, place: Place, start: Params) -> tuple[FitTask, ...]:
        first = self.work.taints[place.cell].round
        if prepares(self.work, place) or not self.calibration.keeps(first, place.round):
            return ()
        epochs = self.calibration.epochs(self.settings.epochs)
        cohort = self.work.after.cohort(*place)
        return ask(self.work.after, cohort, place, start, epochs, self.settings.solver)

    def fold(self, place: Place, start: Params, results: Iterable[FitResult]) -> Round:
        if prepares(self.work, place):
            return prepare(self.work, place, start, self.settings.weighted)
        if not self.calibration.keeps(self.work.taints[place.cell].round, place.round):
            return Round(place, start, (), start, kind="skipped")
        uploads, absent, cost = sift(self.ask(place, start), start, results)
        source = self.sources.get(place.shard)
        scaled, left_out = rescale(start, uploads, [self._length(place, source)] * len(uploads))
        model = average(start, scaled, self.settings.weighted)
        return Round(place, start, scaled, model, absent + left_out, cost, "clean", source)

    def _length(self, place: Place, source: int | None) -> float:
        if source is None:
            assert self.calibration.length is not None
            return self.calibration.length
        lender = _lender(self.work.past, place._replace(shard=source))
        assert lender is not None  # `references` looked
        return self.work.past.measures(lender).mean_norm()
