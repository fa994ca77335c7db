"""Figure 3: accuracy and F1 over the rounds of forgetting, one request."""

from collections.abc import Mapping, Sequence
from typing import Any

from .cells import Cell
from .pictures import STYLES, figure_of
from .sheet import NONE, Sheet, show
from .shelf import Kind, Shelf, served


def sheets(cells: Sequence[Cell], cited: Sequence[Mapping[str, Any]] = ()) -> tuple[Sheet, ...]:
    """When each method first stands within a point of where retraining ends, in rounds and in client-epochs."""
    shelf = Shelf(tuple(cells))
    rows = []
    for kind in _kinds(shelf):
        goal = shelf.over(_fr(kind), lambda c: c.result["curve"][-1]["test_accuracy"])
        first = shelf.over(kind, lambda c: c.result["curve"][0]["test_accuracy"] if c.result["curve"] else None)
        last = shelf.over(kind, lambda c: c.result["curve"][-1]["test_accuracy"] if c.result["curve"] else None)
        reached = [_reached(c, goal.value) for c in shelf.of(kind)] if goal else []
        rows.append(
            (
                kind.data,
                kind.label,
                show(shelf.over(kind, lambda c: served(c, "before")["test_accuracy"]), 1, 100),
                show(first, 1, 100),
                show(last, 1, 100),
                ", ".join(reached) or NONE,
                NONE,
            )
        )
    head = (
        "data",
        "method",
        "before, %",
        "after the first round, %",
        "after the last, %",
        "client-epochs to FR − 1 point",
        "the paper's",
    )
    note = (
        "Accuracy of what is served on the test examples of the curve. *client-epochs to FR − 1 point*: what each seed "
        "had spent when it first stood within a point of where FR ends; “never” if it did not. "
        "The paper has curves and no numbers."
    )
    return (Sheet("Over the rounds of forgetting", head, tuple(rows), head[2:6], (note,)),)


def _reached(cell: Cell, goal: float) -> str:
    return next((str(p["client_epochs"]) for p in cell.result["curve"] if p["test_accuracy"] >= goal - 0.01), "never")


def _fr(kind: Kind) -> Kind:
    return Kind(kind.task, kind.partition, kind.draw, "FR", 1, "adapt")


def _kinds(shelf: Shelf) -> list[Kind]:
    return [k for k in shelf.kinds() if k.count == 1 and k.draw == "once" and k.label != "FR sharded"]


def figures(cells: Sequence[Cell], stamp: str) -> dict[str, Any]:
    """One picture a partition: a column a data set, accuracy above F1."""
    shelf = Shelf(tuple(cells))
    kinds = _kinds(shelf)
    found = {}
    for partition in dict.fromkeys(k.partition for k in kinds):
        tasks = dict.fromkeys(k.task for k in kinds if k.partition == partition)
        rows = [
            [_panel(shelf, [k for k in kinds if (k.task, k.partition) == (t, partition)], t, *what) for t in tasks]
            for what in (("test_accuracy", "accuracy"), ("f1", "F1"))
        ]
        found["fig3" if partition == "iid" else f"fig3-{partition}"] = figure_of(rows, stamp)
    return found


def _panel(shelf: Shelf, kinds: Sequence[Kind], task: str, what: str, label: str) -> Any:
    from ..plots import Line, Panel

    lines = []
    for kind in kinds:
        curves = [c.result["curve"] for c in shelf.of(kind) if c.result["curve"]]
        if not curves:
            continue
        points = list(zip(*curves, strict=True))
        x = [float(p[0]["round"] + 1) for p in points]
        each = [[float(seed[what]) for seed in p] for p in points]
        middle = [sum(e) / len(e) for e in each]
        band = (None, None) if len(curves) == 1 else ([min(e) for e in each], [max(e) for e in each])
        lines.append(Line(kind.label, x, middle, STYLES[kind.label], *band))
    return Panel(task if what == "test_accuracy" else "", "round", label, lines)
