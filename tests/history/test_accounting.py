"""The accounting's sums are the bytes of the files a real run leaves."""

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fedforget.history.accounting import Model, Traffic, account
from fedforget.manifest import Keeping
from fedforget.plan import Change
from fedforget.slices import HEAD, SERVER, SliceKey, SliceStore
from fedforget.storage.directory import DirectoryStore
from fedforget.workspace import FederationSettings, Workspace
from fedforget.workspace.storage import storage_report


def bytes_below(folder: Path) -> dict[str, int]:
    """Bytes of every holder's files."""
    return {h.name: sum(f.stat().st_size for f in h.rglob("*") if f.is_file()) for h in folder.iterdir()}


@pytest.mark.parametrize(
    "keeping",
    [
        Keeping("shard", "full", 4, 2),
        Keeping("shard", "lean", 3, 2),
        Keeping("cross", "full", 9, 2),
        Keeping("cross", "lean", 7, 2),
        Keeping("server", "full", 1, 1),
    ],
    ids=lambda k: f"{k.layout}-{k.keep}",
)
def test_what_is_counted_is_what_lies_on_disk(tmp_path: Path, keeping: Keeping) -> None:
    settings = FederationSettings(clients=10, shards=2, participants=2, rounds=4, epochs=1, keeping=keeping)
    with Workspace.init(tmp_path / "w", settings) as space:
        space.train()
        state = space.state()
        model = next(iter(state.served().values()))
        costs = account(state.keeper(), Model(len(model.to_bytes()), len(model.layout.weights)))
        held = bytes_below(tmp_path / "w" / "holders")
    server = held.pop("server.head") + held.pop("server", 0)
    assert (costs.server, costs.holder) == (server, max(held.values(), default=0))
    assert costs.total == server + sum(held.values())
    assert costs.record.bytes == sum(held.values())


@dataclass
class Wire:
    """A store that counts what crosses to clients: a message a slice, and one a holder that has to delete."""

    store: SliceStore
    seen: Traffic = field(default_factory=Traffic)

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        sent = [len(blob) for key, blob in pieces.items() if key.holder not in _AT_HOME]
        self.seen += Traffic(len(sent), sum(sent))
        self.store.put(pieces)

    def get(self, key: SliceKey) -> bytes | None:
        blob = self.store.get(key)
        self.seen += Traffic() if key.holder in _AT_HOME else Traffic(1, len(blob or b""))
        return blob

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        self.seen += Traffic(len({key.holder for key in keys} - _AT_HOME))
        return self.store.delete(keys)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        return self.store.keys(holder)


_AT_HOME = {SERVER, HEAD}


@pytest.mark.parametrize(
    "keeping",
    [
        Keeping("shard", "full", 4, 2),  # others can take over what the leaver held
        Keeping("shard", "full", 10, 5),  # nobody can: the slices are made for fewer
        Keeping("shard", "lean", 4, 2),
        Keeping("cross", "full", 6, 2),
        Keeping("cross", "lean", 20, 2),
        Keeping("server", "full", 1, 1),
    ],
    ids=lambda k: f"{k.layout}-{k.keep}-{k.holders}",
)
def test_forgetting_is_counted_as_what_crosses_the_wire(tmp_path: Path, keeping: Keeping) -> None:
    settings = FederationSettings(clients=20, shards=2, participants=1, rounds=5, epochs=1, keeping=keeping)
    with Workspace.init(tmp_path / "w", settings) as space:
        space.train()
        state, task = space.state(), space.task
    model = next(iter(state.served().values()))
    size = Model(len(model.to_bytes()), len(model.layout.weights))
    taking = [c for c in state.plan.present(0, 0) if state.plan.first_round(0, 0, [c]) is not None]
    ranked = sorted(taking, key=lambda c: (state.plan.first_round(0, 0, [c]), c))
    assert state.plan.first_round(0, 0, ranked[-2:]) > 0
    for at, leavers in enumerate((ranked[:1], ranked[-1:], ranked[-2:])):
        place = shutil.copytree(tmp_path / "w", tmp_path / f"w{at}")
        wire = Wire(DirectoryStore(place / "holders"))
        with Workspace.open(place, store=wire, task=task) as space:
            space.forget(leavers)
        assert wire.seen == account(state.keeper(), size, Change(frozenset(leavers))).forget


def test_the_papers_time_of_a_transfer() -> None:
    assert Traffic(3, 1_000_000).seconds(1e6) == pytest.approx(0.3 + 8.0)


def test_the_server_is_relieved_and_the_total_grows_by_n_over_k_only() -> None:
    report = storage_report(857_738, 8, 100, 4, 5, 30, 0.1, 1e8)
    rows = {row.name: row for row in report.rows}
    for name in ("SE coded, cross (paper)", "coded, shard, 10 % wrong", "coded, shard, as init chooses"):
        assert rows[name].server_of_fe < 0.02
    heads = rows["coded, shard, as init chooses"].account.server
    for name, growth in (("coded, shard, 10 % wrong", 25 / 20), ("coded, shard, as init chooses", 2.0)):
        row = rows[name].account
        assert (row.total - heads) / row.plain == pytest.approx(growth, rel=1e-3)  # seals and inner products
    assert rows["SE coded, cross (paper)"].total_of_plain > 25


def test_the_papers_setting_worked_out_by_hand() -> None:
    """100 clients, 4 shards of 5, 30 rounds, the CNN on MNIST: 857,738 float32 and a header.

    A round's block of a shard is 5 sealed uploads and 8 layers of 5 × 5 sealed inner products. The paper's code gives
    each of the 100 clients one slice as long as a block; striped over 20 of which 10 suffice, a tenth of each record.
    """
    report = storage_report(857_738, 8, 100, 4, 5, 30, 0.1, 1e8)
    rows = {row.name: row.account for row in report.rows}
    model, seal = report.model_bytes, 16
    assert model - 4 * 857_738 < 1000
    block = 5 * (model + seal) + 8 * 8 * 5 * 5 + seal
    heads = 4 * (model + seal)
    assert rows["FE"].plain == 20 * 30 * model
    paper = rows["SE coded, cross (paper)"]
    assert paper.holder == 30 * block
    assert paper.total - heads == 100 * 30 * block
    assert paper.server == heads
    assert paper.recall.bytes == 4 * 30 * block, "any 4 slices of each round, and all four shards come with it"
    striped = rows["coded, shard, as init chooses"]
    assert striped.total - heads == pytest.approx(20 / 10 * 4 * 30 * block, rel=1e-5)
    assert striped.recall.bytes == pytest.approx(30 * block, rel=1e-5), "one shard, once"
