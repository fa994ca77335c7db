"""Figure: panels of lines, as values, drawn to SVG and PNG.

Colours are Okabe and Ito's, told apart by every kind of colour vision; each line has a dash and a marker of its own
too, so that it survives a grey printer. A stamp in both files names the data they were drawn from.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

# Black first: the method everything is measured against. Yellow is left out, for it is lost on paper.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), ":", (0, (8, 2)), (0, (3, 1)))
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")

_STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.hashsalt": "fedforget",  # the same ids every time
    "svg.fonttype": "none",  # text stays text
    "font.family": "DejaVu Sans",
}


@dataclass(frozen=True)
class Line:
    """`low` and `high`: a band around it. `style`: its place among colours and markers, the same in every panel.

    `points` draws markers with error bars and no line: what was measured beside what was computed.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: int
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    points: bool = False


@dataclass(frozen=True)
class Panel:
    """Lines over common axes, or `bars`: a group for each of `x`'s names."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_y: bool = False
    bars: Sequence[str] = ()
    whole_x: bool = True  # rounds, requests, clients: there is nothing between


@dataclass(frozen=True)
class Figure:
    """Rows of panels under one legend."""

    rows: Sequence[Sequence[Panel]]
    stamp: str  # a SHA-256 of the data, in hexadecimal
    width: float = 7.2  # inches: a page's text
    height: float = 2.1  # of a row


def draw(figure: Figure, path: Path) -> tuple[Path, Path]:
    """`path` with .svg and .png; the bytes depend on the figure and matplotlib's version alone."""
    with matplotlib.rc_context(_STYLE):
        across = max(len(row) for row in figure.rows)
        canvas = Canvas(figsize=(figure.width, figure.height * len(figure.rows) + 0.5), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(len(figure.rows), across, squeeze=False)
        shown: dict[str, Any] = {}
        for row, panels in enumerate(figure.rows):
            for column in range(across):
                if column < len(panels):
                    shown |= _panel(axes[row][column], panels[column])
                else:
                    axes[row][column].set_axis_off()
        canvas.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=min(len(shown), 4), frameon=False)
        svg, png = path.with_suffix(".svg"), path.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        body = BytesIO()
        canvas.savefig(body, format="svg", metadata={"Date": None, "Description": figure.stamp, "Creator": "FedForget"})
        svg.write_bytes(b"\n".join(line.rstrip() for line in body.getvalue().split(b"\n")))
        canvas.savefig(png, format="png", dpi=160, metadata={"Description": figure.stamp, "Software": "FedForget"})
    return svg, png


def _panel(axes: Any, panel: Panel) -> dict[str, Any]:
    shown = _bars(axes, panel) if panel.bars else _lines(axes, panel)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.log_y:
        axes.set_yscale("log")
    if panel.whole_x and not panel.bars:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return shown


def _lines(axes: Any, panel: Panel) -> dict[str, Any]:
    shown = {}
    for line in panel.lines:
        colour, marker = COLOURS[line.style % len(COLOURS)], MARKERS[line.style % len(MARKERS)]
        if line.points:
            spread = None if line.low is None or line.high is None else _spread(line)
            shown[line.label] = axes.errorbar(
                line.x, line.y, yerr=spread, fmt=marker, color=colour, mfc="white", capsize=2, lw=0.9, zorder=3
            )
            continue
        (shown[line.label],) = axes.plot(
            line.x,
            line.y,
            color=colour,
            marker=marker if len(line.x) <= 40 else None,
            markevery=max(1, len(line.x) // 8),
            linestyle=DASHES[line.style % len(DASHES)],
        )
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.12, linewidth=0)
    return shown


def _spread(line: Line) -> Any:
    assert line.low is not None
    assert line.high is not None
    middle = np.array(line.y)
    return np.stack([middle - np.array(line.low), np.array(line.high) - middle])


def _bars(axes: Any, panel: Panel) -> dict[str, Any]:
    shown = {}
    place = np.arange(len(panel.bars))
    wide = 0.8 / len(panel.lines)
    for at, line in enumerate(panel.lines):
        shown[line.label] = axes.bar(
            place + (at - (len(panel.lines) - 1) / 2) * wide,
            line.y,
            wide,
            color=COLOURS[line.style % len(COLOURS)],
            hatch=HATCHES[line.style % len(HATCHES)],
            edgecolor="white",
            linewidth=0.5,
        )
    axes.set_xticks(place, panel.bars)
    axes.set_xlim(-0.5, len(place) - 0.5)
    if panel.log_y:  # bars of powers of ten begin somewhere: a whole power below the smallest
        axes.set_yscale("log")
        axes.set_ylim(bottom=10.0 ** np.floor(np.log10(np.nanmin([line.y for line in panel.lines])) - 0.2))
    axes.grid(axis="x", visible=False)
    return shown


def stamp_of(path: Path) -> str | None:
    """The stamp in a picture of either kind; None if there is none."""
    blob = path.read_bytes()
    if path.suffix == ".svg":
        found = re.search(rb"<dc:description>\s*([0-9a-f]{64})\s*</dc:description>", blob)
        return found[1].decode() if found else None
    found = re.search(rb"tEXtDescription\x00([0-9a-f]{64})", blob)
    return found[1].decode() if found else None
