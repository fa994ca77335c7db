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
from typing import Any, TypeVar

from ..errors import (
    Damaged,
    Elsewhere,
    FedForgetError,
    NotTrained,
    SettingError,
    Unfinished,
)
from ..federation import Cohort, Learner, Merge, Round, Settings, train
from ..forgetting import Calibration, Made, Method, Rebuild, lineage, method_named
from ..manifest import RoundRow
from ..plan import Member, Plan, Stage
from ..requests import Scope
from ..sealing import Vault, faster_cipher
from ..slices import SliceKey, SliceStore
from ..storage import erasures
from ..storage.directory import DirectoryStore
from ..storage.disk import Disk
from ..storage.ledger import Clock, Ledger, _now
from . import begin, inspect, log, outlook, scopes, settle, upkeep, verify
from . import forget as forgetting
from .desk import Desk
from .joining import Joining
from .keys import KeyFolder
from .lock import locked
from .progress import Progress, by_index, silent, timed
from .reports import (
    AbandonReport,
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
from .serving import Serving
from .settings import FederationSettings
from .state import State, read_state, unfinished
from .tasks import NODES, Task, bare_learner, bits, build, names_of, open_engine, own_learner

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
    _engines: list[Any] = field(default_factory=list, repr=False)  # what was dropped, and the engine over the rest

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
        ledger_password: str | None = None,
    ) -> "Workspace":
        """Make a new federation: its first stage with everybody in it, nothing trained yet."""
        folder, disk = Path(path), disk or Disk()
        chosen = settings or FederationSettings()
        at_server = bool(chosen.ledger)
        begin.refuse_occupied(folder, at_server)
        made = task or build(chosen, data)  # before anything is written: a missing data set leaves no trace
        names = names_of(made, chosen)
        begin.check(names, passphrase)
        chosen = replace(chosen, learner=chosen.learner or own_learner(chosen.task))
        if not chosen.federation:
            chosen = replace(chosen, federation=secrets.token_hex(8))
        chosen = replace(chosen, keeping=replace(chosen.keeping, cipher=faster_cipher()))
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            begin.refuse_occupied(folder, at_server)  # another `init` may have been quicker
            begin.clear(folder)
            url = begin.address(folder, chosen)
            ledger = Ledger.create(url, {"digest": chosen.digest}, disk.probe, clock, ledger_password)
            try:
                keys = KeyFolder(folder / "keys", passphrase, disk)
                keys.make(0)  # after the ledger: keys without one are those of another federation
                members = [Member(name, seat) for seat, name in enumerate(names[: chosen.clients])]
                ledger.open_stage(0, Stage(chosen.rounds), members)
                store = DirectoryStore(folder / "holders", disk)
                space = Workspace(folder, chosen, ledger, keys, store, disk, data, _given=made)
                log.seal(space)
                disk.write(folder / "federation.toml", chosen.to_toml().encode())
                ledger.begun()
            except BaseException:
                ledger.close()
                raise
        return space

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
        ledger_password: str | None = None,
    ) -> "Workspace":
        folder, disk = Path(path), disk or Disk()
        settings = begin.read_settings(folder, disk)
        ledger = Ledger.open(begin.address(folder, settings), disk.probe, clock, ledger_password)
        expected = ledger.get("settings")["digest"]
        if settings.digest != expected:
            ledger.close()
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
    def training(self) -> Settings:
        """How clients train, and how their uploads become the next model."""
        return replace(self.settings.training, merge=self.merge)

    @cached_property
    def learner(self) -> Learner:
        """Also where the data is not at hand: its shape follows from public constants."""
        return self._given.learner if self._given else bare_learner(self.settings)

    @property
    def cohort(self) -> Cohort:
        """The engine, started when first needed, over what the clients have left."""
        return self.engine()

    def engine(self, dropping: scopes.Drops | None = None) -> Cohort:
        """As `cohort`, and without what a request that is being carried out has them drop."""
        drops = scopes.joined(erasures.drops(self.ledger), dropping or {})
        if self._engines[:1] != [drops]:
            self._stop()
            task = replace(self.task, examples=scopes.effective(self.task.examples, drops))
            self._engines[:] = [drops, self.make_cohort(task, self.settings, self.workers)]
        return self._engines[1]  # type: ignore[no-any-return]

    def _stop(self) -> None:
        for engine in self._engines[1:]:
            stop = getattr(engine, "close", None)
            if stop is not None:
                stop()
        self._engines.clear()

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
        self._stop()
        self.ledger.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def working(self) -> Iterator[tuple[str, ...]]:
        """For verbs that live elsewhere: the lock, as the workspace's own verbs hold it."""
        with self._working() as notices:
            yield notices

    @contextmanager
    def _working(self) -> Iterator[tuple[str, ...]]:
        """Hold the lock, with whatever an interruption left behind put in order; sign what was done."""
        with locked(self.path):
            self._refuse_elsewhere()
            notices = settle.settle(self)
            yield notices
            log.seal(self)

    @property
    def requests(self) -> "Desk":
        """Who may ask, what was asked, and what became of it."""
        return Desk(self)

    def _refuse_elsewhere(self) -> None:
        """A store that does not reach the holders would take their slices for lost and their deletions for done."""
        where = self.ledger.get("holders", "here")
        if where != getattr(self.store, "place", "here"):
            raise Elsewhere(self.path, where)

    # --- training -----------------------------------------------------------------------------------------

    def train(self, progress: Progress = silent) -> TrainReport:
        """Train every stage to its end, going on from the last round that was kept.

        Only the newest can lack rounds, unless a restored backup emptied the history.
        """
        with self._working() as notices:
            self._refuse_unfinished()
            state = self.state()
            missing = state.missing()
            stages = sorted({t for t, _ in missing} | {state.stage})
            before = done = sum(1 for p in state.rows if p.stage in stages)
            total = before + sum(state.plan.stages[t].rounds - first for (t, _), first in missing.items())
            rounds: list[Round] = []
            self.ledger.note("numerics", self.bits()[0])
            progress("training", done, total)
            for stage in sorted({t for t, _ in missing}):
                for group in self._stage(stage):
                    rounds += [replace(r, uploads=(), start=r.model) for r in group]
                    done += len(group)
                    progress("training", done, total)
            if self.ledger.branch()["name"]:  # a backup was put back: now all is made again that was made since
                settle.sweep(self)
            return replace(inspect.train_report(state.stage, rounds, before, self.state()), notices=notices)

    def _stage(self, stage: int) -> Iterator[Sequence[Round]]:
        """Train what is left of a stage, and keep it, one round of all its shards at a time."""
        state, legs = upkeep.ready(self, stage)
        march = train(self.cohort, state.plan, legs, self.training, stage=stage)
        paid: Collection[SliceKey] = ()
        groups = by_index(march, lambda _, index: sum(g.first <= index < g.until for g in legs.values()))
        for group in timed(groups):
            paid = self.keep(state, group, generation=state.vault.epoch, paid=paid)
            yield group
        self.ledger.pay(paid)

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
        under, steady = self.bits()
        entry = replace(entry, rounds=tuple(replace(r, numerics=under, deterministic=steady) for r in entry.rounds))
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
            if missing := state.missing():
                raise NotTrained(self.path, f"a finished stage {min(missing)[0]}")
            scopes.refuse_strangers({m.client: gone for m, gone in self.ledger.members()}, leave := tuple(leave))
            stage = Stage(rounds or self.settings.rounds, handover)  # type: ignore[arg-type]
            known = {m.client: m.seat for m, _ in self.ledger.members()}
            plan = state.plan.next_stage(stage, join=self._joiners(known, join), leave=leave)
            self.ledger.open_stage(state.stage + 1, stage, plan.members)
            outlook.advance(self)
            joined = tuple((m.client, plan.shard_of(m.client)) for m in plan.members if m.client not in known)
            warnings = (_MERGED,) if handover == "merged" else ()
            return StageReport(state.stage + 1, stage.rounds, handover, joined, tuple(sorted(set(leave))), warnings)

    def _joiners(self, known: Mapping[str, int], join: int | Sequence[str]) -> dict[str, int]:
        names = names_of(self.task, self.settings)
        left = scopes.effective(self.task.examples, erasures.drops(self.ledger))
        empty = {c for c in left if not len(left[c]) and len(self.task.examples[c])}  # all it had was forgotten
        empty |= settle.buried_seats(self, self.keys.tombstones(), known).keys()
        seats = {name: seat for seat, name in enumerate(names) if name not in known and name not in empty}
        if isinstance(join, int):
            if not 0 <= join <= len(seats):
                raise SettingError("join", join, f"from 0 to the {len(seats)} seats still free (see `init --seats`)")
            return dict(list(seats.items())[:join])
        for name in join:
            if name not in seats:
                raise SettingError("join", name, "a free seat: " + (", ".join(list(seats)[:5]) or "none is left"))
        return {name: seats[name] for name in join}

    def bits(self) -> tuple[str, bool]:
        """What the bits of a round made now depend on beside its inputs, and whether they come out again."""
        return bits(self._engines[1] if self._engines else self.cohort, self.learner)

    def changed_conditions(self, work: Rebuild, made: Iterable[RoundRow] = ()) -> tuple[str, ...]:
        """Why a replay may not meet the bits of training although nobody was lost.

        By every round of the lineages it is part of: those kept, those replaced, and those it made; and by what the
        clients compute under, where that is elsewhere.
        """
        now, steady = self.bits()
        found = {work.past.made(place) for place in lineage(work.before, work.past, work.taints)}
        found |= {Made(row.numerics, row.deterministic) for row in made}
        under = {m.numerics for m in found}
        if "" in under:  # rounds of version 0.1.0
            under |= set(self.ledger.noted("numerics"))
        words = [f"trained under {old}, replayed under {now}" for old in sorted(under - {"", now})]
        by_client: dict[str, list[str]] = {}
        for said in self.ledger.noted(NODES):
            by_client.setdefault(said.partition(": ")[0], []).append(said.partition(": ")[2])
        words += [f"{c} computed under {seen[0]}, then {seen[-1]}" for c, seen in by_client.items() if len(seen) > 1]
        if not (steady and all(m.deterministic for m in found)):
            words.append(getattr(self.learner, "undetermined", "the device's kernels are not deterministic"))
        return tuple(words)

    def scrub(self, portion: int = 0, progress: Progress = silent) -> ScrubReport:
        """Check the next slices against their hashes, going on where the last scrub stopped; 0: all of them."""
        with locked(self.path):
            self._refuse_elsewhere()
            return upkeep.scrub(self, portion, progress)

    def repair(self, gone: Iterable[str] = (), progress: Progress = silent) -> RepairReport:
        """Make missing and altered slices again; those of holders that left for good, on others.

        Of what is in force: what an unfinished forget has made so far is not touched.
        """
        with self._working():
            return upkeep.repair(self, tuple(sorted(set(gone))), progress)

    def _refuse_unfinished(self) -> None:
        request = unfinished(self.ledger)
        if request is not None:
            raise Unfinished(self.path, scopes.asked(request), request.body["method"])

    # --- forgetting ---------------------------------------------------------------------------------------

    def plan(
        self,
        clients: Iterable[str] = (),
        method: str = "exact",
        calibration: Calibration | None = None,
        scope: Scope | None = None,
    ) -> PlanReport:
        """What forgetting them, or what a scope names, would touch, cost and promise. Changes nothing."""
        wanted = _scope(clients, scope)
        if wanted is None:
            raise SettingError("client", "", "the name of a client, as in --client client-007")
        row, ground = method_named(method), scopes.Ground.of(self)
        self.refuse_unmerged(row)
        part = scopes.resolve(self, ground, wanted, strict=True)
        erasure = scopes.settled(self, ground, part, ask=False)
        return self._steady(lambda: inspect.plan_report(self, erasure, row, calibration or Calibration()))

    def forget(
        self,
        clients: Iterable[str] = (),
        method: str = "exact",
        calibration: Calibration | None = None,
        progress: Progress = silent,
        scope: Scope | None = None,
    ) -> ForgetReport:
        """Make the federation forget them, or what a scope names; with neither, finish what was interrupted."""
        with self._working():
            request, wanted = unfinished(self.ledger), _scope(clients, scope)
            if request is None:
                if wanted is None:
                    raise SettingError("client", "", "the name of a client: no forget was interrupted")
                part = scopes.resolve(self, scopes.Ground.of(self), wanted, strict=True)
                request = outlook.open_by_hand(self, part, method, calibration or Calibration())
            elif wanted and not forgetting.same_request(request, wanted, method, calibration):
                raise Unfinished(self.path, scopes.asked(request), request.body["method"])
            return forgetting.carry_out(self, request, progress, Joining(self))

    def abandon(self) -> AbandonReport:
        """Give up the forget that was interrupted; once its tombstones are kept it is only ever finished."""
        with self._working():
            request = unfinished(self.ledger)
            if request is None:
                raise SettingError("abandon", self.path, "asked while a forget is unfinished")
            return forgetting.abandon(self, request)

    def refuse_unmerged(self, method: Method) -> None:
        """Calibration gives means of uploads other lengths; where models are no means, only a restart will do."""
        if self.merge is not None and method.grade != "X1":
            raise SettingError("method", method.name, "'exact', for this federation's models are not means of uploads")

    # --- looking ------------------------------------------------------------------------------------------

    def status(self, members: bool = False) -> StatusReport:
        return self._steady(lambda: inspect.status_report(self, members))

    def evaluate(self, progress: Progress = silent) -> EvaluateReport:
        return self._steady(lambda: inspect.evaluate_report(self, progress))

    @property
    def serving(self) -> Serving:
        """What is served, what is left out, and who was given it."""
        return Serving(self)

    def verify(
        self, replay: int = 0, never_joined: bool = False, seed: int = 0, progress: Progress = silent
    ) -> VerifyReport:
        with locked(self.path, shared=True):
            self._refuse_elsewhere()
            return verify.verify_report(self, replay, never_joined, seed, progress)


def _scope(clients: Iterable[str], scope: Scope | None) -> Scope | None:
    named = tuple(clients)
    if named and scope is not None:
        raise SettingError("client", ", ".join(named), "named within the scope, where one is given")
    return Scope.of_clients(named) if named else scope
