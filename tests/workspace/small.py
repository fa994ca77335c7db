"""A federation small enough to be made, broken and mended by the hundred, in every layout."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedforget.datasets import Dataset
from fedforget.evidence import certificate
from fedforget.examples import Examples
from fedforget.learners.descent import Descent
from fedforget.learners.linear import Softmax
from fedforget.manifest import Keep, Keeping, Layout
from fedforget.seeds import generator
from fedforget.storage.disk import Disk
from fedforget.storage.rows import is_head
from fedforget.workspace import FederationSettings, Task, Workspace, certify, log

FEATURES, CLASSES = 3, 3
LAYOUTS: tuple[Layout, ...] = ("shard", "cross", "server")
KEEPS: tuple[Keep, ...] = ("full", "lean")
EVERY_KEEPING = tuple(product(LAYOUTS, KEEPS))
METHODS = ("exact", "clean", "calibrated")


def client(number: int) -> str:
    return f"client-{number:03d}"


def small_task(clients: int = 8, features: int = FEATURES) -> Task:
    """Three overlapping clouds of points, four to six of them a client; the learner is softmax regression."""

    def examples(name: str, count: int) -> Examples:
        rng = generator(0, "small", name)
        y = rng.integers(0, CLASSES, count)
        x = np.eye(CLASSES, features)[y] + rng.standard_normal((count, features))
        return Examples(x.astype(np.float32), y)

    mine = {client(i): examples(client(i), 4 + i % 3) for i in range(clients)}
    labels = tuple(str(c) for c in range(CLASSES))
    dataset = Dataset("small", "image", Examples.join(list(mine.values())), examples("test", 30), labels)
    return Task(dataset, Softmax(features, CLASSES, Descent(lr=0.3, batch=4)), mine)


def small_settings(layout: Layout = "shard", keep: Keep = "full", **changes: Any) -> FederationSettings:
    """Eight clients in two shards, three rounds of two clients a shard; any two of three slices are enough."""
    keeping = Keeping(layout, keep, changes.pop("holders", 3), changes.pop("threshold", 2))
    plain = FederationSettings(
        clients=8, shards=2, participants=2, rounds=3, epochs=2, seed=1, federation="small", keeping=keeping
    )
    return replace(plain, **changes)


def make(
    path: Path, layout: Layout = "shard", keep: Keep = "full", *, disk: Disk | None = None, **changes: Any
) -> Workspace:
    """A new workspace, not yet trained. `changes` are settings, `holders` and `threshold` among them."""
    settings = small_settings(layout, keep, **changes)
    return Workspace.init(path, settings, task=small_task(settings.places), disk=disk)


def reopen(path: Path, *, disk: Disk | None = None, seats: int = 8) -> Workspace:
    return Workspace.open(path, task=small_task(seats), disk=disk)


@contextmanager
def opened(path: Path, *, disk: Disk | None = None, seats: int = 8) -> Iterator[Workspace]:
    space = reopen(path, disk=disk, seats=seats)
    try:
        yield space
    finally:
        space.close()


def trained(path: Path, layout: Layout = "shard", keep: Keep = "full", **changes: Any) -> Path:
    """A workspace trained to its end, closed, to be copied by tests that spoil it."""
    space = make(path, layout, keep, **changes)
    space.train()
    space.close()
    return path


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


class Died(Exception):
    """The process ended here."""


def dies_before(step: int) -> Disk:
    """A disk whose process dies just before durable operation `step`, counted from 0."""
    left = iter(range(step))

    def probe(operation: str, target: str) -> None:
        if next(left, None) is None:
            raise Died(f"{operation} {target}")

    return Disk(probe)


def operations(work: Callable[[Disk], None]) -> list[tuple[str, str]]:
    """Every durable operation of a piece of work, in order."""
    seen: list[tuple[str, str]] = []
    work(Disk(lambda operation, target: seen.append((operation, target))))
    return seen


def digests(space: Workspace) -> dict[int, str]:
    """Every served model."""
    return {shard: model.digest for shard, model in space.state().served().items()}


def every_digest(space: Workspace) -> Mapping[tuple[int, int, int], tuple[str, str]]:
    """Every round that is in force: where it began and ended."""
    return {tuple(p): (r.start_digest, r.model_digest) for p, r in space.state().rows.items()}


def certificate_files(space: Workspace) -> set[Path]:
    """Every certificate there is, each of which holds; those the ledger accounts for are all there."""
    files = set(space.path.glob("certificates/*.json"))
    for file in files:
        assert certificate.read(file.read_bytes(), log.public_keys(space)[-1])
    executed = {r.id for r in space.ledger.requests() if r.state == "executed" and "evidence" in r.body["outcome"]}
    assert executed <= {row.request for row in certify.listed(space)}
    assert {Path(row.file) for row in certify.listed(space)} <= files
    return files


def assert_in_order(space: Workspace) -> None:
    """Verified whole; one generation a place, one epoch key, no debt and no file that nobody knows."""
    report = space.verify()
    assert report.passed, report
    assert report.findings == ()
    assert space.ledger.debts() == ()
    state = space.state()
    assert space.keys.epochs() == (state.vault.epoch,)
    known = {key for bundle in state.bundles for key in bundle.keys}
    assert set(space.store.keys()) == known
    places = [(b.stage, b.shard, b.round, is_head(b)) for b in state.bundles]
    assert len(places) == len(set(places))
    known_files = {space.store.path(key) for key in known}
    known_files |= {space.path / name for name in ("federation.toml", "ledger.db", "lock", "keys/tombstones.json")}
    known_files |= {space.keys.path(state.vault.epoch), space.keys.log_path, space.keys.note_path}
    known_files |= certificate_files(space)
    found = {Path(folder, name) for folder, _, names in os.walk(space.path) for name in names}
    assert found <= known_files, found - known_files
    assert not any(r.state == "rebuilding" for r in space.ledger.requests())
