"""Trials: the ready app on real processes, several verbs a run, and the same on the local engine."""

import json
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedforget.engines.local import LocalCohort
from fedforget.federation import FitResult, FitTask, Place
from fedforget.flower.verbs import settings_of
from fedforget.processes import LocalFederation, Run
from fedforget.workspace import Workspace
from fedforget.workspace.tasks import build

NODES = 4
APP = Path(__file__).parent / "trial"
DEADLINE = 300.0  # where nothing is to be lost
_LOSS = re.compile(r"fedforget: (lost|refused) (.*)")


@dataclass
class Trials:
    federation: LocalFederation
    folder: Path
    count: int = 0

    # --- healing ------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Everybody is there, honest, and has no slices."""
        fed = self.federation
        if "superlink" not in fed.children.running:
            fed.start_superlink()
        for node in fed.nodes.values():
            if (node.folder / "fault").exists():  # it may still be busy with what nobody waits for
                fed.stop(node.name)
            for name in ("fault", "last-reply", "old.slice"):
                (node.folder / name).unlink(missing_ok=True)
        for name in set(fed.nodes) - set(fed.online):
            fed.start(name)
        self.clean()

    def clean(self) -> None:
        for node in self.federation.nodes.values():
            shutil.rmtree(node.slices, ignore_errors=True)
            node.slices.mkdir()

    def new(self) -> Path:
        self.count += 1
        return self.folder / f"workspace-{self.count}"

    def fault(self, name: str, what: str) -> None:
        (self.federation.nodes[name].folder / "fault").write_text(what)

    def pid(self, name: str) -> int:
        return self.federation.children.running[name].process.pid

    # --- running ------------------------------------------------------------------------------------------

    def steps(self, *steps: Mapping[str, Any]) -> Mapping[str, str]:
        usual = {"deadline": DEADLINE, "wait": 900.0}
        return {"steps": json.dumps([{**usual, **step} for step in steps])}

    def run(self, *steps: Mapping[str, Any]) -> Run:
        return self.federation.run(APP, self.steps(*steps), patience=2400)

    def submit(self, *steps: Mapping[str, Any]) -> Run:
        return self.federation.submit(APP, self.steps(*steps))

    # --- keeping a state and going back to it -------------------------------------------------------------

    def save(self, space: Path) -> Path:
        """The workspace and all nodes' slices, as they are now."""
        kept = Path(f"{space}-kept")
        shutil.copytree(space, kept / "workspace")
        for node in self.federation.nodes.values():
            shutil.copytree(node.slices, kept / "nodes" / node.name)
        return kept

    def restore(self, kept: Path) -> Path:
        space = self.new()
        shutil.copytree(kept / "workspace", space)
        for node in self.federation.nodes.values():
            shutil.rmtree(node.slices, ignore_errors=True)
            shutil.copytree(kept / "nodes" / node.name, node.slices)
        return space


@dataclass
class Missing:
    """The local engine without those who were lost on Flower, where they were lost."""

    cohort: LocalCohort
    lost: Collection[tuple[str, Place]]

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        yield from self.cohort.fit([t for t in tasks if (t.client, t.place) not in self.lost])


Lost = Collection[tuple[str, Place]]


def locally(
    folder: Path,
    config: Mapping[str, Any],
    forget: Mapping[str, Any] | None = None,
    lost: Lost = (),
    lost_forgetting: Lost = (),
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Digests of the models trained, and after forgetting, on the local engine."""
    settings = settings_of(config)
    task = build(settings, None)
    Workspace.init(folder, settings, task=task).close()
    cohort = Missing(LocalCohort(task.learner, task.examples), lost)
    with Workspace.open(folder, task=task, make_cohort=lambda *_: cohort) as space:
        trained = dict(space.train().digests)
        cohort.lost = lost_forgetting
        after = dict(space.forget([forget["client"]], forget.get("method", "exact")).after) if forget else {}
    return trained, after


def losses(run: Run) -> list[str]:
    """Lines that name who was lost or refused."""
    return [found[0] for line in run.said.splitlines() if (found := _LOSS.search(line))]


def report(path: Path) -> Any:
    return json.loads(path.read_text())
