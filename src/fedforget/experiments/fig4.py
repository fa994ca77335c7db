"""Figure 4: several requests at once, even over the shards or all in one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .cells import Cell
from .pictures import STYLES, figure_of
from .sheet import NONE, Sheet, show
from .shelf import Kind, Shelf, served, spent, work

_PANELS = (("time, of FR for one", "time"), ("accuracy", "test_accuracy"), ("F1", "f1"))


def sheets(cells: Sequence[Cell], cited: Sequence[Mapping[str, Any]] = ()) -> tuple[Sheet, ...]:
    shelf = Shelf(tuple(cells))
    rows = []
    for kind in _sorted(shelf):
        retrained = replace(kind, label="FR")
        rows.append(
            (
                kind.data,
                kind.pattern if kind.count > 1 else "one",
                str(kind.count),
                kind.label,
                _same(shelf, kind, "touched"),
                show(shelf.ratio(kind, retrained, spent("client_epochs"))),
                show(shelf.ratio(kind, retrained, work)),
                NONE,
                show(shelf.over(kind, lambda c: served(c)["test_accuracy"]), 1, 100),
                show(shelf.over(kind, lambda c: served(c)["f1"])),
            )
        )
    head = (
        "data",
        "requests",
        "K",
        "method",
        "shards",
        "client-epochs of FR",
        "time of FR",
        "the paper's",
        "after, %",
        "F1",
    )
    note = (
        "*shards*: how many were made again; *of FR*: retraining without the same clients; *time*: processor time of "
        "the clients, or their own clocks. The paper has curves and no numbers; its T_c = S·C̄·(1 − (1 − 1/S)^K) lies "
        "between the two patterns (docs/evaluation.md)."
    )
    return (Sheet("Requests at once", head, tuple(rows), (head[2], *head[4:]), (note,)),)


def _same(shelf: Shelf, kind: Kind, what: str) -> str:
    return "/".join(sorted({str(len(c.result[what])) for c in shelf.of(kind)}))


def _sorted(shelf: Shelf) -> list[Kind]:
    kinds = [k for k in shelf.kinds() if k.draw == "once" and k.label in STYLES]
    datas, labels = list(dict.fromkeys(k.data for k in kinds)), list(STYLES)
    return sorted(kinds, key=lambda k: (datas.index(k.data), k.pattern, k.count, labels.index(k.label)))


def figures(cells: Sequence[Cell], stamp: str) -> dict[str, Any]:
    """A column a data set and pattern; K along each."""
    shelf = Shelf(tuple(cells))
    kinds = _sorted(shelf)
    columns = [(d, p) for d in dict.fromkeys(k.data for k in kinds) for p in ("even", "adapt")]
    rows = [[_panel(shelf, kinds, *column, *what) for column in columns] for what in _PANELS]
    return {"fig4": figure_of(rows, stamp)}


def _panel(shelf: Shelf, kinds: Sequence[Kind], data: str, pattern: str, label: str, what: str) -> Any:
    from ..plots import Line, Panel

    mine = [k for k in kinds if k.data == data and (k.pattern == pattern or k.count == 1)]
    lines = []
    for method in dict.fromkeys(k.label for k in mine):
        means = {k.count: _value(shelf, k, what) for k in mine if k.label == method}
        known = {count: mean for count, mean in sorted(means.items()) if mean is not None}
        if not known:
            continue
        band = (None, None)
        if all(m.count > 1 for m in known.values()):
            band = ([m.low for m in known.values()], [m.high for m in known.values()])  # type: ignore[assignment]
        lines.append(Line(method, list(known), [m.value for m in known.values()], STYLES[method], *band))
    title = f"{data.partition(',')[0]}, {pattern}" if what == "time" else ""
    return Panel(title, "requests K", label, lines)


def _value(shelf: Shelf, kind: Kind, what: str) -> Any:
    if what == "time":
        return shelf.ratio(kind, replace(kind, label="FR", count=1, pattern="adapt"), work)
    return shelf.over(kind, lambda c: served(c)[what])
