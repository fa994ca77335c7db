"""Drawings: small SVGs by hand, pure functions of values. Every one has its words beside it in a table."""

from collections.abc import Sequence

from ..workspace.facts import CellFacts, Facts, Stretch
from .html import Html, joined, tag, text

LEFT, TOP, CELL, GAP, HIGH, ROW = 84, 30, 250, 60, 34, 52

# What a stretch of rounds is drawn as, and in words.
LOOKS = {
    "plain": "trained",
    "again": "trained again, by exact forgetting",
    "calibrated": "calibrated by stored lengths",
    "clean": "calibrated by lengths the leavers never touched",
    "empty": "not trained yet, or nobody is left",
}


_MADE = {"plain": "plain", "retrained": "again", "calibrated": "calibrated", "clean": "clean"}


def looks_of(cell: CellFacts) -> list[str]:
    """What each of the cell's stretches is drawn as; a prepared or skipped round as the calibration it belongs to."""
    found = []
    for at, stretch in enumerate(cell.stretches):
        kinds = [s.kind for s in cell.stretches[at:] if s.kind in ("calibrated", "clean")]
        kind = _MADE.get(stretch.kind) or (kinds[0] if kinds else "calibrated")
        found.append("again" if kind == "plain" and stretch.generation else kind)
    return found


def _svg(width: float, height: float, words: str, *inside: Html) -> Html:
    box = f"0 0 {width:g} {height:g}"
    title = tag("title", text(words))
    return tag("svg", title, *inside, class_="drawn", viewBox=box, width=f"{width:g}", height=f"{height:g}", role="img")


def _rect(x: float, y: float, width: float, height: float, kind: str, words: str = "") -> Html:
    title = [tag("title", text(words))] if words else []
    return tag(
        "rect",
        *title,
        x=f"{x:.1f}",
        y=f"{y:.1f}",
        width=f"{max(width, 0):.1f}",
        height=f"{height:g}",
        rx=2,
        class_=f"k-{kind}",
    )


def _words(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> Html:
    attributes = {"class_": kind} if kind else {}
    return tag("text", text(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **attributes)


def swatch(kind: str) -> Html:
    inside = tag("rect", width=12, height=12, rx=2, class_=f"k-{kind}")
    drawn = tag("svg", inside, class_="drawn", viewBox="0 0 12 12", width=12, height=12, aria_hidden="true")
    return tag("span", drawn, class_="swatch")


def lineage(facts: Facts) -> Html:
    """Shards from top to bottom, stages from left to right, each stretch of rounds as it was made."""
    stages = 1 + max(c.stage for c in facts.cells)
    shards = 1 + max(c.shard for c in facts.cells)
    parts = [_words(LEFT + t * (CELL + GAP), 18, f"stage {t}", "soft") for t in range(stages)]
    parts += [_words(0, TOP + s * ROW + 22, f"shard {s}") for s in range(shards)]
    for cell in facts.cells:
        x, y = LEFT + cell.stage * (CELL + GAP), TOP + cell.shard * ROW
        parts.append(_rect(x, y, CELL, HIGH, "empty", f"stage {cell.stage}, shard {cell.shard}"))
        for stretch, kind in zip(cell.stretches, looks_of(cell), strict=True):
            parts += _stretch(cell, stretch, kind, x, y)
        for stage, shard in cell.comes_from:
            parts.append(_handover(x, y + HIGH / 2, x - (cell.stage - stage) * GAP, TOP + shard * ROW + HIGH / 2))
    width, height = LEFT + stages * (CELL + GAP) - GAP + 2, TOP + shards * ROW
    return _svg(width, height, f"Lineage of {shards} shards over {stages} stages", *parts)


def _stretch(cell: CellFacts, stretch: Stretch, kind: str, x: float, y: float) -> list[Html]:
    begin, end = stretch.first / cell.of, (stretch.last + 1) / cell.of
    words = f"{span(stretch)}: generation {stretch.generation}, {stretch.kind}"
    left, width = x + begin * CELL, (end - begin) * CELL - 1
    found = [_rect(left, y, width, HIGH, kind, words)]
    label = f"g{stretch.generation} {stretch.kind}"
    if width > 8 * len(label):
        found.append(_words(left + 8, y + 22, label, "inside"))
    return found


def span(stretch: Stretch) -> str:
    one = stretch.first == stretch.last
    return f"round {stretch.first}" if one else f"rounds {stretch.first}–{stretch.last}"


def _handover(x: float, y: float, from_x: float, from_y: float) -> Html:
    bend = (x + from_x) / 2
    line = tag("path", d=f"M{from_x:.1f} {from_y:.1f}C{bend:.1f} {from_y:.1f} {bend:.1f} {y:.1f} {x - 6:.1f} {y:.1f}")
    tip = tag("path", d=f"M{x:.1f} {y:.1f}l-8 -4v8z", class_="tip")
    return joined([Html(line.replace("<path ", '<path class="line" ', 1)), tip])


def bars(words: str, rows: Sequence[tuple[str, float, str]], full: float | None = None) -> Html:
    """A bar a row, from nought to `full` or the longest, with its value in words."""
    left, room, high = 96, 170, 26
    most = full or max((value for _, value, _ in rows), default=0.0) or 1.0
    parts = []
    for at, (name, value, said) in enumerate(rows):
        y = at * high
        parts.append(_words(left - 8, y + 17, name, anchor="end"))
        parts.append(_rect(left, y + 5, room, 15, "empty"))
        parts.append(_rect(left, y + 5, room * min(1.0, value / most), 15, "bar", said))
        parts.append(_words(left + room + 8, y + 17, said))
    return _svg(left + room + 90, max(1, len(rows)) * high, words, *parts)
