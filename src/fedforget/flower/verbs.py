"""The ready ServerApp: the verbs of a workspace, with SuperNodes for clients and for holders."""

import io
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from flwr.app import Context
from flwr.serverapp import Grid
from rich.console import Console

from .. import present
from ..engines.flower import GridCohort, GridStore
from ..engines.flower_post import Post
from ..errors import FedForgetError, NotAWorkspace, SettingError
from ..forgetting import Calibration
from ..storage import nodes
from ..storage.disk import Disk
from ..workspace import FederationSettings, Workspace
from ..workspace.progress import Progress
from ..workspace.reports import to_json
from ..workspace.tasks import seat_names
from .roll import Roll
from .task import Talk

log = logging.getLogger("fedforget")
Config = Mapping[str, Any]


@dataclass(frozen=True)
class Verb:
    call: Callable[[Workspace, Config], Any]
    show: Callable[[Console, Any], None]
    nodes: bool = True  # whether it asks them anything


def _train(space: Workspace, config: Config) -> Any:
    return space.train(progress)


def _plan(space: Workspace, config: Config) -> Any:
    return space.plan(names(config, "client"), _method(config), _calibration(config))


def _forget(space: Workspace, config: Config) -> Any:
    return space.forget(names(config, "client"), _method(config), _calibration(config), progress)


def _verify(space: Workspace, config: Config) -> Any:
    return space.verify(int(config.get("replay", 0)), bool(config.get("never-joined", False)), progress=progress)


def _repair(space: Workspace, config: Config) -> Any:
    return space.repair(names(config, "gone"), progress)


def _evaluate(space: Workspace, config: Config) -> Any:
    return space.evaluate(progress)


def _status(space: Workspace, config: Config) -> Any:
    return space.status(members=True)


def _release(space: Workspace, config: Config) -> Any:
    """The next node that names one of these clients is bound to it."""
    for client in names(config, "client"):
        nodes.release(space.ledger, client)
    return space.status(members=True)


VERBS = {
    "train": Verb(_train, present.trained),
    "plan": Verb(_plan, present.planned, nodes=False),
    "forget": Verb(_forget, present.forgot),
    "verify": Verb(_verify, present.verified),
    "repair": Verb(_repair, present.repaired),
    "evaluate": Verb(_evaluate, present.evaluated, nodes=False),
    "status": Verb(_status, present.status, nodes=False),
    "release": Verb(_release, present.status, nodes=False),
}


def run(grid: Grid, context: Context) -> Any:
    """Do what the run's configuration asks for. Its report is logged, and written to the file `report` names."""
    speak()
    config = context.run_config
    try:
        report = _run(grid, config)
    except FedForgetError as fault:
        log.error("fedforget: %s", fault)
        _write(config, {"error": str(fault), "exit_code": fault.exit_code})
        raise
    _write(config, to_json(report))
    return report


def _run(grid: Grid, config: Config) -> Any:
    action = str(config.get("action", "train"))
    if action not in VERBS:
        raise SettingError("action", action, "one of " + ", ".join(VERBS))
    folder, verb = workspace_path(config), VERBS[action]
    data = Path(str(config["data"])) if config.get("data") else None
    if action == "train" and not (folder / "federation.toml").exists():
        Workspace.init(folder, settings_of(config), data=data, passphrase=_passphrase()).close()
    with Workspace.open(folder, data=data, passphrase=_passphrase()) as space:
        if verb.nodes:
            leaving = names(config, "client") + names(config, "gone")
            with joined(space, grid, config, leaving) as joint:
                report = verb.call(joint, config)
        else:
            report = verb.call(space, config)
    tell(verb.show, report)
    if action == "verify":
        report.raise_if_failed()
    return report


@contextmanager
def joined(space: Workspace, grid: Grid, config: Config, leaving: tuple[str, ...] = ()) -> Iterator[Workspace]:
    """The workspace with the federation's nodes for clients and holders; in the end they have all that waited."""
    with nodes_of(space, grid, config, leaving) as store:
        talk = Talk(space.settings, space.ledger)
        cohort = GridCohort(store, talk.write, talk.read)
        yield replace(space, store=store, make_cohort=lambda *_: cohort)


@contextmanager
def nodes_of(space: Workspace, grid: Grid, config: Config, leaving: tuple[str, ...] = ()) -> Iterator[GridStore]:
    """The nodes as holders of slices. Whoever stays is waited for at first; those who leave need not be there."""
    identity: Literal["key", "partition"] = "partition" if config.get("identity") == "partition" else "key"
    roll = Roll(space.ledger, seat_names(space.settings))
    post = Post(grid, roll, float(config.get("deadline", 300.0)), identity, space.settings.federation)
    store = GridStore(post, space.store)
    if space.ledger.get("holders", "here") != store.place:
        space.ledger.put("holders", store.place)
    stages = len(space.ledger.stages())
    there = [m.client for m, gone in space.ledger.members() if gone is None and m.present(stages - 1)]
    post.meet([c for c in there if c not in leaving], float(config.get("wait", 60.0)))
    try:
        yield store
    finally:
        store.flush(close=True)


# --- configuration ------------------------------------------------------------------------------------------


def workspace_path(config: Config) -> Path:
    folder = Path(str(config.get("workspace", "")))
    if not folder.is_absolute():
        raise SettingError("workspace", str(config.get("workspace", "")), "an absolute path on the ServerApp's machine")
    if folder.is_file():
        raise NotAWorkspace(folder)
    return folder


def names(config: Config, key: str) -> tuple[str, ...]:
    return tuple(name for part in str(config.get(key, "")).split(",") if (name := part.strip()))


def settings_of(config: Config) -> FederationSettings:
    """A new federation's settings from the run's, by the names `fedforget init` has."""
    own = {k: v for k, v in config.items() if k in FederationSettings.__dataclass_fields__ and k != "keeping"}
    clients = int(config.get("clients", FederationSettings.clients))
    holders = int(config.get("holders", 0)) or min(clients, 20)
    keeping = {
        "layout": config.get("layout", "shard"),
        "keep": config.get("history", "full"),
        "holders": holders,
        "threshold": int(config.get("threshold", 0)) or max(1, holders // 2),
    }
    return FederationSettings.of({**own, "keeping": keeping})


def _method(config: Config) -> str:
    return str(config.get("method", "exact"))


def _calibration(config: Config) -> Calibration:
    length = float(config.get("length", 0.0)) or None
    return Calibration(float(config.get("ratio", 2.0)), int(config.get("interval", 1)), length=length)


def _passphrase() -> str | None:
    return os.environ.get("FEDFORGET_PASSPHRASE") or None


# --- what the operator sees ---------------------------------------------------------------------------------


def speak() -> None:
    """Our lines go where Flower's go, so that `flwr run --stream` and `flwr log` show them."""
    theirs = logging.getLogger("flwr")
    log.setLevel(logging.INFO)
    log.handlers = list(theirs.handlers)


def tell(show: Callable[[Console, Any], None], report: Any) -> None:
    """A report as a person reads it, line by line in the log."""
    said = io.StringIO()
    show(Console(file=said, width=110), report)
    for line in said.getvalue().splitlines():
        log.info("%s", line)


def progress(what: str, done: int, total: int) -> None:
    if what in ("training", "forgetting") or done + 1 >= total:
        log.info("fedforget: %s %d/%d", what, done, total)


_: Progress = progress


def _write(config: Config, report: Mapping[str, Any]) -> None:
    text = json.dumps(report, ensure_ascii=False)
    log.info("fedforget: report %s", text)
    if config.get("report"):
        Disk().write(Path(str(config["report"])), text.encode())
