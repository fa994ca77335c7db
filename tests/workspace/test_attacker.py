"""Who has the disks of the server and of every holder, and lacks one small file, has nothing."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from small import EVERY_KEEPING, LAYOUTS, client, opened, small_settings, small_task, trained

from fedforget.errors import FedForgetError
from fedforget.federation import Place
from fedforget.history import Archive
from fedforget.manifest import Bundle, Cipher, Keep, Label, Layout, Record
from fedforget.sealing import Vault
from fedforget.slices import SliceKey
from fedforget.storage.disk import Disk
from fedforget.storage.ledger import Ledger
from fedforget.storage.memory import MemoryStore
from fedforget.workspace import Workspace

LEAVER = client(7)  # drawn first in round 1
RUN = 16


# --- without the epoch key ----------------------------------------------------------------------------------


def runs(blob: bytes) -> Iterator[bytes]:
    """Every 16-byte run that says something: padding and zeros are everybody's."""
    for at in range(len(blob) - RUN + 1):
        piece = blob[at : at + RUN]
        if len(set(piece)) > 4:
            yield piece


def tensors(space: Workspace) -> Iterator[bytes]:
    """The numbers of every upload and every model of the run."""
    state = space.state()
    for place in state.rows:
        yield from (bytes(upload.params.body) for upload in state.past.uploads(place))
        yield bytes(state.past.checkpoint(place).body)
    yield from (bytes(model.body) for model in state.served().values())


def files_without_keys(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.parent.name != "keys"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pooled_slices_and_the_database_look_random_and_hold_no_run_of_any_tensor(room: Path, layout: Layout):
    settings = small_settings(layout, "full")
    space = Workspace.init(room / "w", settings, task=small_task(8, features=40))
    space.train()
    secret = {run for numbers in tensors(space) for run in runs(numbers)}
    space.forget([LEAVER])
    secret |= {run for numbers in tensors(space) for run in runs(numbers)}
    space.close()
    assert len(secret) > 10_000

    files = files_without_keys(room / "w")
    for name, blob in files.items():
        assert not any(blob[at : at + RUN] in secret for at in range(len(blob) - RUN + 1)), name

    slices = b"".join(blob for name, blob in sorted(files.items()) if name.endswith(".slice"))
    counts = np.bincount(np.frombuffer(slices, np.uint8), minlength=256)
    expected = len(slices) / 256
    assert expected > 30
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi_square - 255) < 7 * np.sqrt(2 * 255)
    assert len(zlib.compress(slices, 9)) >= len(slices)


def test_this_test_would_find_a_tensor_that_lies_open(room: Path):
    trained(room / "w")
    with opened(room / "w") as space:
        (upload, *_) = space.state().past.uploads(Place(0, 0, 0))
        secret = {run for numbers in tensors(space) for run in runs(numbers)}
    leak = b"?" * 5 + bytes(upload.params.body) + b"?" * 3
    assert any(leak[at : at + RUN] in secret for at in range(len(leak) - RUN + 1))


# --- with every disk as it ever was, and the keys as they are after the forget -------------------------------


