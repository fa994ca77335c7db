"""Workspace: one directory is one federation. What the command line, the Flower app and a notebook all call.

DIR/federation.toml   the settings, fixed when it was made
DIR/ledger.db         what is in force
DIR/keys/             the epoch key, to be kept apart from backups of the ledger
DIR/holders/NAME/     what each holder keeps, the server's newest models among them
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ..errors import (
    AlreadyForgotten,
    Damaged,
    Elsewhere,
    FedForgetError,
    NotAWorkspace,
    NotTrained,
    SettingError,
    Unfinished,
    UnknownClient,
)
from ..federation import Cohort, Learner, Merge, Place, Round, Settings, train
from ..forgetting import Calibration, Method, method_named
from ..plan import Change, Member, Plan, Stage
from ..sealing import Vault, faster_cipher
from ..slices import SliceKey, SliceStore
from ..storage.directory import DirectoryStore
from ..storage.disk import Disk
from ..storage.ledger import Clock, Ledger, _now
from . import begin, inspect, settle, upkeep, verify
from . import forget as forgetting
from .keys import KeyFolder
from .lock import locked
from .progress import Progress, by_index, silent
from .reports import (
    EvaluateReport,
    ForgetReport,
    PlanReport,
    RepairReport,
    ScrubReport,
    StageReport,
    StatusReport,
    TrainReport,
    VerifyReport,
)
from .settings import FederationSettings
from .state import State, read_state, unfinished
from .tasks import NODES, Task, build, numerics, open_engine, own_learner, seat_names

_MERGED = (
    "a merged hand-over begins every shard from the average of all: forgetting anybody of the stages before "
    "will have to make every shard of this stage again"
)

Seen = TypeVar("Seen")
MakeCohort = Callable[[Task, FederationSettings, int | None], Cohort]


@dataclass(frozen=True)
class Workspace:
    """A federation on disk. Looking needs no lock; the verbs that change something take it, `verify` shares it."""

    path: Path
    settings: FederationSettings
    ledger: Ledger
    keys: KeyFolder
    store: SliceStore
    disk: Disk
    data: Path | None = None
    make_cohort: MakeCohort = open_engine
    workers: int | None = None
    merge: Merge | None = None
    _given: Task | None = field(default=None, repr=False)

    # --- making and opening -------------------------------------------------------------------------------

    @staticmethod
    def init(
        path: str | Path,
        settings: FederationSettings | None = None,
        *,
        data: Path | None = None,
        passphrase: str | None = None,
        disk: Disk | None = None,
        clock: Clock = _now,
        task: Task | None = None,
    ) -> "Workspace":
        """Make a new federation: its first stage with everybody in it, nothing trained yet."""
        folder, disk = Path(path), disk or Disk()
        begin.refuse_occupied(folder)
        chosen = settings or FederationSettings()
        made = task or build(chosen, data)  # before anything is written: a missing data set leaves no trace
        names = _names(made, chosen)
        begin.check(names, passphrase)
        chosen = replace(chosen, learner=chosen.learner or own_learner(chosen.task))
        if not chosen.federation:
            chosen = replace(chosen, federation=secrets.token_hex(8))
        chosen = replace(chosen, keeping=replace(chosen.keeping, cipher=faster_cipher()))
        begin.clear(folder)
        keys = KeyFolder(folder / "keys", passphrase, disk)
        keys.make(0)
        url = f"sqlite:///{folder / 'ledger.db'}"
        ledger = Ledger.create(url, {"digest": chosen.digest}, disk.probe, clock)
        members = [Member(name, seat) for seat, name in enumerate(names[: chosen.clients])]
        ledger.open_stage(0, Stage(chosen.rounds), members)
        disk.write(folder / "federation.toml", chosen.to_toml().encode())
        store = DirectoryStore(folder / "holders", disk)
        return Workspace(folder, chosen, ledger, keys, store, disk, data, _given=made)

    @staticmethod
    def open(
        path: str | Path,
        *,
        data: Path | None = None,
        passphrase: str | None = None,
        disk: Disk | None = None,
        clock: Clock = _now,
        task: Task | None = None,
        store: SliceStore | None = None,
        make_cohort: MakeCohort = open_engine,
        workers: int | None = None,
    ) -> "Workspace":
        folder, disk = Path(path), disk or Disk()
        text = disk.read(folder / "federation.toml")
        if text is None or not (folder / "ledger.db").exists():
            raise NotAWorkspace(folder)
        ledger = Ledger.open(f"sqlite:///{folder / 'ledger.db'}", disk.probe, clock)
        try:
            settings = FederationSettings.from_toml(text.decode())
        except (ValueError, TypeError, SettingError) as fault:
            raise Damaged(folder / "federation.toml", "the settings it was made with", str(fault)) from fault
        expected = ledger.get("settings")["digest"]
        if settings.digest != expected:
            raise Damaged(folder / "federation.toml", expected[:12], settings.digest[:12])
        keys = KeyFolder(folder / "keys", passphrase, disk)
        return Workspace(
            folder,
            settings,
            ledger,
            keys,
            store or DirectoryStore(folder / "holders", disk),
            disk,
            data,
            make_cohort,
            workers,
            _given=task,
        )

    @cached_property
    def task(self) -> Task:
        return self._given or build(self.settings, self.data)

    @property
    def learner(self) -> Learner:
        return self.task.learner

    @property
    def training(self) -> Settings:
        """How clients train, and how their uploads become the next model."""
        return replace(self.settings.training, merge=self.merge)

    @cached_property
    def cohort(self) -> Cohort:
        """The engine, started when first needed."""
        return self.make_cohort(self.task, self.settings, self.workers)

    def state(self, pending: int | None = None) -> State:
        """What is in force now."""

        def read() -> State:
            return read_state(self.settings, self.ledger, self.store, self._vault, self.learner, pending)

        return self._steady(read, settled=True)

    def _steady(self, read: Callable[[], Seen], settled: bool = False) -> Seen:
        """Read without the lock: again, where it failed for another process changed something meanwhile.

        `settled`: again also where it did not fail, so that all that was read is of one moment.
        """
        while True:
            height = self.ledger.height()
            try:
                seen = read()
            except FedForgetError:
                if self.ledger.height() == height:
                    raise
            else:
                if not settled or self.ledger.height() == height:
                    return seen

    def _vault(self, epoch: int) -> Vault:
        return self.keys.load(epoch)

    def close(self) -> None:
        """End the engine's workers and the database's connections."""
        stop = getattr(self.__dict__.get("cohort"), "close", None)
        if stop is not None:
            stop()
        self.ledger.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Hold the lock, with whatever an interruption left behind put in order."""
        with locked(self.path):
            self._refuse_elsewhere()
            settle.settle(self)
            yield

    def _refuse_elsewhere(self) -> None:
        """A store that does not reach the holders would take their slices for lost and their deletions for done."""
        where = self.ledger.get("holders", "here")
        if where != getattr(self.store, "place", "here"):
            raise Elsewhere(self.path, where)

    # --- training -----------------------------------------------------------------------------------------

    def train(self, progress: Progress = silent) -> TrainReport:
        """Train the newest stage to its end, going on from the last round that was kept."""
        with self._working():
            self._refuse_unfinished()
            state = self.state()
            legs = state.legs()
            before = sum(1 for p in state.rows if p.stage == state.stage)
            total = before + sum(leg.until - leg.first for leg in legs.values())
            done = before
            rounds: list[Round] = []
            paid: Collection[SliceKey] = ()
            self.ledger.note("numerics", numerics(self.learner))
            march = train(self.cohort, state.plan, legs, self.training, stage=state.stage)
            progress("training", done, total)
            for group in by_index(march, lambda _, index: sum(g.first <= index < g.until for g in legs.values())):
                paid = self.keep(state, group, generation=state.vault.epoch, paid=paid)
                rounds += [replace(r, uploads=(), start=r.model) for r in group]
                done += len(group)
                progress("training", done, total)
            self.ledger.pay(paid)
            return _train_report(state.stage, rounds, before, self.state())

    def keep(
        self,
        state: State,
        group: Sequence[Round],
        *,
        plan: Plan | None = None,
        generation: int,
        pending: int | None = None,
        dropped: Collection[int] = (),
        paid: Collection[SliceKey] = (),
    ) -> Collection[SliceKey]:
        """Place a group's slices, enter it in the ledger, and delete what it made superfluous.

        `dropped`: shards whose blocks a cross layout no longer carries on. `paid`: what the call before this one
        deleted, so that a round costs one commit; returns what this one did.
        """
        others = None
        if self.settings.keeping.layout == "cross":
            first = group[0].place
            without = {r.place.shard for r in group} | set(dropped)
            others = forgetting.lanes(state, first.stage, first.round, without)
        entry = state.keeper(plan).record(group, generation, others)
        return self.store.delete(self.ledger.enter(entry, pending, paid))

    def open_stage(
        self,
        rounds: int | None = None,
        handover: str = "lineage",
        join: int | Sequence[str] = 0,
        leave: Iterable[str] = (),
    ) -> StageReport:
        """Begin the next stage: newcomers take free seats; those who leave, unforgotten, take no part."""
        with self._working():
            self._refuse_unfinished()
            state = self.state()
            if state.legs():
                raise NotTrained(self.path, f"a finished stage {state.stage}")
            self._change(leave := tuple(leave))
            stage = Stage(rounds or self.settings.rounds, handover)  # type: ignore[arg-type]
            known = {m.client: m.seat for m, _ in self.ledger.members()}
            plan = state.plan.next_stage(stage, join=self._joiners(known, join), leave=leave)
            self.ledger.open_stage(state.stage + 1, stage, plan.members)
            joined = tuple((m.client, plan.shard_of(m.client)) for m in plan.members if m.client not in known)
            warnings = (_MERGED,) if handover == "merged" else ()
            return StageReport(state.stage + 1, stage.rounds, handover, joined, tuple(sorted(set(leave))), warnings)

    def _joiners(self, known: Mapping[str, int], join: int | Sequence[str]) -> dict[str, int]:
        names = _names(self.task, self.settings)
        seats = {name: seat for seat, name in enumerate(names) if name not in known}
        if isinstance(join, int):
            if not 0 <= join <= len(seats):
                raise SettingError("join", join, f"from 0 to the {len(seats)} seats still free (see `init --seats`)")
            return dict(list(seats.items())[:join])
        for name in join:
            if name not in seats:
                raise SettingError("join", name, "a free seat: " + (", ".join(list(seats)[:5]) or "none is left"))
        return {name: seats[name] for name in join}

    def changed_conditions(self) -> tuple[str, ...]:
        """Why a replay may not meet the bits of training although nobody was lost."""
        now = numerics(self.learner)
        before = [n for n in self.ledger.noted("numerics") if n != now]
        found = [f"trained under {old}, replayed under {now}" for old in before]
        by_client: dict[str, list[str]] = {}
        for said in self.ledger.noted(NODES):
            by_client.setdefault(said.partition(": ")[0], []).append(said.partition(": ")[2])
        found += [f"{c} computed under {seen[0]}, then {seen[-1]}" for c, seen in by_client.items() if len(seen) > 1]
        if not getattr(self.learner, "deterministic", True):
            found.append(getattr(self.learner, "undetermined", "the device's kernels are not deterministic"))
        return tuple(found)

    def scrub(self, portion: int = 0, progress: Progress = silent) -> ScrubReport:
        """Check the next slices against their hashes, going on where the last scrub stopped; 0: all of them."""
        with locked(self.path):
            self._refuse_elsewhere()
            return upkeep.scrub(self, portion, progress)

    def repair(self, gone: Iterable[str] = (), progress: Progress = silent) -> RepairReport:
        """Make missing and altered slices again; those of holders that left for good, on others."""
        with self._working():
            self._refuse_unfinished()
            return upkeep.repair(self, tuple(sorted(set(gone))), progress)

    def _refuse_unfinished(self) -> None:
        request = unfinished(self.ledger)
        if request is not None:
            raise Unfinished(self.path, request.body["leave"], request.body["method"])

    # --- forgetting ---------------------------------------------------------------------------------------

    def plan(self, clients: Iterable[str], method: str = "exact", calibration: Calibration | None = None) -> PlanReport:
        """What forgetting them would touch, cost and promise. Changes nothing."""
        clients = tuple(clients)
        if not clients:
            raise SettingError("client", "", "the name of a client, as in --client client-007")
        row, change = method_named(method), self._change(clients)
        self.refuse_unmerged(row)
        return self._steady(lambda: inspect.plan_report(self, change, row, calibration or Calibration()))

    def forget(
        self,
        clients: Iterable[str] = (),
        method: str = "exact",
        calibration: Calibration | None = None,
        progress: Progress = silent,
    ) -> ForgetReport:
        """Make the federation forget them; with nobody named, finish a forget that was interrupted."""
        with self._working():
            request = unfinished(self.ledger)
            named = tuple(sorted(set(clients)))
            if request is None:
                if not named:
                    raise SettingError("client", "", "the name of a client: no forget was interrupted")
                request = forgetting.open_request(self, self._change(named), method, calibration or Calibration())
            elif named and not forgetting.same_request(request, named, method, calibration):
                raise Unfinished(self.path, request.body["leave"], request.body["method"])
            return forgetting.carry_out(self, request, progress)

    def refuse_unmerged(self, method: Method) -> None:
        """Calibration gives means of uploads other lengths; where models are no means, only a restart will do."""
        if self.merge is not None and method.grade != "X1":
            raise SettingError("method", method.name, "'exact', for this federation's models are not means of uploads")

    def _change(self, clients: Iterable[str]) -> Change:
        named = frozenset(clients)
        state_of = {m.client: gone for m, gone in self.ledger.members()}
        unknown = named - set(state_of)
        if unknown:
            raise UnknownClient(unknown, [c for c, gone in state_of.items() if gone is None])
        before = {c for c in named if state_of[c] is not None}
        if before:
            raise AlreadyForgotten(before)
        return Change(named)

    # --- looking ------------------------------------------------------------------------------------------

    def status(self, members: bool = False) -> StatusReport:
        return self._steady(lambda: inspect.status_report(self, members))

    def evaluate(self, progress: Progress = silent) -> EvaluateReport:
        return self._steady(lambda: inspect.evaluate_report(self, progress))

    def verify(
        self, replay: int = 0, never_joined: bool = False, seed: int = 0, progress: Progress = silent
    ) -> VerifyReport:
        with locked(self.path, shared=True):
            self._refuse_elsewhere()
            return verify.verify_report(self, replay, never_joined, seed, progress)


def _names(task: Task, settings: FederationSettings) -> tuple[str, ...]:
    names = tuple(task.examples)
    return names if len(names) == settings.places else seat_names(settings)


def _train_report(stage: int, rounds: Sequence[Round], before: int, after: State) -> TrainReport:
    return TrainReport(
        stage,
        len(rounds),
        before,
        sum(r.cost.client_epochs for r in rounds),
        sum(r.cost.seconds for r in rounds),
        tuple((a.client, str(r.place), a.why) for r in rounds for a in r.absent),
        {
            str(s): after.rows[Place(stage, s, after.done((stage, s)) - 1)].model_digest
            for s in after.plan.living_shards(stage)
            if after.done((stage, s))
        },
    )
