"""Done on Flower's processes and done here, training and exact forgetting end in the same bits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trials import Trials, locally, report

pytestmark = pytest.mark.flower

SMALL = {"rounds": 2, "epochs": 1}
FEDERATIONS: Mapping[str, Mapping[str, Any]] = {
    "two clients, one shard": {**SMALL, "clients": 2, "shards": 1},
    "four clients, two shards": {**SMALL, "clients": 4, "shards": 2, "epochs": 2, "seed": 3},
    "cross layout, the paper's": {**SMALL, "clients": 4, "shards": 2, "layout": "cross", "partition": "by-class"},
    "lean history, by draw": {**SMALL, "clients": 4, "shards": 1, "participants": 2, "history": "lean", "seed": 2},
    "a multilayer perceptron": {**SMALL, "clients": 3, "shards": 1, "learner": "mlp", "hidden": 8, "seed": 1},
}


@pytest.fixture(scope="module")
def done(processes: Trials) -> Mapping[str, Path]:
    """All of them, one after the other on clean nodes, in one run."""
    processes.heal()
    folders = [str(node.slices) for node in processes.federation.nodes.values()]
    steps: list[Mapping[str, Any]] = []
    found = {}
    for name, config in FEDERATIONS.items():
        found[name] = space = processes.new()
        common = {**config, "workspace": str(space)}
        steps.append({**common, "action": "train", "report": f"{space}-train.json", "wipe": folders})
        steps.append({**common, **leaver(config), "action": "forget", "report": f"{space}-forget.json"})
    processes.run(*steps).expect()
    return found


def leaver(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"client": "client-001"}


@pytest.mark.parametrize("name", FEDERATIONS)
def test_the_models_are_those_of_the_local_engine(done: Mapping[str, Path], name: str, tmp_path: Path) -> None:
    config = FEDERATIONS[name]
    trained, after = locally(tmp_path / "w", config, leaver(config))
    train, forget = report(Path(f"{done[name]}-train.json")), report(Path(f"{done[name]}-forget.json"))
    assert train["absent"] == []
    assert train["digests"] == trained
    assert forget["guarantee"]["grade"] == "X1"
    assert forget["after"] == after
    assert forget["before"] == trained
    assert after != trained
