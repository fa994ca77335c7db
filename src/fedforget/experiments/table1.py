"""Table 1: F1 and retraining time, method by method, with the paper's numbers as far as they are cited."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .cells import Cell
from .sheet import NONE, Sheet, show
from .shelf import HEAD_OF_MEASURE, Kind, Shelf, averaged, served, shard_alone, spent, work

_ORDER = ("FR", "FE", "RR", "SE", "exact", "clean", "FR sharded")
_RATIOS = (("SE", "FR"), ("SE", "FE"), ("exact", "FR"), ("clean", "FR"), ("FE", "FR"), ("RR", "FR"))


def sheets(cells: Sequence[Cell], cited: Sequence[Mapping[str, Any]] = ()) -> tuple[Sheet, ...]:
    shelf = Shelf(tuple(cells))
    single = [k for k in shelf.kinds() if k.count == 1]
    once = [k for k in single if k.draw == "once"]
    found = [_scores(shelf, once), _times(shelf, once, cited), _alone(shelf, once)]
    drawn = [k for k in single if k.draw == "round"]
    if drawn:
        found.append(_drawn(shelf, single, drawn))
    return tuple(found)


def _sorted(kinds: Sequence[Kind]) -> list[Kind]:
    datas = list(dict.fromkeys(k.data for k in kinds))
    return sorted(kinds, key=lambda k: (datas.index(k.data), _ORDER.index(k.label)))


def _scores(shelf: Shelf, kinds: Sequence[Kind]) -> Sheet:
    rows = []
    for kind in _sorted(kinds):
        cells = shelf.of(kind)
        grades = ", ".join(sorted({c.result["guarantee"]["grade"] for c in cells}))
        before = shelf.over(kind, lambda c: served(c, "before")["test_accuracy"])
        retrained = replace(kind, label="FR")
        apart = shelf.over(retrained, lambda c: averaged(c)["f1"])
        mine = shelf.over(kind, lambda c: averaged(c)["f1"])
        rows.append(
            (
                kind.data,
                kind.label,
                grades,
                show(before, 1, 100),
                show(shelf.over(kind, lambda c: served(c)["test_accuracy"]), 1, 100),
                show(shelf.over(kind, lambda c: served(c)["forgotten_accuracy"]), 1, 100),
                show(shelf.over(kind, lambda c: served(c)["f1"])),
                show(mine),
                NONE,
                NONE,
                NONE if apart is None or mine is None else f"{mine.value - apart.value:+.3f}",
                show(shelf.over(kind, lambda c: averaged(c)["f1_blind"])),
            )
        )
    head = (
        "data",
        "method",
        "class",
        "accuracy before, %",
        "after, %",
        "of the forgotten, %",
        "F1, ensemble",
        "F1, average",
        "the paper's",
        "ratio",
        "to FR",
        "F1, blind",
    )
    notes = (
        "*accuracy*: what is served, the ensemble of the shards or the one model. *F1, average*: of the parameter "
        "average, as the authors' code evaluates; *to FR* is its distance to retraining, which is all an F1 can show; "
        "*blind*: who says “member” as often without looking. ± is half a 95 % interval over seeds. The paper's single "
        "cells are not at hand and none is made up: of its F1 column only that it holds 0.5455 is cited, which is a "
        "blind attacker of recall 0.6.",
    )
    return Sheet("F1 and accuracy", head, tuple(rows), head[3:], notes)


def _times(shelf: Shelf, kinds: Sequence[Kind], cited: Sequence[Mapping[str, Any]]) -> Sheet:
    by = {(k.task, k.partition, k.label): k for k in kinds}
    rows = []
    for task, partition in dict.fromkeys((k.task, k.partition) for k in kinds):
        for method, base in _RATIOS:
            one, other = by.get((task, partition, method)), by.get((task, partition, base))
            if one is None or other is None:
                continue
            ratios = {m: shelf.ratio(one, other, spent(m)) for m in HEAD_OF_MEASURE}
            said = [
                float(c["at_most"])
                for c in cited
                if c["ratio"] == f"{method}/{base}" and (task == "shakespeare") == (c["on"] == "text")
            ]
            main = shelf.ratio(one, other, work)
            rows.append(
                (
                    one.data,
                    f"{method}/{base}",
                    *(show(ratios[m], 3) for m in HEAD_OF_MEASURE),
                    f"≤ {said[0]:g}" if said else NONE,
                    f"{main.value / said[0]:.2f}" if said and main else NONE,
                )
            )
    head = ("data", "time of", *HEAD_OF_MEASURE.values(), "the paper's", "ratio")
    notes = (
        "Each is a ratio within one run. *CPU seconds*: of the processes the clients ran in, the least disturbed by a "
        "busy machine; *client seconds*: by each client's clock, one after another; *clients in parallel*: the slowest "
        "client of each round, as if each had a machine of its own; *ratio*: ours by CPU seconds (where the clients "
        "ran in processes of their own, else client seconds) over the paper's, as cited.",
    )
    return Sheet("Retraining time", head, tuple(rows), head[2:], notes)


def _alone(shelf: Shelf, kinds: Sequence[Kind]) -> Sheet:
    rows = []
    for kind in _sorted([k for k in kinds if k.label in ("SE", "exact", "clean", "FR sharded")]):
        retrained = replace(kind, label="exact")
        home = {c.seed: tuple(c.result["shards"]) for c in shelf.of(retrained)}
        mine, loss, gone, before = (
            shelf.over(kind, partial(_at_home, home, when, what))
            for when, what in (
                ("after", "test_accuracy"),
                ("after", "test_loss"),
                ("after", "forgotten_accuracy"),
                ("before", "test_accuracy"),
            )
        )
        exact = shelf.over(retrained, partial(_at_home, home, "after", "test_accuracy"))
        rows.append(
            (
                kind.data,
                kind.label,
                show(before, 1, 100),
                show(mine, 1, 100),
                NONE if mine is None or exact is None else f"{100 * (mine.value - exact.value):+.1f}",
                show(loss),
                show(gone, 1, 100),
                _same(shelf, kind, retrained),
            )
        )
    head = ("data", "method", "before, %", "after, %", "to exact", "loss", "of the forgotten, %", "bits as exact's")
    notes = (
        "The three other shards hide in the ensemble what happens in one; here the leaver's shard is asked alone. "
        "*FR sharded* is the run the leaver never joined, trained from nothing.",
    )
    return Sheet("The leaver's shard by itself", head, tuple(rows), head[2:], notes)


def _at_home(home: Mapping[int | None, tuple[str, ...]], when: str, what: str, cell: Cell) -> float | None:
    """Of the leaver's shard, though the method may have made others again too."""
    return shard_alone(cell, when, what, home.get(cell.seed, ()))