@dataclass
class Attacker:
    """Collects every slice and every row the disks ever held."""

    path: Path
    cipher: Cipher
    slices: dict[SliceKey, set[bytes]] = field(default_factory=dict)
    records: set[Record] = field(default_factory=set)
    bundles: set[Bundle] = field(default_factory=set)
    databases: int = 0
    _last: bytes = b""

    def look(self) -> None:
        with sqlite3.connect(f"file:{self.path / 'ledger.db'}?mode=ro", uri=True) as db:
            seen = "\n".join(db.iterdump()).encode()
        db.close()
        if seen != self._last:
            self._last, self.databases = seen, self.databases + 1
            ledger = Ledger.open(f"sqlite:///{self.path / 'ledger.db'}")
            for pending in (None, 1, 2):
                self.records |= set(ledger.records("small", pending).values())
                self.bundles |= set(ledger.bundles("small", pending))
            ledger.close()
        with opened(self.path) as space:
            for key in space.store.keys():  # noqa: SIM118
                self.slices.setdefault(key, set()).add(space.store.get(key) or b"")

    def opens(self, keys: Iterable[Vault], label: Label) -> bool:
        """Try every key on every wrapped key and every set of slices ever seen."""
        wrapped = {r.wrapped for r in self.records if r.label == label}
        bundles = [b for b in self.bundles if label in b.by_label]
        assert wrapped, "the attacker has the record"
        assert bundles, "and knows its slices"
        record = next(r for r in self.records if r.label == label)
        for vault in keys:
            for key in wrapped:
                for bundle in bundles:
                    store = MemoryStore({k: next(iter(self.slices[k])) for k in bundle.keys if k in self.slices})
                    archive = Archive({label: replace(record, wrapped=key)}, {label: bundle}, store, vault, self.cipher)
                    try:
                        archive.open([label])
                    except FedForgetError:
                        continue
                    return True
        return False


def keys_of(path: Path) -> list[Vault]:
    """Every key file there is, tried as the key of every epoch."""
    secrets = [p.read_bytes()[-48:-16] for p in (path / "keys").glob("*.key")]
    return [Vault(epoch, secret) for secret in secrets for epoch in range(3)]


@pytest.mark.parametrize("method", ["exact", "clean", "calibrated"])
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_the_disks_before_and_during_and_the_keys_after_open_nothing_of_the_leaver(
    room: Path, layout: Layout, keep: Keep, method: str
):
    path = trained(room / "w", layout, keep)
    with opened(path) as space:
        attacker = Attacker(path, space.settings.keeping.cipher)
        old_keys = keys_of(path)
    attacker.look()

    def probe(operation: str, target: str) -> None:
        if operation in ("commit", "rename", "delete", "erase"):
            attacker.look()

    with opened(path) as space:
        before = space.state()
        quiet = replace(space, disk=Disk(probe), ledger=replace(space.ledger, probe=probe))
        (reach,) = quiet.forget([LEAVER], method).touches
        after = space.state()
    assert attacker.databases > 4

    tainted = [x for x in before.records if x.place.cell == (reach.stage, reach.shard) and x.round >= reach.from_round]
    own = [label for label in before.records if label.client == LEAVER]
    assert tainted
    assert own or keep == "lean"
    assert set(own) <= set(tainted)
    new_keys = keys_of(path)
    for label in tainted:
        assert attacker.opens(old_keys, label), "the attack works with the key that was destroyed"
        assert not attacker.opens(new_keys, label)
    for label in list(after.records)[:4]:
        assert attacker.opens(new_keys, label), "the attack works on what is in force"


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_after_cleaning_nothing_of_the_leaver_lies_anywhere(room: Path, layout: Layout, keep: Keep):
    path = trained(room / "w", layout, keep)
    with opened(path) as space:
        before = {key: space.store.get(key) for key in space.store.keys()}  # noqa: SIM118
        state = space.state()
        old = {key for b in state.bundles if any(s.label.client == LEAVER for s in b.spots) for key in b.keys}
        (reach,) = space.forget([LEAVER]).touches
        state, left = space.state(), set(space.store.keys())
        assert LEAVER not in {c for row in state.rows.values() for c in row.roster}
        assert LEAVER not in {label.client for label in state.records}
        assert LEAVER not in {holder for bundle in state.bundles for holder in bundle.holders}
        assert LEAVER not in state.plan.clients
        assert not list(space.store.keys(LEAVER))
        assert not left & old
        for key in left:
            tainted = key.shard in (reach.shard, -1) and key.round >= reach.from_round
            assert key.generation == 1 or not tainted
        kept = Counter(key.generation for key in left)
        assert set(kept) <= {0, 1}
        assert all(space.store.get(key) == before[key] for key in left & before.keys())
