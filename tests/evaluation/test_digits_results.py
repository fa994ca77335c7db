"""The audit as it is stored: what the docs say of it, and what it must show."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["iid", "by-class"])
def stored(request):
    return json.loads((ROOT / f"experiments/audit/digits-{request.param}.json").read_text())


def test_the_docs_have_the_table_the_stored_results_make():
    command = [sys.executable, str(ROOT / "experiments/audit.py"), "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout.strip()
    assert printed in (ROOT / "docs/evaluation.md").read_text()


def result(stored, data, world, view="shard", attack="LiRA"):
    wanted = (data, world, view, attack)
    return next(f["result"] for f in stored["findings"] if (f["data"], f["world"], f["view"], f["attack"]) == wanted)


def times_blind(found, fpr=0.01):
    return next(rate["tpr"] for rate in found["rates"] if rate["fpr"] == fpr) / fpr


def test_lira_finds_who_is_there_and_nobody_after_exact_forgetting(stored):
    assert stored["references"] == 64
    for view in ("shard", "served"):
        assert times_blind(result(stored, "forgotten", "not forgotten", view)) >= 5
        for attack in ("LiRA", "LiRA offline", "RMIA"):
            assert result(stored, "forgotten", "exact", view, attack)["auc"] == 0.5
            assert result(stored, "forgotten", "exact", view, attack)["interval"] == [0.5, 0.5]
    assert stored["identical"] == {"exact": True, "clean": False, "calibrated": False}
    assert result(stored, "forgotten", "calibrated")["auc"] < 0.5, "not between: below, as the docs say"
    for method in ("exact", "clean", "calibrated"):
        assert result(stored, "retained", method)["interval"][0] > 0.65, "who stays is in the model"
        assert result(stored, "forgotten", "not forgotten")["members"] == result(stored, "forgotten", method)["others"]