def _same(shelf: Shelf, kind: Kind, exact: Kind) -> str:
    digests = {c.seed: c.result["digests"] for c in shelf.of(exact)}
    same = [c.result["digests"] == digests.get(c.seed) for c in shelf.of(kind)]
    return "yes" if all(same) else "no"


def _drawn(shelf: Shelf, single: Sequence[Kind], drawn: Sequence[Kind]) -> Sheet:
    rows = []
    for kind in sorted(single, key=lambda k: (_ORDER.index(k.label), k.draw)):
        if kind.label not in ("SE", "exact") or (kind.task, kind.partition) != (drawn[0].task, drawn[0].partition):
            continue
        base = replace(kind, label="FR sharded")
        share = shelf.ratio(kind, base, spent("client_epochs"))
        firsts = sorted(str(c.result["from_round"]) for c in shelf.of(kind))
        rows.append(
            (
                kind.label,
                "once" if kind.draw == "once" else "each round",
                ", ".join(firsts),
                show(share),
                show(shelf.over(kind, lambda c: served(c)["test_accuracy"]), 1, 100),
                show(shelf.over(kind, lambda c: shard_alone(c, "after", "test_accuracy")), 1, 100),
                show(shelf.over(kind, lambda c: served(c)["f1"])),
            )
        )
    head = ("method", "clients drawn", "restart at round", "client-epochs of FR sharded", "after, %", "shard, %", "F1")
    notes = (
        f"{drawn[0].task}, {drawn[0].partition}. Drawn each round a leaver may take part late, and all rounds before "
        "its first stay as they are; drawn once, everybody takes part in round 0.",
    )
    return Sheet("Drawing the clients once or each round", head, tuple(rows), head[2:], notes)
