"""Demo: forget one client five ways, side by side, on the bundled digits, and leave the workspace to explore."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import WorkspaceExists
from .forgetting import METHODS
from .manifest import Keeping
from .workspace import FederationSettings, Workspace
from .workspace.progress import Progress, silent
from .workspace.reports import EvaluateReport, TrainReport, VerifyReport

LEAVER = "client-007"


@dataclass(frozen=True)
class Row:
    """One method's outcome."""

    method: str
    title: str
    sharded: bool
    guarantee: str
    reason: str
    accuracy: float  # what is served: the ensemble of shards, or the one model
    before: float
    forgotten_accuracy: float
    client_epochs: int
    seconds: float
    from_round: int


@dataclass(frozen=True)
class DemoReport:
    path: str
    client: str
    sharded: TrainReport
    unsharded: TrainReport
    sharded_accuracy: float
    unsharded_accuracy: float
    rows: tuple[Row, ...]
    verified: VerifyReport
    seconds: float


def run(path: Path, seed: int = 0, progress: Progress = silent) -> DemoReport:
    """Train sharded and unsharded, as long; forget; compare; prove."""
    began = time.perf_counter()
    if path.exists() and any(path.iterdir()):
        raise WorkspaceExists(path)
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        spaces, trained, before = {}, {}, {}
        for sharded, place, settings in (
            (True, path, FederationSettings(seed=seed)),
            (False, room / "unsharded", _unsharded(seed)),
        ):
            spaces[sharded] = Workspace.init(place, settings)
            trained[sharded] = spaces[sharded].train(_named(progress, "4 shards" if sharded else "unsharded"))
            before[sharded] = spaces[sharded].evaluate()
        rows = [
            _forget(spaces[METHODS[m].sharded], room / m, m, before[METHODS[m].sharded], progress)
            for m in ("clean", "calibrated", "FR", "FE")
        ]
        rows.insert(0, _forget(spaces[True], path, "exact", before[True], progress))
        verified = spaces[True].verify(replay=3, never_joined=True, progress=progress)
    return DemoReport(
        str(path),
        LEAVER,
        trained[True],
        trained[False],
        before[True].score("ensemble").test_accuracy,
        before[False].score("shard 0").test_accuracy,
        tuple(rows),
        verified,
        time.perf_counter() - began,
    )


def _unsharded(seed: int) -> FederationSettings:
    """As long and with as many participants, in one shard, its history kept plainly at the server."""
    keeping = Keeping(layout="server", holders=1, threshold=1)
    return replace(FederationSettings(seed=seed), shards=1, participants=20, keeping=keeping)


def _forget(space: Workspace, place: Path, method: str, before: EvaluateReport, progress: Progress) -> Row:
    """In a copy of the trained workspace, or, where `place` is its own, in itself."""
    if place != space.path:
        shutil.copytree(space.path, place)
        space = Workspace.open(place, task=space.task)
    report = space.forget([LEAVER], method, progress=_named(progress, method))
    served = "ensemble" if METHODS[method].sharded else "shard 0"
    score = space.evaluate().score(served)
    return Row(
        method,
        METHODS[method].title,
        METHODS[method].sharded,
        report.guarantee.grade,
        report.guarantee.reason,
        score.test_accuracy,
        before.score(served).test_accuracy,
        score.forgotten_accuracy or 0.0,
        report.client_epochs,
        report.wall_seconds,
        min((r.from_round for r in report.touches), default=0),
    )


def _named(progress: Progress, name: str) -> Progress:
    def tell(what: str, done: int, total: int) -> None:
        progress(name, done, total)

    return tell


def cost_shares(report: DemoReport) -> Mapping[str, float]:
    """Each method's client-epochs beside those of training again unsharded (FR)."""
    whole = next(r.client_epochs for r in report.rows if r.method == "FR")
    return {r.method: r.client_epochs / whole for r in report.rows}
