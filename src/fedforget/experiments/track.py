"""Track: the rounds of one run as files, so that a run killed at any moment goes on at its last whole round.

What is kept of a round is what forgetting can need and no more (the history's `lean`): its model, its inner products,
and the uploads of rounds in which somebody takes part for the first time. A room for tracks is scratch, not a result.
"""

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unrecoverable
from ..federation import Absence, Cost, Kind, Place, Round, Upload
from ..forgetting import Made, Measures
from ..params import Layout, Params, gram
from ..plan import Cell


@dataclass(frozen=True)
class Timing:
    """What was measured of a step; never part of a result. `cpu` is None where nobody can tell."""

    wall: float = 0.0
    client: float = 0.0  # summed over the clients
    parallel: float = 0.0  # as if all clients worked at once
    cpu: float | None = 0.0  # of the processes the clients ran in

    def __add__(self, other: "Timing") -> "Timing":
        cpu = None if self.cpu is None or other.cpu is None else self.cpu + other.cpu
        return Timing(self.wall + other.wall, self.client + other.client, self.parallel + other.parallel, cpu)


@dataclass(frozen=True)
class Row:
    """A round, as kept."""

    place: Place
    roster: tuple[str, ...]
    examples: tuple[int, ...]
    kind: Kind
    source: int | None
    absent: tuple[Absence, ...]
    client_epochs: int

    @staticmethod
    def of(round: Round) -> "Row":
        return Row(
            round.place,
            round.roster,
            tuple(u.examples for u in round.uploads),
            round.kind,
            round.source,
            round.absent,
            round.cost.client_epochs,
        )

    @staticmethod
    def read(values: Mapping[str, Any]) -> "Row":
        return Row(
            Place(*values["place"]),
            tuple(values["roster"]),
            tuple(values["examples"]),
            values["kind"],
            values["source"],
            tuple(Absence(**a) for a in values["absent"]),
            values["client_epochs"],
        )


@dataclass(frozen=True)
class Step:
    """All shards' rounds of one index: what one atomic file holds. `mark`: what was measured of the models after it."""

    index: int
    rows: tuple[Row, ...]
    timing: Timing
    mark: Mapping[str, Any]


@dataclass(frozen=True)
class Track:
    """A folder of steps, in order. `full`: keep what a later forget reads."""

    folder: Path
    layout: Layout
    full: bool = False

    def steps(self) -> tuple[Step, ...]:
        """The unbroken run of steps from the first on."""
        found: list[Step] = []
        for path in sorted(self.folder.glob("step-*.npz")):
            with np.load(path) as file:
                head = json.loads(bytes(file["head"]))
            rows = tuple(Row.read(r) for r in head["rows"])
            found.append(Step(head["index"], rows, Timing(**head["timing"]), head["mark"]))
        return tuple(found)

    def save(self, step: Step, rounds: Sequence[Round], first_time: frozenset[Place] = frozenset()) -> None:
        """Whole or not at all. Scratch need not survive a power cut, so nothing is synced."""
        arrays: dict[str, NDArray[Any]] = {}
        for round in rounds:
            shard = round.place.shard
            arrays[f"model-{shard}"] = round.model.vector
            if self.full:
                arrays[f"gram-{shard}"] = gram(round.start, [u.params for u in round.uploads])
                if round.place.round == 0:
                    arrays[f"start-{shard}"] = round.start.vector
            if self.full and round.place in first_time and round.uploads:
                arrays[f"uploads-{shard}"] = np.stack([u.params.vector for u in round.uploads])
        head = {
            "index": step.index,
            "rows": [asdict(r) for r in step.rows],
            "timing": asdict(step.timing),
            "mark": step.mark,
        }
        body = io.BytesIO()
        np.savez(body, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(step.index)
        partial = path.with_suffix(".writing")
        partial.write_bytes(body.getbuffer())
        os.replace(partial, path)

    def path(self, index: int) -> Path:
        return self.folder / f"step-{index:04d}.npz"

    def array(self, index: int, name: str) -> NDArray[Any]:
        with np.load(self.path(index)) as file:
            return np.asarray(file[name])

    def model(self, index: int, shard: int) -> Params:
        return Params(self.layout, self.array(index, f"model-{shard}"))


@dataclass(frozen=True)
class TrackPast:
    """A whole training, as the `Past` that forgetting asks."""

    track: Track
    rows: Mapping[Place, Row]
    _measured: dict[Place, Measures] = field(default_factory=dict)  # a memo of what the files say

    @staticmethod
    def of(track: Track) -> "TrackPast":
        return TrackPast(track, {row.place: row for step in track.steps() for row in step.rows})

    def rounds(self, cell: Cell) -> int:
        return 1 + max((p.round for p in self.rows if p.cell == cell), default=-1)

    def _at(self, place: Place) -> Row:
        if place not in self.rows:
            raise Unrecoverable(str(place), 1, 0, "it was never recorded")
        return self.rows[place]

    def kind(self, place: Place) -> Kind:
        return self._at(place).kind

    def source(self, place: Place) -> int | None:
        return self._at(place).source

    def lost(self, place: Place) -> tuple[str, ...]:
        return tuple(a.client for a in self._at(place).absent if a.lost)

    def made(self, place: Place) -> Made:
        return Made()  # all of a track is made in one go

    def roster(self, place: Place) -> tuple[str, ...]:
        return self._at(place).roster

    def checkpoint(self, place: Place) -> Params:
        if place.round == 0:
            return Params(self.track.layout, self.track.array(0, f"start-{place.shard}"))
        return self.track.model(place.round - 1, place.shard)

    def uploads(self, place: Place) -> tuple[Upload, ...]:
        row = self._at(place)
        vectors = self.track.array(place.round, f"uploads-{place.shard}") if row.roster else ()
        found = zip(row.roster, vectors, row.examples, strict=True)
        return tuple(Upload(client, Params(self.track.layout, v), examples) for client, v, examples in found)

    def measures(self, place: Place) -> Measures:
        if place not in self._measured:
            row = self._at(place)
            products = self.track.array(place.round, f"gram-{place.shard}")
            self._measured[place] = Measures(row.roster, row.examples, products)
        return self._measured[place]

    def final(self, cell: Cell) -> Params:
        return self.track.model(self.rounds(cell) - 1, cell[1])


def cost_of(rounds: Sequence[Round]) -> Cost:
    """A step's: work adds up, but shards work side by side."""
    return Cost(
        sum(r.cost.client_epochs for r in rounds),
        sum(r.cost.seconds for r in rounds),
        max((r.cost.slowest for r in rounds), default=0.0),
    )
