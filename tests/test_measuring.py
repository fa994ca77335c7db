"""`audit`, `compare` and `report` from the command line, and what they answer in eighty columns."""

import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fedforget import cli, present
from fedforget.evaluation.curves import Attack, Rate
from fedforget.evaluation.signals import VIEWS
from fedforget.report.write import Written
from fedforget.workspace import FederationSettings, Workspace
from fedforget.workspace.audit import AuditReport, Finding
from fedforget.workspace.compare import BackdoorRow, CompareReport, Row

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.delenv("FEDFORGET_PASSPHRASE", raising=False)
    monkeypatch.delenv("FEDFORGET_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedforget", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measure") / "W"
    with Workspace.init(path, FederationSettings(clients=6, shards=2, participants=0, rounds=2, epochs=1)) as space:
        space.train()
        space.forget(["client-001"])
    return path


def document(said: tuple[int, str, str]) -> Any:
    code, out, err = said
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_an_audit_from_the_command_line(run: Run, trained: Path) -> None:
    served = document(run("audit", trained, "--references", 4, "--json"))
    assert served["served"]
    assert served["identical"] == {"served": True}
    assert {f["attack"] for f in served["findings"]} == {"LiRA", "LiRA offline", "RMIA"}
    words = ("audit", trained, "--references", 4, "-c", "client-000", "-c", "client-002", "--each", "-m", "exact")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "Forgotten, in trial, each alone: client-000, client-002" in out
    assert "exact: bit-identical to the run they never joined" in out
    assert run("audit", trained, "-c", "client-001")[0] == 2
    assert run("audit", trained, "--trainings", 0)[0] == 2


def test_a_comparison_from_the_command_line(run: Run, trained: Path) -> None:
    found = document(run("compare", trained, "--json", "--relearn", 0))
    assert [row["world"] for row in found["rows"]] == ["not forgotten", "never joined", "served", "another seed"]
    assert found["rows"][2]["identical"]
    code, out, _ = run("compare", trained, "-c", "client-000", "-m", "exact", "--backdoor", "--relearn", 2)
    assert code == 0
    assert "same bits" in out
    assert "a trigger works in" in out


def test_a_report_from_the_command_line(run: Run, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    found = document(run("report", trained, "--out", out, "--no-evaluate", "--no-verify", "--json"))
    assert found == {"path": str(out), "kind": "workspace", "bytes": len(out.read_bytes())}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.md").write_text("# A\n")
    code, said, err = run("report", tmp_path / "results")
    assert (code, err) == (0, "")
    assert "one page of the experiment" in said.replace("\n", " ")
    assert (tmp_path / "results.html").exists()
    code, _, err = run("report", tmp_path / "nowhere")
    assert code == 3
    assert "fedforget init" in err


@pytest.mark.parametrize("command", ["audit", "compare", "report"])
def test_help_has_an_example(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"fedforget {command} W" in out


# --- in eighty columns ----------------------------------------------------------------------------------------------


def shown(show: Callable[[Console, Any], None], report: object) -> str:
    out = StringIO()
    show(Console(file=out, width=80), report)
    return out.getvalue()


def finding(data: str, world: str, view: Any, attack: Any) -> Finding:
    rates = (Rate(0.001, None, None, "too few"), Rate(0.01, 0.163, (0.1, 0.2)))
    return Finding(data, world, view, attack, Attack(0.776, (0.756, 0.792), rates, 3456, 3456))


def audit_report(**changes: Any) -> AuditReport:
    worlds = ("not forgotten", "exact", "calibrated")
    found = tuple(
        finding(d, w, v, a) for d in ("forgotten", "retained") for v in VIEWS for a in ("LiRA", "RMIA") for w in worlds
    )
    values: dict[str, Any] = {
        "path": "W",
        "task": "digits",
        "learner": "mlp",
        "partition": "iid",
        "forgotten": tuple(f"client-{i:03d}" for i in range(8)),
        "retained": (),
        "served": False,
        "together": False,
        "references": 64,
        "trainings": 6,
        "seed": 0,
        "examples": {"forgotten": 576, "retained": 0},
        "identical": {"exact": True, "calibrated": False},
        "drawn": "trainings and clients",
        "findings": found,
        "notes": ("clean is left out: nothing to borrow",),
        "seconds": 1.0,
    }
    return AuditReport(**{**values, **changes})


def test_an_audit_fits_and_says_what_it_cannot() -> None:
    said = shown(present.audited, audit_report())
    assert all(len(line) <= 80 for line in said.splitlines() if "[" in line), said
    assert "client-005 and 2 more" in said
    assert said.count("0.776 [0.756, 0.792]") == 12
    assert "16.3 %" in said
    assert "clean is left out" in said
    assert "proves nothing" in said
    served = shown(present.audited, audit_report(served=True, retained=("client-009",)))
    assert "Forgotten, as served" in served
    assert "who stay: client-009" in served
    assert "together" in shown(present.audited, audit_report(together=True))


def test_a_comparison_fits() -> None:
    rows = (
        Row("not forgotten", False, 0.127, 0.994, 1.5e-3, 0.969, 0.986, None, 0.0, 1800),
        Row("exact", True, 0.0, 1.0, 0.0, 0.967, 0.979, 0.979, None, 700),
        Row("another seed", False, 1.412, 0.975, 8e-3, 0.964, 0.972, 0.979, 5.5, None),
    )
    report = CompareReport("W", "digits", ("client-007",), (), False, 20, rows, (), ("a note",), 1.0)
    said = shown(present.compared, report)
    assert "same bits" in said
    assert ">20" in said
    assert "5.5" in said
    assert "a note" in said
    assert "trigger" not in said
    planted = CompareReport("W", "digits", ("a",), (), True, 0, rows, (BackdoorRow("exact", 0.0, 0.1),), (), 1.0)
    assert "10.0 %" in shown(present.compared, planted)
    assert "as served" in shown(present.compared, planted)


def test_a_page_is_announced() -> None:
    assert shown(present.reported, Written("W.html", "workspace", 23_100)).startswith(
        "W.html: one page of the workspace"
    )
