"""Pictures: both kinds of file, the same bytes for the same values, and a stamp that says what they were drawn from."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from fedforget.plots import Figure, Line, Panel, draw, stamp_of
from fedforget.plots.figure import COLOURS, DASHES, HATCHES, MARKERS

STAMP = "0123456789abcdef" * 4


def figure(stamp: str = STAMP) -> Figure:
    lines = [
        Line("one", [1, 2, 3], [0.1, 0.2, 0.3], 0, [0.0, 0.1, 0.2], [0.2, 0.3, 0.4]),
        Line("two", [1, 2, 3], [0.3, 0.2, 0.1], 1, [0.2, 0.1, 0.0], [0.4, 0.3, 0.2], points=True),
        Line("three", [1, 2, 3], [0.3, 0.2, 0.1], 2, points=True),
    ]
    bars = [Line("four", [], [1.0, 100.0], 3), Line("five", [], [float("nan"), 10.0], 4)]
    return Figure(
        [[Panel("a", "x", "y", lines)], [Panel("b", "", "y", bars, True, ["p", "q"]), Panel("c", "", "", [])]], stamp
    )


def test_a_picture_is_two_files_with_the_stamp_in_both(tmp_path: Path) -> None:
    svg, png = draw(figure(), tmp_path / "new" / "p")
    assert stamp_of(svg) == stamp_of(png) == STAMP
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert all(label in text for label in ("one", "two", "three", "four", "five"))
    assert "<svg" in text
    assert text == "\n".join(line.rstrip() for line in text.split("\n"))


def test_the_same_values_make_the_same_bytes(tmp_path: Path) -> None:
    first, second = (draw(figure(), tmp_path / name) for name in ("a", "b"))
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_picture_without_a_stamp_has_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    path.write_bytes(b"something else")
    assert stamp_of(path) is None


def test_no_two_styles_look_alike_in_colour_or_without() -> None:
    for marks in (COLOURS, MARKERS, HATCHES, tuple(map(str, DASHES))):
        assert len(set(marks)) == 7
