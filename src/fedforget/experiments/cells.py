"""Cells: finished results on disk, one JSON a cell, whole or not at all."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..engines.local import numerics as numerics_of
from ..errors import Damaged
from ..storage.disk import Disk
from .case import digest_of
from .track import Timing


@dataclass(frozen=True)
class Cell:
    """What was asked, what came of it, and what was measured on the way.

    `result` is a function of `case`, version and the machine's arithmetic, and the same however often a run was
    interrupted; `measured` (times, machine) is not, and is kept apart.
    """

    name: str
    case: Mapping[str, Any]
    result: Mapping[str, Any]
    measured: Mapping[str, Any]
    version: str = __version__

    @property
    def digest(self) -> str:
        return digest_of(self.case)

    @property
    def seed(self) -> int | None:
        found: int | None = self.case.get("federation", {}).get("seed", self.case.get("seed"))
        return found

    def to_json(self) -> str:
        values = {
            "name": self.name,
            "seed": self.seed,
            "digest": self.digest,
            "version": self.version,
            "case": self.case,
            "result": self.result,
            "measured": self.measured,
        }
        return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Cells:
    """The cells of one preset below a folder."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def get(self, name: str, digest: str) -> Cell | None:
        """The cell of that name, if it is there and was made of what it would be made of now."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            values = json.loads(path.read_text())
            cell = Cell(values["name"], values["case"], values["result"], values["measured"], values["version"])
            stated = values["digest"]
        except (ValueError, KeyError, TypeError) as fault:
            raise Damaged(path, "a cell's JSON", f"something else ({fault})") from fault
        if stated != cell.digest:
            raise Damaged(path, f"settings of digest {stated[:12]}", f"those of {cell.digest[:12]}")
        return cell if stated == digest else None

    def put(self, cell: Cell) -> None:
        Disk().write(self.path(cell.name), cell.to_json().encode())

    def drop(self, names: Iterable[str]) -> None:
        Disk().delete_all(self.path(name) for name in names)


def measured(timing: Timing | None, learner: object = None) -> dict[str, Any]:
    """Times, and the machine they were measured on."""
    times = {k: None if v is None else round(v, 3) for k, v in asdict(timing).items()} if timing else {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{platform.machine()}, {platform.system()}, {cores} cores, Python {platform.python_version()}"
    arithmetic = {} if learner is None else {"numerics": numerics_of(learner)}  # type: ignore[arg-type]
    return {"seconds": times, "machine": machine, **arithmetic}
