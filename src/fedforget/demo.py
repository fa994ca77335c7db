"""Demo: forget one client five ways, side by side, on the bundled digits, and leave the workspace to explore."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from .forgetting import METHODS
from .manifest import Keeping
from .workspace import FederationSettings, Workspace
from .workspace.progress import Progress, silent
from .workspace.reports import EvaluateReport, TrainReport, VerifyReport

LEAVER = "client-007"
_PAPERS = FederationSettings()


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
    training_seconds: float  # the clients' work
    seconds: float  # all of it: sealing, coding and waiting for the disk too
    from_round: int


@dataclass(frozen=True)
class DemoReport:
    path: str
    settings: FederationSettings
    client: str
    sharded: TrainReport
    unsharded: TrainReport
    sharded_accuracy: float
    unsharded_accuracy: float
    rows: tuple[Row, ...]
    verified: VerifyReport
    seconds: float


def run(
    path: Path, settings: FederationSettings = _PAPERS, progress: Progress = silent, leaver: str = LEAVER
) -> DemoReport:
    """Train sharded and unsharded, as long; forget; compare; prove."""
    began = time.perf_counter()
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spaces, trained, before = {}, {}, {}
        for sharded, place, chosen, what in (
            (True, path, settings, f"{settings.shards} shards"),
            (False, room / "unsharded", unsharded(settings), "unsharded"),
        ):
            spaces[sharded] = stack.enter_context(Workspace.init(place, chosen))
            trained[sharded] = spaces[sharded].train(_named(progress, what))
            before[sharded] = spaces[sharded].evaluate()
        rows = [
            _forget_in_a_copy(spaces[METHODS[m].sharded], room / m, m, leaver, before[METHODS[m].sharded], progress)
            for m in ("clean", "calibrated", "FR", "FE")
        ]
        rows.insert(0, _forget(spaces[True], "exact", leaver, before[True], progress))
        verified = spaces[True].verify(replay=3, never_joined=True, progress=progress)
    return DemoReport(
        str(path),
        settings,
        leaver,
        trained[True],
        trained[False],
        before[True].score("ensemble").test_accuracy,
        before[False].score("shard 0").test_accuracy,
        tuple(rows),
        verified,
        time.perf_counter() - began,
    )


def unsharded(settings: FederationSettings) -> FederationSettings:
    """As long and with as many participants, in one shard, its history kept plainly at the server."""
    keeping = Keeping(layout="server", holders=1, threshold=1)
    return replace(settings, shards=1, participants=settings.shards * settings.participants, keeping=keeping)


def _forget_in_a_copy(
    space: Workspace, place: Path, method: str, leaver: str, before: EvaluateReport, progress: Progress
) -> Row:
    shutil.copytree(space.path, place)
    with Workspace.open(place, task=space.task) as copy:
        return _forget(copy, method, leaver, before, progress)


def _forget(space: Workspace, method: str, leaver: str, before: EvaluateReport, progress: Progress) -> Row:
    report = space.forget([leaver], method, progress=_named(progress, method))
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
        report.seconds,
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
