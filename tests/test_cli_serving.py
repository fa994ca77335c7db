"""The verbs that hand models out: export, the register of exports, and the endpoint as a process."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from fedforget.params import Params
from test_cli import SIZE, Run, run  # noqa: F401  (a fixture)


@pytest.fixture
def trained(run: Run, tmp_path: Path) -> Path:  # noqa: F811
    path = tmp_path / "w"
    run("init", path, *SIZE)
    run("train", path)
    return path


def test_export_and_who_must_be_told(run: Run, trained: Path, tmp_path: Path) -> None:  # noqa: F811
    assert run("exports", trained).out == "Nobody was given a model.\n"
    first = run("export", trained, "--out", tmp_path / "m", "--combine", "ensemble", "--to", "hospital-17")
    assert f"Wrote {tmp_path / 'm'}: ensemble of shards 0, 1," in " ".join(first.out.split())
    assert "Guarantee X1 (exact)" in first.out
    report = run("export", trained, "--out", tmp_path / "n", "--json").document
    assert Params.from_bytes((tmp_path / "n").read_bytes()).digest == report["digest"]
    run("forget", trained, "--client", "client-002")
    register = run("exports", trained)
    assert "TELL export 1 to hospital-17 on " in register.out
    assert "it holds what request 1 has made us forget since" in register.out
    assert run("exports", trained, "--told", 1, "--told", 2).out.startswith("ok   export 1")
    assert run("export", trained, "--out", tmp_path / "m", "--combine", "sum").code == 2
    assert "Served: X1 (exact)" in run("status", trained).out
    assert "Combinations: X1 (exact)" in run("evaluate", trained).out


def test_the_endpoint_serves_until_it_is_interrupted(trained: Path) -> None:
    command = [sys.executable, "-m", "fedforget", "serve-model", str(trained), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]
            address = json.loads("".join(lines))["address"]
            with urllib.request.urlopen(f"{address}/status", timeout=30) as reply:
                assert json.load(reply)["guarantee"]["grade"] == "X1"
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
