"""State: what is in force in a workspace, read from the ledger as values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..federation import Learner, Leg, Place, handed_over, initial_model
from ..history import Archive, HistoryPast, Keeper
from ..manifest import Bundle, Label, Record, RoundRow
from ..params import Params
from ..plan import Cell, Member, Plan
from ..sealing import Vault
from ..slices import SliceStore
from ..storage.ledger import Ledger, Request
from ..storage.rows import is_head
from .settings import FederationSettings

Members = tuple[tuple[Member, int | None], ...]


@dataclass(frozen=True)
class State:
    """The plan, the rounds and their manifests, and the epoch key that opens them."""

    settings: FederationSettings
    plan: Plan
    forgotten: Mapping[str, int]
    rows: Mapping[Place, RoundRow]
    records: Mapping[Label, Record]
    bundles: tuple[Bundle, ...]
    vault: Vault
    store: SliceStore
    learner: Learner
    changed: frozenset[Place] = frozenset()  # rounds that a forget made again when conditions had changed

    @cached_property
    def archive(self) -> Archive:
        where = {spot.label: bundle for bundle in self.bundles for spot in bundle.spots}
        return Archive(self.records, where, self.store, self.vault, self.settings.keeping.cipher)

    @cached_property
    def labels(self) -> Mapping[Place, tuple[Label, ...]]:
        found: dict[Place, list[Label]] = {}
        for label in self.records:
            found.setdefault(label.place, []).append(label)
        return {place: tuple(labels) for place, labels in found.items()}

    @cached_property
    def past(self) -> HistoryPast:
        return HistoryPast(self.rows, self.labels, self.archive, self.begin, self.settings.weighted, self.changed)

    @property
    def history(self) -> tuple[Bundle, ...]:
        return tuple(b for b in self.bundles if not is_head(b))

    @property
    def stage(self) -> int:
        return len(self.plan.stages) - 1

    def begin(self, cell: Cell) -> Params:
        """The model a cell starts from."""
        return handed_over(self.plan, cell, self.final, initial_model(self.learner, self.plan, cell[0]))

    def final(self, cell: Cell) -> Params:
        return self.past.final(cell) if self.past.rounds(cell) else self.begin(cell)

    def done(self, cell: Cell) -> int:
        return self.past.rounds(cell)

    def missing(self) -> dict[Cell, int]:
        """Every cell that is not trained to its end, stage after stage, and how many rounds it has.

        None but the newest stage's, unless a restored backup emptied the history.
        """
        every = ((t, s) for t in range(len(self.plan.stages)) for s in range(self.plan.shards))
        return {
            c: self.done(c) for c in every if self.plan.present(*c) and self.done(c) < self.plan.stages[c[0]].rounds
        }

    def legs(self, stage: int) -> dict[int, Leg]:
        """What is left of a stage, shard by shard."""
        until = self.plan.stages[stage].rounds
        return {s: Leg(done, self.final((t, s)), until) for (t, s), done in self.missing().items() if t == stage}

    def served(self) -> dict[int, Params]:
        """The newest model of every living shard."""
        return {s: self.final((self.stage, s)) for s in self.plan.living_shards(self.stage)}

    def keeper(self, plan: Plan | None = None) -> Keeper:
        return Keeper(
            self.settings.federation,
            plan or self.plan,
            self.settings.keeping,
            self.settings.weighted,
            self.vault,
            self.store,
        )


def current_plan(settings: FederationSettings, ledger: Ledger, members: Members | None = None) -> Plan:
    """Who is where, without those who were forgotten."""
    return Plan(
        settings.seed,
        settings.shards,
        tuple(m for m, forgotten in (members or ledger.members()) if forgotten is None),
        ledger.stages(),
        settings.participants or None,
        settings.draw,
    )


def read_state(
    settings: FederationSettings,
    ledger: Ledger,
    store: SliceStore,
    vault_of: Callable[[int], Vault],
    learner: Learner,
    pending: int | None = None,
) -> State:
    """What is in force, or with `pending` what a request has made so far."""
    rows, members = ledger.rounds(pending), ledger.members()
    return State(
        settings,
        current_plan(settings, ledger, members),
        {m.client: at for m, at in members if at is not None},
        rows,
        ledger.records(settings.federation, pending),
        ledger.bundles(settings.federation, pending),
        vault_of(ledger.get("epoch")),
        store,
        learner,
        _changed(rows, ledger.requests()),
    )


def _changed(rows: Mapping[Place, RoundRow], requests: Iterable[Request]) -> frozenset[Place]:
    """The rounds that are in force as a forget graded X2 made them."""
    found: set[Place] = set()
    for request in requests:
        outcome = request.body.get("outcome", {})
        if request.state != "executed" or outcome["guarantee"]["grade"] != "X2":
            continue
        for touch in outcome["touches"]:
            first = touch["from_round"]
            made = (Place(touch["stage"], touch["shard"], r) for r in range(first, first + touch["rounds"]))
            found |= {p for p in made if p in rows and rows[p].generation == request.body["epoch"]}
    return frozenset(found)


def unfinished(ledger: Ledger) -> Request | None:
    """The request whose rebuild was interrupted."""
    return next((r for r in ledger.requests() if r.state == "rebuilding"), None)


def digests(state: State) -> dict[str, str]:
    """The served shard models' digests."""
    found = {}
    for shard in state.plan.living_shards(state.stage):
        cell = (state.stage, shard)
        if state.done(cell):
            found[str(shard)] = state.rows[Place(*cell, state.done(cell) - 1)].model_digest
        else:
            found[str(shard)] = state.final(cell).digest
    return found
