"""After a forget nothing of the leaver is in Flower's database, its write-ahead log, or any node's slice folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trials import Trials

from fedforget.engines.local import LocalCohort
from fedforget.errors import FedForgetError
from fedforget.federation import FitResult, FitTask
from fedforget.flower.verbs import settings_of
from fedforget.history import Archive
from fedforget.manifest import Label
from fedforget.sealing import Vault
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.memory import MemoryStore
from fedforget.workspace import Workspace
from fedforget.workspace.state import State
from fedforget.workspace.tasks import build

pytestmark = pytest.mark.flower

CONFIG = {"clients": 4, "shards": 1, "rounds": 2, "epochs": 1, "holders": 4, "threshold": 2, "seed": 6}
LEAVER = "client-002"
RUN = 16


@dataclass(frozen=True)
class Before:
    """What somebody kept who saw every disk before the forget."""

    kept: Path
    state: State
    slices: MemoryStore


@dataclass(frozen=True)
class Watched:
    """The local engine; what the leaver sends is written down."""

    cohort: LocalCohort
    sent: list[bytes] = field(default_factory=list)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for result in self.cohort.fit(tasks):
            if result.client == LEAVER:
                self.sent.append(bytes(result.params.body))
            yield result


@pytest.fixture(scope="module")
def forgotten(processes: Trials) -> tuple[Before, Path]:
    """Trained, everything copied, then forgotten."""
    processes.heal()
    space = processes.new()
    step = {**CONFIG, "workspace": str(space)}
    processes.run({**step, "action": "train"}).expect()
    kept = processes.save(space)
    with Workspace.open(kept / "workspace") as looked:
        state = looked.state()
    slices = MemoryStore()
    for node in processes.federation.nodes.values():
        store = DirectoryStore(kept / "nodes" / node.name / "slices")
        slices.put({k._replace(holder=node.name): store.get(k) or b"" for k in store.keys()})  # noqa: SIM118
    processes.run({**step, "action": "forget", "client": LEAVER}, {**step, "action": "verify"}).expect()
    return Before(kept, state, slices), space


def runs(blob: bytes) -> Iterator[bytes]:
    """Every 16-byte run that says something: zeros are everybody's."""
    for at in range(len(blob) - RUN + 1):
        piece = blob[at : at + RUN]
        if len(set(piece)) > 4:
            yield piece


def holds(blob: bytes, secret: frozenset[bytes]) -> bool:
    return any(blob[at : at + RUN] in secret for at in range(len(blob) - RUN + 1))


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> frozenset[bytes]:
    """Every run of bytes of every upload of the leaver, from the same run on the local engine."""
    settings = settings_of(CONFIG)
    task = build(settings, None)
    folder = tmp_path_factory.mktemp("local") / "w"
    Workspace.init(folder, settings, task=task).close()
    watched = Watched(LocalCohort(task.learner, task.examples))
    with Workspace.open(folder, task=task, make_cohort=lambda *_: watched) as space:
        space.train()
    assert len(watched.sent) == CONFIG["rounds"]
    return frozenset(run for body in watched.sent for run in runs(body))


def test_no_run_of_sixteen_bytes_of_what_the_leaver_sent_is_on_any_disk(
    processes: Trials, forgotten: tuple[Before, Path], secret: frozenset[bytes]
) -> None:
    assert len(secret) > 2000
    fed = processes.federation
    searched = [p for p in fed.folder.rglob("*") if p.is_file()] + [p for p in forgotten[1].rglob("*") if p.is_file()]
    names = {p.name for p in searched}
    assert {"state.db", "state.db-wal"} <= names
    assert sum(p.name.endswith(".slice") for p in searched if fed.folder in p.parents) > 4
    assert [str(p) for p in searched if holds(p.read_bytes(), secret)] == []


def test_the_search_finds_what_lies_open(secret: frozenset[bytes]) -> None:
    some = next(iter(secret))
    assert holds(b"?" * 5 + some + b"?" * 3, secret)
    assert not holds(b"?" * 5 + some[:-1] + b"?" * 3, secret)


def test_no_record_of_the_leaver_opens_with_the_keys_that_remain(forgotten: tuple[Before, Path]) -> None:
    """Not even to somebody who kept every slice and the whole ledger of before."""
    before, space = forgotten
    own = [label for label in before.state.records if label.client == LEAVER]
    assert len(own) == CONFIG["rounds"]
    for label in own:
        assert opens(before, before.kept / "workspace", label), "the attack works with the key that was destroyed"
        assert not opens(before, space, label)


def opens(before: Before, keys: Path, label: Label) -> bool:
    state = before.state
    for path in (keys / "keys").glob("*.key"):
        for epoch in range(3):
            vault = Vault(epoch, path.read_bytes()[-48:-16])
            archive = Archive(state.records, state.archive.bundles, before.slices, vault, state.settings.keeping.cipher)
            try:
                archive.open([label])
            except FedForgetError:
                continue
            return True
    return False


def test_no_node_keeps_a_key_of_its_messages_or_a_slice_of_before(
    processes: Trials, forgotten: tuple[Before, Path]
) -> None:
    old = {(k.stage, k.shard, k.round, k.generation) for k in forgotten[0].slices.keys()}  # noqa: SIM118
    left = set()
    for node in processes.federation.nodes.values():
        assert not list(node.folder.rglob("session.key"))
        left |= {(k.stage, k.shard, k.round, k.generation) for k in DirectoryStore(node.slices / "slices").keys()}  # noqa: SIM118
    assert left
    assert not left & old
