"""Write: from a directory to a page beside it. The rim of this room; the pages themselves are pure."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, NotAWorkspace
from ..workspace import Workspace
from ..workspace.facts import facts
from ..workspace.progress import Progress
from .experiment import Results, experiment_page
from .workspace import workspace_page


@dataclass(frozen=True)
class Written:
    """Where the page is, of what, and how large."""

    path: str
    kind: str  # "workspace" | "experiment"
    bytes: int


def is_workspace(folder: Path) -> bool:
    """What has a part of one, or no results either: then opening it says what is wrong."""
    parts = (folder / name for name in ("federation.toml", "ledger.db"))
    return any(part.exists() for part in parts) or next(_files(folder), None) is None


def write_workspace(
    space: Workspace, out: Path | None, progress: Progress, *, evaluate: bool = True, verify: bool = True
) -> Written:
    page = workspace_page(facts(space, progress, evaluate=evaluate, verify=verify))
    return _written(page, out or _beside(space.path), "workspace")


def write_experiment(folder: Path, out: Path | None) -> Written:
    return _written(experiment_page(read_results(folder)), out or _beside(folder), "experiment")


def read_results(folder: Path) -> Results:
    """Every table, picture and file of values in the folder and those in it."""
    files = list(_files(folder))
    if not files:
        raise NotAWorkspace(folder)
    unread: list[str] = []

    def read(suffix: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for file in files:
            if file.suffix == suffix:
                name = file.relative_to(folder).as_posix()
                try:
                    found[name] = parse(file.read_text(encoding="utf-8"))
                except ValueError:  # neither UTF-8 nor JSON
                    unread.append(name)
        return found

    tables, pictures, values = read(".md", str), read(".svg", str), read(".json", json.loads)
    return Results(folder.resolve().name, tables, pictures, values, unread)


def _files(folder: Path) -> Iterator[Path]:
    found = (p for p in folder.rglob("*") if p.suffix in (".md", ".svg", ".json") and p.is_file())
    return (p for p in sorted(found) if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def _beside(folder: Path) -> Path:
    whole = folder.resolve()
    return whole.with_name(whole.name + ".html")


def _written(page: str, out: Path, kind: str) -> Written:
    if out.is_dir():
        raise DataError(out, "a file to write", "a directory", "name the page, as in --out W.html")
    part = out.with_name(out.name + ".part")  # a page that is there is whole
    part.write_text(page, encoding="utf-8", newline="\n")
    part.replace(out)
    return Written(str(out), kind, len(page.encode()))
