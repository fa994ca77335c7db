"""Reproduce: one call for each table and figure. Makes the cells that are missing, then draws from cells alone."""

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtra, SettingError
from ..storage.disk import Disk
from ..workspace.progress import Progress, silent
from . import fig3, fig4, fig5, storage, table1, theory
from .case import digest_of
from .cells import Cell, Cells, measured
from .make import Bench, make
from .page import Page
from .recipe import Recipe, read
from .sheet import Sheet


@dataclass(frozen=True)
class Target:
    """How a table or figure comes about: cells of trainings, or one cell that is computed."""

    sheets: Callable[..., tuple[Sheet, ...]]
    figures: Callable[[Any, str], dict[str, Any]]
    compute: Callable[[Recipe, int], dict[str, Any]] | None = None


def _nothing(cells: Any, stamp: str) -> dict[str, Any]:
    """A table without a picture."""
    return {}


TARGETS: Mapping[str, Target] = {
    "table1": Target(table1.sheets, _nothing),
    "fig3": Target(fig3.sheets, fig3.figures),
    "fig4": Target(fig4.sheets, fig4.figures),
    "fig5": Target(fig5.sheets, fig5.figures, fig5.compute),
    "theory": Target(theory.sheets, theory.figures, theory.compute),
    "storage": Target(storage.sheets, _nothing, storage.compute),
}


@dataclass(frozen=True)
class Place:
    """Where recipes, data and results are. `room`: scratch for what is under way; below `out` unless given."""

    out: Path = Path("experiments/results")
    data: Path | None = None
    recipes: Path | None = None
    room: Path | None = None
    workers: int | None = None

    def cells(self, recipe: Recipe) -> Cells:
        """Of the recipe that makes them: two recipes never write into one another's."""
        return Cells(self.out / recipe.preset / "cells" / recipe.cells)


@dataclass(frozen=True)
class Outcome:
    """What a call came to."""

    target: str
    preset: str
    cells: int
    of: int  # how many the recipe asks for
    made: int
    files: tuple[str, ...]
    sheets: tuple[Sheet, ...]


@dataclass(frozen=True)
class Outcomes:
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Checked:
    """How many pages were compared with their cells, and what differs."""

    pages: int
    findings: tuple[str, ...]


def reproduce(
    target: str,
    preset: str = "quick",
    place: Place | None = None,
    *,
    seeds: Sequence[int] = (),
    resume: bool = False,
    draw_only: bool = False,
    docs: Path | None = None,
    progress: Progress = silent,
) -> Outcome:
    """`resume` keeps cells that are there; else all are made anew. `draw_only` makes none."""
    place = place or Place()
    recipe = recipe_of(target, preset, place)
    if TARGETS[target].figures is not _nothing and find_spec("matplotlib") is None:
        raise MissingExtra("drawing pictures", "plots")
    made = 0 if draw_only else _make(recipe, place, seeds, resume, progress)
    page = page_of(target, preset, place)
    if not page.cells:
        raise DataError(place.cells(page.recipe).folder, f"cells of {target}", "none", "make them: leave out --draw")
    files = page.write(docs)
    return Outcome(target, preset, len(page.cells), page.of, made, tuple(str(f) for f in files), page.sheets)


def recipe_of(target: str, preset: str, place: Place) -> Recipe:
    if target not in TARGETS:
        raise SettingError("target", target, "one of " + ", ".join(TARGETS))
    return read(target, preset, place.recipes)


def check(place: Place | None = None, docs: Path | None = None, targets: Sequence[str] = tuple(TARGETS)) -> Checked:
    """Whether every stored table, picture and page is what the stored cells say; what is not, in words."""
    place = place or Place()
    findings: list[str] = []
    pages = 0
    for folder in sorted(p for p in place.out.glob("*") if (p / "cells").is_dir()):
        for target in targets:
            try:
                page = page_of(target, folder.name, place)
            except SettingError:  # not every recipe has every preset
                stale = folder / f"{target}.md"
                findings += [f"{stale} is of a preset its recipe does not have"] if stale.exists() else []
                continue
            if page.cells or page.path.exists():
                findings += page.findings(docs)
                pages += 1
    return Checked(pages, tuple(findings))


def page_of(target: str, preset: str, place: Place) -> Page:
    """From the cells that are there: of the recipe's seeds, and of whatever others were asked for."""
    recipe, how = recipe_of(target, preset, place), TARGETS[target]
    cells = place.cells(recipe)
    if how.compute is None:
        there = {int(p.name.removeprefix("seed")) for p in cells.folder.glob("*/seed*")}
        cases = recipe.cases(sorted(there | set(recipe.seeds)))
        found = tuple(c for case in cases if (c := cells.get(case.name, case.digest)) is not None)
        wanted, drawn_from = len(cases), found
        sheets = how.sheets(found, recipe.cited) if found else ()
    else:
        wanted = 1
        one = cells.get(_computed_name(recipe), digest_of(_computed_case(recipe)))
        drawn_from = () if one is None else (one,)
        sheets = how.sheets(one.result) if one else ()
    stamp = hashlib.sha256("".join(c.to_json() for c in drawn_from).encode()).hexdigest()
    figures: dict[str, Any] = {}
    if drawn_from and how.figures is not _nothing:
        figures = how.figures(drawn_from if how.compute is None else drawn_from[0].result, stamp)
    return Page(target, recipe, place.out / preset, drawn_from, wanted, sheets, figures, stamp)


def _make(recipe: Recipe, place: Place, seeds: Sequence[int], resume: bool, progress: Progress) -> int:
    cells, how = place.cells(recipe), TARGETS[recipe.name]
    room = (place.room or place.out / "room") / recipe.preset / recipe.cells
    if how.compute is None:
        cases = recipe.cases(seeds)
        if not resume:
            cells.drop(case.name for case in cases)
            shutil.rmtree(room, ignore_errors=True)
        bench = Bench(cells, room, place.data, place.workers)
        return make(cases, bench, progress, recipe.name).made
    name, case = _computed_name(recipe), _computed_case(recipe)
    if resume and cells.get(name, digest_of(case)) is not None:
        return 0
    progress(recipe.name, 0, 1)
    cells.put(Cell(name, case, how.compute(recipe, case["seed"]), measured(None)))
    progress(recipe.name, 1, 1)
    return 1


def _computed_name(recipe: Recipe) -> str:
    return f"seed{recipe.seeds[0]}"


def _computed_case(recipe: Recipe) -> dict[str, Any]:
    return {"seed": recipe.seeds[0], "settings": dict(recipe.values)}


def sweep(place: Place) -> int:
    """Delete what interrupted writes left among the results."""
    return Disk().sweep(place.out) if place.out.is_dir() else 0
