"""The same app in Flower's simulation: a hundred virtual clients, and the same bits."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from trials import locally, report

from fedforget.processes import up
from fedforget.workspace import Workspace

pytestmark = pytest.mark.flower
if find_spec("flwr") is None or find_spec("ray") is None:
    pytest.skip("needs the simulation extra", allow_module_level=True)

APP = Path(__file__).parents[2] / "flower"
CONFIG: Mapping[str, Any] = {
    "clients": 100,
    "shards": 4,
    "participants": 5,
    "rounds": 2,
    "epochs": 1,
    "holders": 20,
    "threshold": 10,
    "seed": 1,
}


def test_a_hundred_virtual_clients_train_and_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_worker_niceness", "0")  # Ray's workers give way to everybody, by default
    space, slices = tmp_path / "w", tmp_path / "slices"
    base = {**CONFIG, "workspace": str(space), "slice-dir": str(slices), "wait": 1200.0, "deadline": 1200.0}
    virtual = {"num-supernodes": CONFIG["clients"], "client-resources-num-cpus": 1}

    def verb(action: str, **more: Any) -> Any:
        answer = tmp_path / f"{action}.json"
        config = {**base, "action": action, "report": str(answer), **more}
        run = fed.run(APP, config, federation=virtual, patience=1800)
        if "timed out during startup" in run.said:  # Ray gives itself half a minute, however loaded the machine
            run = fed.run(APP, config, federation=virtual, patience=1800)
        run.expect()
        return report(answer)

    with up(0, simulation=True, folder=tmp_path / "processes") as fed:
        train = verb("train")
        assert train["absent"] == []
        with Workspace.open(space) as looked:
            leaver = looked.state().plan.cohort(0, 0, 0)[0]
        forget = verb("forget", client=leaver)
        assert all(check["passed"] for check in verb("verify")["checks"])
    trained, after = locally(tmp_path / "local", CONFIG, {"client": leaver})
    assert train["digests"] == trained
    assert forget["after"] == after
    assert len(list(slices.iterdir())) == CONFIG["clients"]
