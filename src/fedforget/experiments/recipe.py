"""Recipe: what an experiment's TOML says, read into cases."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import DataError, SettingError
from ..forgetting import method_named
from .case import Case, Federation, Probe, Request

SHIPPED = Path(__file__).parent / "recipes"  # in an installed wheel
CHECKOUT = Path(__file__).parents[3] / "experiments"


@dataclass(frozen=True)
class Recipe:
    """One preset of one TOML. `cells`: the recipe whose cells this one shows; its own name if it makes them."""

    name: str
    preset: str
    title: str
    cells: str
    values: Mapping[str, Any]  # the preset's table
    cited: tuple[Mapping[str, Any], ...] = ()  # what is known of the paper's numbers, and where from

    def cases(self, seeds: Sequence[int] = ()) -> tuple[Case, ...]:
        """Every cell of the grids, trainings before what starts from them."""
        found: dict[str, Case] = {}
        for grid in self.values.get("grid", ()):
            for case in _of_grid(self.values, grid, tuple(seeds) or self.seeds):
                found.setdefault(case.name, case)
        return tuple(found.values())

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.values.get("seeds", (0,)))


def folder() -> Path:
    """Where the recipes are: beside the results in a checkout, in the package where it was installed."""
    return SHIPPED if SHIPPED.is_dir() else CHECKOUT


def read(name: str, preset: str, root: Path | None = None) -> Recipe:
    path = (root or folder()) / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text())
    except (FileNotFoundError, tomllib.TOMLDecodeError) as fault:
        raise DataError(path, "an experiment's TOML", str(fault), "give its folder with --recipes") from fault
    source = values.get("cells", name)
    presets = values if source == name else tomllib.loads((path.with_name(f"{source}.toml")).read_text())
    known = [key for key, value in presets.items() if isinstance(value, dict)]
    if preset not in known:
        raise SettingError("preset", preset, f"one of {', '.join(known)}")
    return Recipe(name, preset, values["title"], source, presets[preset], tuple(values.get("cited", ())))


def _of_grid(preset: Mapping[str, Any], grid: Mapping[str, Any], seeds: Sequence[int]) -> Iterator[Case]:
    probe = Probe(**_known(Probe, preset.get("probe", {})))
    ratio = float(preset.get("ratio", 2.0))
    requests = [(int(count), pattern) for count, pattern in grid.get("requests", [[1, "adapt"]])]
    for task, partition, seed in product(grid["tasks"], grid.get("partitions", ["iid"]), seeds):
        chosen = {**preset.get("federation", {}), **preset.get("task", {}).get(task, {})}
        for sharded in (False, True):
            methods = grid.get("sharded" if sharded else "unsharded", [])
            if not methods:
                continue
            draw = grid.get("draw", "once")
            given = {**chosen, "task": task, "partition": partition, "seed": seed, "sharded": sharded, "draw": draw}
            federation = Federation(**_known(Federation, given))
            yield Case(federation, probe)
            for method, (count, pattern) in product(methods, requests):
                method_named(method)
                if not (method == "clean" and pattern == "even" and count > 1):  # it borrows from a shard nobody leaves
                    yield Case(federation, probe, Request(method, count, pattern, ratio))


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    for name, value in values.items():
        if name not in names:
            raise SettingError(name, value, "one of " + ", ".join(sorted(names)))
    return dict(values)
