"""Tables and pictures come from cells alone, and a check finds whatever was changed since."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from digits_table import place

from fedforget.errors import Damaged, DataError, MissingExtra, SettingError
from fedforget.experiments import TARGETS, Place, check, reproduce

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[2]
DOCS = "# Results\n\n<!-- results: table1 tiny -->\nold\n<!-- end -->\n\nText.\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    (root / "page.md").write_text(DOCS)
    reproduce("table1", "tiny", place(root), docs=root / "page.md")
    reproduce("fig3", "tiny", place(root), resume=True)
    return root


@pytest.fixture
def made(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "made"))


def small_targets() -> tuple[str, ...]:
    return ("table1", "fig3")


def test_what_was_just_made_has_no_differences(made: Path) -> None:
    found = check(place(made), made / "page.md", small_targets())
    assert (found.pages, found.findings) == (2, ())
    text = (made / "page.md").read_text()
    assert "\nold\n" not in text
    assert text.endswith("Text.\n")
    assert "| digits, iid | exact | X1 |" in text


def edit(path: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        file = root / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return change


CELL = "results/tiny/cells/table1/digits-iid/seed0/sharded/SE.json"
DRIFTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a number in a table": (edit("results/tiny/table1.md", "| X1 |", "| X2 |"), "table1.md is not what"),
    "a number in a page": (edit("page.md", "| X1 |", "| X2 |"), "page.md: the results of table1 tiny"),
    "a number in a cell": (edit(CELL, '"client_epochs": ', '"client_epochs": 1'), "table1.md is not what"),
    "a table that is gone": (lambda root: (root / "results/tiny/fig3.md").unlink(), "fig3.md is missing"),
    "a picture that is gone": (lambda root: (root / "results/tiny/fig3.png").unlink(), "fig3.png is missing"),
    "a picture of something else": (
        lambda root: (root / "results/tiny/fig3.svg").write_text("<svg/>"),
        "fig3.svg was drawn from other cells",
    ),
    "a cell that is gone": (lambda root: (root / CELL).unlink(), "table1.md is not what"),
}


def test_a_page_whose_recipe_has_no_such_preset_is_stale(made: Path) -> None:
    here = Place(made / "results")  # the recipes that come along have no preset "tiny"
    findings = check(here).findings
    assert len(findings) == 2
    assert all("does not have" in finding for finding in findings)


@pytest.mark.parametrize("what", DRIFTS)
def test_every_drift_is_found(made: Path, what: str) -> None:
    change, expected = DRIFTS[what]
    change(made)
    assert any(expected in finding for finding in check(place(made), made / "page.md", small_targets()).findings)


def test_drawing_again_mends_it_and_says_what_is_missing(made: Path) -> None:
    (made / CELL).unlink()
    outcome = reproduce("table1", "tiny", place(made), draw_only=True, docs=made / "page.md")
    assert (outcome.cells, outcome.of, outcome.made) == (7, 8, 0)
    assert "**Not run: 1 cells.**" in (made / "page.md").read_text()
    reproduce("fig3", "tiny", place(made), draw_only=True)
    assert not check(place(made), made / "page.md", small_targets()).findings


def test_other_seeds_stand_beside_the_recipes_own(made: Path) -> None:
    outcome = reproduce("table1", "tiny", place(made), seeds=(3,))
    assert (outcome.cells, outcome.of, outcome.made) == (16, 16, 8)
    assert "seeds 0, 3;" in (made / "results/tiny/table1.md").read_text()
    reproduce("fig3", "tiny", place(made), draw_only=True)
    assert not check(place(made), targets=small_targets()).findings


def test_a_cell_that_was_tampered_with_is_refused(made: Path) -> None:
    edit(CELL, '"rounds": 3', '"rounds": 4')(made)
    with pytest.raises(Damaged):
        reproduce("table1", "tiny", place(made), draw_only=True)
    (made / CELL).write_text("{")
    with pytest.raises(Damaged):
        reproduce("table1", "tiny", place(made), draw_only=True)


def test_without_cells_there_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leave out --draw"):
        reproduce("table1", "tiny", place(tmp_path), draw_only=True)


def test_a_page_without_the_block_is_an_error(made: Path) -> None:
    (made / "page.md").write_text("nothing\n")
    with pytest.raises(DataError, match="<!-- end -->"):
        reproduce("table1", "tiny", place(made), draw_only=True, docs=made / "page.md")


def test_an_unknown_target_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="table1"):
        reproduce("table2", place=place(tmp_path))


def test_without_matplotlib_it_says_so_before_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["fedforget.experiments.reproduce"], "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"fedforget\[plots\]"):
        reproduce("fig3", "tiny", place(tmp_path))


@pytest.mark.parametrize("target", ["theory", "fig5", "storage"])
def test_what_is_computed_is_computed_once(target: str, tmp_path: Path) -> None:
    here = Place(tmp_path)
    first = reproduce(target, "test", here)
    assert (first.made, first.cells, first.of) == (1, 1, 1)
    assert reproduce(target, "test", here, resume=True).made == 0
    assert reproduce(target, "test", here).made == 1
    assert not check(here, targets=(target,)).findings


def test_several_requests_at_once_make_figure_4(tmp_path: Path) -> None:
    outcome = reproduce("fig4", "test", Place(tmp_path))
    assert {Path(f).name for f in outcome.files} == {"fig4.md", "fig4.svg", "fig4.png"}
    (sheet,) = outcome.sheets
    touched = {(row[1], row[2], row[3]): row[4] for row in sheet.rows}
    assert touched["even", "2", "SE"] == "2"
    assert touched["adapt", "2", "SE"] == touched["one", "1", "exact"] == "1"
    assert touched["adapt", "2", "FR"] == "1"


def test_a_cell_says_seed_version_digest_and_machine(original: Path) -> None:
    values = json.loads((original / CELL).read_text())
    assert values["seed"] == 0
    assert values["version"]
    assert len(values["digest"]) == 64
    assert values["measured"]["machine"]
    assert set(values["measured"]["seconds"]) == {"wall", "client", "parallel", "cpu"}
    assert set(values) == {"name", "seed", "digest", "version", "case", "result", "measured"}


def test_the_committed_tables_pictures_and_page_are_what_the_committed_cells_say() -> None:
    page = ROOT / "docs/results.md"
    found = check(Place(ROOT / "experiments/results"), page)
    assert found.findings == ()
    assert found.pages >= len(TARGETS)
    shown = set(re.findall(r"<!-- results: (\w+) \w+ -->", page.read_text()))
    assert shown == set(TARGETS)
