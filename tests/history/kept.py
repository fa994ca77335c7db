"""A federation's rounds, recorded: the values a history is made of, without a workspace."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from fedforget.federation import Place, Round, initial_model, train
from fedforget.history import Archive, HistoryPast, Keeper
from fedforget.manifest import Bundle, Entry, Keeping, Label, Record, RoundRow
from fedforget.plan import Plan
from fedforget.sealing import Vault
from fedforget.slices import SliceStore
from fedforget.storage.memory import MemoryStore
from strategies import SOFTMAX, Federation, Here, Settings, examples_of

VAULT = Vault(0, bytes(range(32)))


@dataclass(frozen=True)
class Kept:
    """Rounds, and what a keeper made of them."""

    keeper: Keeper
    rounds: tuple[Round, ...]
    records: dict[Label, Record]
    bundles: tuple[Bundle, ...]
    rows: dict[Place, RoundRow]
    store: SliceStore = field(default_factory=MemoryStore)

    @staticmethod
    def of(keeper: Keeper, rounds: Sequence[Round], generation: int = 0) -> "Kept":
        groups = groupby(rounds, key=lambda r: (r.place.stage, r.place.round))
        entries = [keeper.record(tuple(group), generation) for _, group in groups]
        return Kept(keeper, tuple(rounds), *read(entries), keeper.store)

    @property
    def history(self) -> tuple[Bundle, ...]:
        return tuple(b for b in self.bundles if not b.holders[0].startswith("server.head"))

    @property
    def archive(self) -> Archive:
        where = {spot.label: bundle for bundle in self.bundles for spot in bundle.spots}
        return Archive(self.records, where, self.store, self.keeper.vault, self.keeper.keeping.cipher)

    def past(self) -> HistoryPast:
        labels: dict[Place, tuple[Label, ...]] = {}
        for label in self.records:
            labels[label.place] = (*labels.get(label.place, ()), label)
        start = {r.place.cell: r.start for r in self.rounds if r.place.round == 0}
        return HistoryPast(self.rows, labels, self.archive, start.__getitem__, self.keeper.weighted)

    def plain(self) -> dict[Label, bytes]:
        """Every record as it was before it was sealed, from the rounds themselves."""
        found: dict[Label, bytes] = {}
        by_place = {r.place: r for r in self.rounds}
        for label in self.records:
            made = by_place[label.place]
            uploads = {u.client: u.params for u in made.uploads}
            if label.kind == "upload":
                found[label] = uploads[label.client].to_bytes()
            elif label.kind == "start":
                found[label] = made.start.to_bytes()
            elif label.kind in ("head", "model"):
                found[label] = made.model.to_bytes()
        return found

    def with_bundles(self, **changes: object) -> "Kept":
        return replace(self, bundles=tuple(replace(b, **changes) for b in self.bundles))


def read(entries: Sequence[Entry]) -> tuple[dict[Label, Record], tuple[Bundle, ...], dict[Place, RoundRow]]:
    records = {record.label: record for entry in entries for record in entry.records}
    bundles = tuple(bundle for entry in entries for bundle in entry.bundles)
    return records, bundles, {row.place: row for entry in entries for row in entry.rounds}


def small(keeping: Keeping, *, clients: int = 8, shards: int = 2, rounds: int = 3) -> tuple[Federation, Keeper]:
    federation = Federation.of(clients, shards=shards, rounds=rounds, participants=2)
    return federation, Keeper("f", federation.plan, keeping, True, VAULT, MemoryStore())


def small_kept(keeping: Keeping, **shape: int) -> Kept:
    federation, keeper = small(keeping, **shape)
    order = sorted(federation.past.by_place.values(), key=lambda r: (r.place.round, r.place.shard))
    return Kept.of(keeper, order)


def wide(holders: int, threshold: int) -> Kept:
    """One round of two clients of a hundred, on `holders` of them."""
    names = [f"client-{i:03d}" for i in range(100)]
    plan = Plan.of(names, shards=1, rounds=1, participants=2)
    cohort = Here(SOFTMAX, {name: examples_of(name, 5) for name in names})
    rounds = tuple(train(cohort, plan, initial_model(SOFTMAX, plan, 0), Settings(1)))
    return Kept.of(Keeper("f", plan, Keeping("shard", "full", holders, threshold), True, VAULT, MemoryStore()), rounds)
