"""A Table 1 of the bundled digits, small enough to be made again and again."""

import json
from pathlib import Path
from typing import Any

from fedforget.experiments import Place

RECIPE = """
title = "Small"

[tiny]
seeds = [0]

[[tiny.grid]]
tasks = ["digits"]
unsharded = ["FR", "FE"]
sharded = ["SE", "exact", "clean", "FR"]

[tiny.federation]
clients = 12
participants = 8
shards = 4
rounds = 3
epochs = 2
examples = 240

[tiny.probe]
test = 60
attack = 20
curve = 30
"""


def place(root: Path) -> Place:
    """Results, scratch and recipes below `root`; the recipe is there already if it was written before."""
    recipes = root / "recipes"
    recipes.mkdir(parents=True, exist_ok=True)
    for name, text in (("table1", RECIPE), ("fig3", 'title = "Small"\ncells = "table1"\n')):
        if not (recipes / f"{name}.toml").exists():
            (recipes / f"{name}.toml").write_text(text)
    return Place(root / "results", None, recipes)


def results(place: Place) -> dict[str, Any]:
    """What each cell says but times and machine: what has to be the same however often a run was interrupted."""
    found = {}
    for path in sorted(place.out.rglob("cells/**/*.json")):
        values = json.loads(path.read_text())
        assert values.pop("measured")["seconds"]["wall"] >= 0
        found[str(path.relative_to(place.out))] = json.dumps(values)
    return found
