"""HistoryPast: the history answers forgetting's questions, whether it kept everything or only what is needed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import Damaged, Unrecoverable
from ..federation import Kind, Place, Upload, average
from ..forgetting.past import Made, Measures
from ..manifest import Label, RecordKind, RoundRow
from ..params import Params, gram
from ..plan import Cell
from .fetch import Archive


@dataclass(frozen=True)
class HistoryPast:
    """Active rounds by place; `begin` gives the model a cell started from."""

    rows: Mapping[Place, RoundRow]
    labels: Mapping[Place, tuple[Label, ...]]
    archive: Archive
    begin: Callable[[Cell], Params]
    weighted: bool
    changed: Collection[Place] = frozenset()  # rounds in force that a forget graded X2 made again
    # The uploads recalled last: calibration reads the rounds one after the other, each twice.
    _last: dict[Place, tuple[Upload, ...]] = field(default_factory=dict)

    def rounds(self, cell: Cell) -> int:
        return 1 + max((p.round for p in self.rows if p.cell == cell), default=-1)

    def _row(self, place: Place) -> RoundRow:
        if place not in self.rows:
            raise Unrecoverable(str(place), 1, 0, "it was never recorded")
        return self.rows[place]

    def kind(self, place: Place) -> Kind:
        return self._row(place).kind

    def source(self, place: Place) -> int | None:
        return self._row(place).source

    def lost(self, place: Place) -> tuple[str, ...]:
        return tuple(a.client for a in self._row(place).absent if a.lost)

    def made(self, place: Place) -> Made:
        row = self._row(place)
        return Made(row.numerics, row.deterministic, place in self.changed)

    def roster(self, place: Place) -> tuple[str, ...]:
        return self._row(place).roster

    def checkpoint(self, place: Place) -> Params:
        row = self._row(place)
        model = self._checkpoint(place)
        if model.digest != row.start_digest:
            raise Damaged(f"the model before {place}", row.start_digest[:12], model.digest[:12])
        return model

    def _checkpoint(self, place: Place) -> Params:
        kept = self._kept(place, "start")
        if kept:
            return self._params(kept[0])
        if place.round == 0:
            return self.begin(place.cell)
        before = place._replace(round=place.round - 1)
        return self._after(before)

    def _after(self, place: Place) -> Params:
        lost: Unrecoverable | None = None
        for label in self._kept(place, "model") + self._kept(place, "head"):
            try:
                return self._params(label)
            except Unrecoverable as fault:
                lost = lost or fault
        if lost and (self._kept(place, "model") or not self._kept(place, "upload")):
            raise lost
        if self.roster(place) and not self._kept(place, "upload"):
            raise Unrecoverable(f"the model after {place}", 1, 0, "a lean history keeps it only where it may be needed")
        uploads = self.uploads(place) if self.roster(place) else ()
        start = uploads[0].params if uploads else self.checkpoint(place)  # not all the way back for nothing
        return average(start, uploads, self.weighted)

    def uploads(self, place: Place) -> tuple[Upload, ...]:
        if place not in self._last:
            row, labels = self._row(place), self._kept(place, "upload")
            if len(labels) < len(row.roster):
                raise Unrecoverable(f"the uploads of {place}", len(row.roster), len(labels), "a lean history keeps few")
            blobs = self.archive.open(labels)
            counts = dict(zip(row.roster, row.examples, strict=True))
            found = tuple(
                Upload(label.client, Params.from_bytes(blobs[label], str(label)), counts[label.client])
                for label in sorted(labels, key=lambda one: one.client)
            )
            while len(self._last) > 1:
                self._last.pop(next(iter(self._last)))
            self._last[place] = found
        return self._last[place]

    def measures(self, place: Place) -> Measures:
        row, kept = self._row(place), self._kept(place, "gram")
        if kept:
            blob = self.archive.open(kept[:1])[kept[0]]
            table = np.frombuffer(blob, "<f8").astype(np.float64)
            shape = (-1, len(row.roster), len(row.roster)) if row.roster else (0, 0, 0)
            return Measures(row.roster, row.examples, table.reshape(shape))
        table = gram(self.checkpoint(place), [u.params for u in self.uploads(place)])
        return Measures(row.roster, row.examples, table)

    def final(self, cell: Cell) -> Params:
        place = Place(*cell, self.rounds(cell) - 1)
        model = self._after(place)
        if model.digest != self._row(place).model_digest:
            raise Damaged(f"the model after {place}", self._row(place).model_digest[:12], model.digest[:12])
        return model

    def _kept(self, place: Place, kind: RecordKind) -> tuple[Label, ...]:
        return tuple(label for label in self.labels.get(place, ()) if label.kind == kind)

    def _params(self, label: Label) -> Params:
        return Params.from_bytes(self.archive.open([label])[label], str(label))
