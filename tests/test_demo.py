"""The demo: five ways side by side, and a workspace left behind that proves the exact one."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fedforget import present
from fedforget.demo import LEAVER, DemoReport, cost_shares, run, unsharded
from fedforget.errors import WorkspaceExists
from fedforget.manifest import Keeping
from fedforget.workspace import FederationSettings, Workspace

SMALL = FederationSettings(
    clients=12, shards=3, participants=2, rounds=3, epochs=2, keeping=Keeping(holders=4, threshold=2)
)


def shown(report: DemoReport) -> str:
    out = StringIO()
    present.demo(Console(file=out, width=80), report)
    return out.getvalue()


def check(report: DemoReport, settings: FederationSettings) -> None:
    """What holds of the demo at any size."""
    assert [r.method for r in report.rows] == ["exact", "clean", "calibrated", "FR", "FE"]
    assert [r.guarantee for r in report.rows] == ["X1", "X3", "A", "X1", "A"]
    rows = {r.method: r for r in report.rows}
    assert rows["clean"].client_epochs < rows["exact"].client_epochs < rows["FR"].client_epochs
    assert rows["FE"].client_epochs < rows["FR"].client_epochs
    assert cost_shares(report)["FR"] == 1
    assert report.sharded.client_epochs == report.unsharded.client_epochs
    assert all(r.before == report.sharded_accuracy for r in report.rows if r.sharded)
    assert all(r.before == report.unsharded_accuracy for r in report.rows if not r.sharded)
    assert report.verified.passed
    assert [c.what for c in report.verified.checks][-2:] == ["replay", "never joined"]
    with Workspace.open(report.path) as space:
        assert space.settings.shards == settings.shards
        status = space.status()
        assert status.forgotten == (report.client,)
        assert {str(s.shard): s.digest for s in status.shards} != dict(report.sharded.digests)
        assert space.verify().passed


def test_a_small_demo_compares_five_ways_and_leaves_the_exact_one(tmp_path: Path) -> None:
    with Workspace.init(tmp_path / "look", SMALL) as space:
        leaver = space.state().plan.cohort(0, 0, 0)[0]
    told: list[str] = []
    report = run(tmp_path / "w", SMALL, lambda what, done, total: told.append(what), leaver)
    check(report, SMALL)
    for name in ("3 shards", "unsharded", "exact", "clean", "calibrated", "FR", "FE", "never joined"):
        assert name in told
    text = shown(report)
    assert "12 clients in 3 isolated shards of 2 a round" in text
    assert f"forget {leaver} five ways" in text
    assert f"fedforget status {tmp_path / 'w'}" in text
    assert "ok   never joined" in text


def test_the_comparison_trains_as_many_in_one_shard() -> None:
    whole = unsharded(SMALL)
    assert (whole.shards, whole.participants, whole.rounds) == (1, 6, 3)
    assert whole.keeping.layout == "server"


def test_a_directory_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(WorkspaceExists):
        run(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.slow
def test_the_demo_as_it_is_run(tmp_path: Path) -> None:
    report = run(tmp_path / "w")
    check(report, FederationSettings())
    assert report.client == LEAVER
    assert abs(report.sharded_accuracy - report.unsharded_accuracy) < 0.02
    assert all(r.accuracy > 0.94 for r in report.rows)
    rows = {r.method: r for r in report.rows}
    assert rows["exact"].client_epochs * 3 < rows["FR"].client_epochs
    assert all(len(line) <= 100 for line in shown(report).replace(report.path, "demo").splitlines())
