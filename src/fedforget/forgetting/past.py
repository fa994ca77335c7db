"""Past: what forgetting asks of the history. The rounds in memory answer it as well as coded slices do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import Unrecoverable
from ..federation import Kind, Place, Round, Upload
from ..params import Params, gram
from ..plan import Cell, Influence, Plan


@dataclass(frozen=True)
class Measures:
    """What calibration reads of a round: who took part, with how many examples, and the updates' inner products."""

    roster: tuple[str, ...]
    examples: tuple[int, ...]
    gram: NDArray[np.float64]  # [layer, i, j], see `params.gram`

    def norm(self, client: str) -> float:
        """‖Δ‖ of one client's update over the whole model."""
        at = self.roster.index(client)
        return float(np.sqrt(self.gram.sum(axis=0)[at, at]))

    def mean_norm(self) -> float:
        return float(np.mean([self.norm(c) for c in self.roster]))

    @staticmethod
    def of(round: Round) -> "Measures":
        return Measures(
            round.roster,
            tuple(u.examples for u in round.uploads),
            gram(round.start, [u.params for u in round.uploads]),
        )


@dataclass(frozen=True)
class Made:
    """Under which conditions a round was made."""

    numerics: str = ""  # what its bits depend on beside its inputs, where that is known
    deterministic: bool = True
    changed: bool = False  # made again by a forget whose conditions had changed (X2)


class Past(Protocol):
    """The recorded lineage of every shard."""

    def rounds(self, cell: Cell) -> int:
        """How many rounds of the cell are recorded."""

    def kind(self, place: Place) -> Kind:
        """How the round was made."""

    def source(self, place: Place) -> int | None:
        """The shard it borrowed step lengths from."""

    def lost(self, place: Place) -> tuple[str, ...]:
        """Who was asked and lost on the way."""

    def made(self, place: Place) -> Made:
        """Under which conditions."""

    def roster(self, place: Place) -> tuple[str, ...]:
        """Whose uploads the round holds, without fetching any."""

    def checkpoint(self, place: Place) -> Params:
        """The model before the round."""

    def uploads(self, place: Place) -> tuple[Upload, ...]:
        """The round's uploads, by client."""

    def measures(self, place: Place) -> Measures:
        """The round's roster and inner products."""

    def final(self, cell: Cell) -> Params:
        """The model after the last recorded round."""


@dataclass(frozen=True)
class Recorded:
    """Rounds kept in memory."""

    by_place: dict[Place, Round]

    @staticmethod
    def of(rounds: Iterable[Round]) -> "Recorded":
        return Recorded({r.place: r for r in rounds})

    def after(self, rebuilt: Iterable[Round], emptied: Iterable[Cell] = ()) -> "Recorded":
        """This past with rounds replaced, and the cells that nobody is left in dropped."""
        gone = set(emptied)
        kept = {p: r for p, r in self.by_place.items() if p.cell not in gone}
        return Recorded({**kept, **{r.place: r for r in rebuilt}})

    def rounds(self, cell: Cell) -> int:
        return 1 + max((p.round for p in self.by_place if p.cell == cell), default=-1)

    def _at(self, place: Place) -> Round:
        if place not in self.by_place:
            raise Unrecoverable(str(place), 1, 0, "it was never recorded")
        return self.by_place[place]

    def kind(self, place: Place) -> Kind:
        return self._at(place).kind

    def source(self, place: Place) -> int | None:
        return self._at(place).source

    def lost(self, place: Place) -> tuple[str, ...]:
        return tuple(a.client for a in self._at(place).absent if a.lost)

    def made(self, place: Place) -> Made:
        return Made()

    def roster(self, place: Place) -> tuple[str, ...]:
        return self._at(place).roster

    def checkpoint(self, place: Place) -> Params:
        return self._at(place).start

    def uploads(self, place: Place) -> tuple[Upload, ...]:
        return self._at(place).uploads

    def measures(self, place: Place) -> Measures:
        return Measures.of(self._at(place))

    def final(self, cell: Cell) -> Params:
        return self._at(Place(*cell, self.rounds(cell) - 1)).model


def cells(plan: Plan, past: Past) -> tuple[Cell, ...]:
    """Every cell with rounds in it."""
    every = ((t, s) for t in range(len(plan.stages)) for s in range(plan.shards))
    return tuple(cell for cell in every if past.rounds(cell))


def first_where(past: Past, cell: Cell, test: Callable[[Kind], bool]) -> int | None:
    """The first recorded round of the cell whose kind passes the test."""
    return next((r for r in range(past.rounds(cell)) if test(past.kind(Place(*cell, r)))), None)


def influences(plan: Plan, past: Past) -> tuple[Influence, ...]:
    """Every borrowed length in the recorded lineages."""
    return tuple(
        Influence(cell, r, (cell[0], source))
        for cell in cells(plan, past)
        for r in range(past.rounds(cell))
        if (source := past.source(Place(*cell, r))) is not None
    )
