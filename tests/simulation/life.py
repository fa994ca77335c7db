"""One federation's life, drawn from a seed: what its operator does, what goes wrong, and what must hold at its end.

The operator's commands are the workspace's own, on a disk that can fail, a clock that jumps and a learner that hashes.
Whatever is interrupted, the operator does again, as somebody would who only knows what it was told.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from sqlalchemy import Engine

from fedforget.coding import code_named
from fedforget.errors import AlreadyForgotten, FedForgetError, StorageFull, Unrecoverable
from fedforget.federation import train_all
from fedforget.manifest import Keeping
from fedforget.plan import Change as PlanChange
from fedforget.plan import Member, Plan, Stage
from fedforget.requests import Scope
from fedforget.requests.signed import Signed
from fedforget.requests.wish import Said, Verdict, Wish
from fedforget.signing import SecretKey
from fedforget.slices import HEAD, SERVER, SliceKey
from fedforget.storage import database, erasures, queue
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.disk import Disk
from fedforget.storage.ledger import Ledger
from fedforget.workspace import FederationSettings, Workspace
from fedforget.workspace.keys import KeyFolder
from fedforget.workspace.scopes import effective
from fedforget.workspace.state import unfinished

from . import stub
from .fragile import FAILURES, Died, Failure, Fate, Fragile

FAULTS = 20
FEDERATION = "simulated"
LONGEST = 60  # durable operations before which a death or a full disk may come


class Broken(AssertionError):
    """Something that must hold does not."""


def must(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


@dataclass
class Asked:
    """A wish on its way: sent until it is acknowledged."""

    scope: Scope
    id: str
    by: str  # who signs it: a client, an operator, or "" for the custodian's own hand
    own: bool = True
    blob: bytes = b""
    digest: str = ""
    acknowledged: bool = False


@dataclass
class Clock:
    now: datetime = field(default_factory=lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Backup:
    """The ledger as it was, and what the operator had done by then."""

    ledger: bytes = field(repr=False)
    stages: int
    joined: int


@dataclass
class Life:
    seed: int
    path: Path
    engine: Engine  # of the ledger in that path; statements once compiled serve many lives
    faults: int = FAULTS
    clock: Clock = field(default_factory=Clock)
    files: Fragile = field(default_factory=Fragile)
    met: Counter[str] = field(default_factory=Counter)
    trail: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    damaged: set[SliceKey] = field(default_factory=set)
    backup: Backup | None = None
    stages: int = 1
    joined: int = 0
    gone: set[str] = field(default_factory=set)  # seen to be forgotten: must never be seen again

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        draw = self.random
        self.clients = draw.choice([4, 5, 6])
        self.task = stub.task(self.clients + 1)
        keeping = Keeping(draw.choice(["shard", "shard", "cross", "server"]), draw.choice(["full", "lean"]), 3, 1)
        self.settings = FederationSettings(
            clients=self.clients,
            seats=self.clients + 1,
            shards=2,
            participants=draw.choice([0, 1, 2]),
            rounds=2,
            epochs=1,
            seed=draw.randrange(1 << 20),
            federation=FEDERATION,
            learner="softmax",
            keeping=keeping,
        )
        self.handovers = [draw.choice(["lineage", "lineage", "fresh", "merged"]) for _ in range(2)]

    # --- the operator ---------------------------------------------------------------------------------------

    def live(self) -> Counter[str]:
        """From `init` to the end; raises `Broken` if anything that must hold does not."""
        self._found()
        for step in self._story():
            self._through(step)
        while sum(self.met.values()) < self.faults:
            self._through(self.random.choice([self._train, self._work, self._scrub]))
        self._settle_all()
        self._judge()
        return self.met

    def _found(self) -> None:
        with Workspace.init(self.path, self.settings, task=self.task, disk=self._disk(), clock=self.clock) as space:
            for name in stub.names(self.clients + 1)[: self.clients]:
                space.requests.enrol("client", name, key(name).public)
            for name in ("ann", "bob"):
                space.requests.enrol("operator", name, key(name).public)
            self.cipher = space.settings.keeping.cipher

    def _story(self) -> Iterator[Callable[[Workspace], None]]:
        draw = self.random
        yield self._train
        for _ in range(draw.choice([1, 2, 2, 3])):
            yield self._new_wish()
        yield self._work
        if draw.random() < 0.6:
            yield self._open_stage
            yield self._train
        for _ in range(draw.choice([0, 1, 1])):
            yield self._new_wish()
        yield self._work
        if draw.random() < 0.3:
            yield self._new_by_hand()

    def _through(self, step: Callable[[Workspace], None]) -> None:
        """Until it succeeds: whatever goes wrong in between."""
        for attempt in range(12):
            if sum(self.met.values()) < self.faults and attempt < 8:
                self._meanwhile()
                fate = self._fate()
            else:
                fate = Fate()
            self.trail.append(f"{step.__name__} {fate.kind} {fate.step}")
            try:
                with self._opened(fate) as space:
                    step(space)
                if self.random.random() < 0.3:
                    self._power(f"idle after {attempt}")
                self._look()
                return
            except Died:
                self._power("crash")
            except StorageFull:
                self.met["full disk"] += 1
            except Unrecoverable:
                must(self.away, "too few slices although every holder is there")
                self._everybody_back()
        raise Broken(f"{step.__name__} did not come to its end")

    def _fate(self) -> Fate:
        kind = self.random.choice(["lives", "dies", "dies", "dies", "full"])
        return Fate(kind, self.random.choice([self.random.randrange(8), self.random.randrange(LONGEST)]))  # type: ignore[arg-type]

    def _power(self, when: str) -> None:
        how: Failure = self.random.choice(FAILURES)
        if when != "crash" and how == "clean":
            return
        self.trail.append(f"power: {how}, {when}")
        self.met[f"{'crash' if when == 'crash' else 'power cut'}, {how}"] += 1
        self.files.fails(how, self.random)

    def _disk(self, fate: Fate | None = None) -> Disk:
        return Disk(fate or Fate(), self.files)

    @contextmanager
    def _opened(self, fate: Fate | None = None) -> Iterator[Workspace]:
        """A process begins. One in eight by the front door; the others find door and settings as they were."""
        disk = self._disk(fate)
        if self.random.random() < 0.125:
            with Workspace.open(
                self.path, task=self.task, disk=disk, clock=self.clock, make_cohort=stub.cohort
            ) as space:
                yield space
            return
        ledger = Ledger(self.engine, str(self.engine.url), disk.probe, self.clock)
        keys, store = KeyFolder(self.path / "keys", None, disk), DirectoryStore(self.path / "holders", disk)
        settings = replace(self.settings, keeping=replace(self.settings.keeping, cipher=self.cipher))
        yield Workspace(self.path, settings, ledger, keys, store, disk, make_cohort=stub.cohort, _given=self.task)

    # --- what it does ---------------------------------------------------------------------------------------

    def _train(self, space: Workspace) -> None:
        self._finish(space)
        space.train()

    def _finish(self, space: Workspace) -> None:
        """A rebuild that was interrupted goes first."""
        if unfinished(space.ledger) is not None:
            space.requests.run(now=True)

    def _work(self, space: Workspace) -> None:
        """Deliver what was never acknowledged, and carry out all that waits."""
        for one in tuple(self.asked):
            self._deliver(space, one)
        space.requests.run(now=True)
        self._stuck(space)

    def _stuck(self, space: Workspace) -> None:
        """What needs a human: bring the holders back, release, and run again."""
        lines = space.requests.list(["needs_human"]).requests
        if lines:
            must(self.away, f"{lines[0].id} needs a human although nothing is amiss: {lines[0].reason}")
            self._everybody_back()
            for line in lines:
                space.requests.say(line.id, "release")
            space.requests.run(now=True)

    def _scrub(self, space: Workspace) -> None:
        self._finish(space)
        space.scrub()
        if not self.away:
            must(not space.repair().lost, "a bundle is lost although every holder is there")
            self.damaged.clear()

    def _open_stage(self, space: Workspace) -> None:
        self._finish(space)
        if len(space.ledger.stages()) > self.stages:
            self.stages = len(space.ledger.stages())
            self.joined = len(space.ledger.members()) - self.clients
            return
        space.train()
        join = 1 if self.stages == 1 and self._joinable() else 0
        space.open_stage(handover=self.handovers[self.stages - 1], join=join)
        self.stages, self.joined = self.stages + 1, self.joined + join

    def _joinable(self) -> bool:
        return self.seed % 2 == 0 and self.joined == 0 and not self._expected().nobody(stub.names(self.clients + 1)[-1])

    # --- what is asked --------------------------------------------------------------------------------------

    def _new_wish(self) -> Callable[[Workspace], None]:
        one = Asked(self._scope(), f"wish-{len(self.asked)}", "")
        name = one.scope.clients[0]
        one.own = self.random.random() < 0.75 and len(one.scope.clients) == 1
        one.by = name if one.own else "ann"
        self._sign(one)
        self.asked.append(one)

        def wish(space: Workspace) -> None:
            self._deliver(space, one)

        return wish

    def _new_by_hand(self) -> Callable[[Workspace], None]:
        one = Asked(self._scope(), "", "")
        self.asked.append(one)

        def by_hand(space: Workspace) -> None:
            self._deliver(space, one)

        return by_hand

    def _sign(self, one: Asked) -> None:
        """Wishes expire: one that was not acknowledged by then is signed anew."""
        wish = Wish(self._said(one.id, "client" if one.own else "operator", one.by), one.scope)
        signed = Signed.sign(wish.to_document(), key(one.by))
        one.blob, one.digest = signed.to_bytes(), signed.digest

    def _said(self, id: str, role: str, name: str) -> Said:
        nonce, issued = f"{self.random.getrandbits(128):032x}", self.clock.now
        return Said(FEDERATION, id, role, name, nonce, issued, issued + timedelta(days=31))  # type: ignore[arg-type]

    def _approve(self, space: Workspace, one: Asked) -> None:
        """The second operator's part."""
        verdict = Verdict(self._said(one.id, "operator", "bob"), one.digest, "approve").to_document()
        (receipt,) = space.requests.decide(Signed.sign(verdict, key("bob")).to_bytes()).receipts
        must(receipt.state != "denied", f"the approval of {one.id} was denied: {receipt.why}")

    def _scope(self) -> Scope:
        draw = self.random
        name = draw.choice(stub.names(self.clients))
        count = len(self.task.examples[name])
        kind = draw.choice(["client", "client", "client", "samples", "samples", "class", "stages"])
        if kind == "samples":
            return Scope.of_samples({name: draw.sample(range(count), draw.choice([1, 1, 1, count]))})
        if kind == "class":
            return Scope.of_class(int(draw.choice(list(self.task.examples[name].y))), [name])
        if kind == "stages":
            return Scope.of_stages(0, 0, [name])
        return Scope.of_clients({name, draw.choice([name, draw.choice(stub.names(self.clients))])})

    def _deliver(self, space: Workspace, one: Asked) -> None:
        if one.acknowledged:
            return
        if not one.blob:
            self._by_hand(space, one)
        else:
            (receipt,) = space.requests.ask(one.blob).receipts
            if receipt.kind == "expired":
                self._sign(one)
                (receipt,) = space.requests.ask(one.blob).receipts
            if receipt.state == "denied":
                must(receipt.kind == "impossible", f"{one.id} was denied: {receipt.why}")
                self._only_the_rest(space, one)
            elif receipt.state == "received":
                self._approve(space, one)
        one.acknowledged = True

    def _by_hand(self, space: Workspace, one: Asked) -> None:
        self._finish(space)
        try:
            space.forget(scope=one.scope)
        except AlreadyForgotten:
            self._only_the_rest(space, one)

    def _only_the_rest(self, space: Workspace, one: Asked) -> None:
        """Some of it was forgotten before: who asked is told so, and asks for the rest."""
        must(self._done(space, one), f"what was not forgotten is said to be: {one.scope}")
        gone = {m.client for m, rebuild in space.ledger.members() if rebuild is not None}
        rest = sorted(set(one.scope.clients) - gone)
        if one.scope.kind == "client" and rest:
            self.asked.append(again := Asked(Scope.of_clients(rest), f"wish-{len(self.asked)}", "ann", own=False))
            self._sign(again)
            self._deliver(space, again)

    def _done(self, space: Workspace, one: Asked) -> bool:
        """Whether somebody it names is forgotten already, or all of it is."""
        gone = {m.client for m, rebuild in space.ledger.members() if rebuild is not None}
        if set(one.scope.clients) & gone:
            return True
        return Effect.of(space).holds(Expected.of([one.scope], self))

    # --- what goes wrong --------------------------------------------------------------------------------------

    def _meanwhile(self) -> None:
        """Between two commands: at most one thing, and often none."""
        ways = (self._holder_away, self._holder_back, self._bit_flip, self._again, self._forge)
        what = self.random.choice([None, None, *ways, self._jump, self._back_up, self._restore])
        if what is not None and what():
            name = what.__name__.strip("_").replace("_", " ")
            self.trail.append(name)
            self.met[name] += 1

    def _holder_away(self) -> bool:
        folders = sorted((self.path / "holders").glob("client-*"))
        here = [path for path in folders if path.is_dir() and path.name not in self.away]
        if not here or self.settings.keeping.layout == "server" or self.files.pending:
            return False  # what is moved must be durable, for the disk does not see it
        chosen = self.random.choice(here)
        self._aside(chosen.name).parent.mkdir(exist_ok=True)
        chosen.rename(self._aside(chosen.name))
        self.away.add(chosen.name)
        return True

    def _aside(self, holder: str) -> Path:
        return self.path.with_name(f"{self.path.name}-away") / holder

    def _holder_back(self) -> bool:
        if not self.away:
            return False
        self._bring(self.random.choice(sorted(self.away)))
        return True

    def _bring(self, holder: str) -> None:
        """With what it had when it left, beside what it was given since."""
        aside, home = self._aside(holder), self.path / "holders" / holder
        for path in sorted(p for p in aside.rglob("*") if p.is_file()):
            target = home / path.relative_to(aside)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
        home.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside)
        self.away.discard(holder)

    def _everybody_back(self) -> None:
        for holder in sorted(self.away):
            self._bring(holder)

    def _bit_flip(self) -> bool:
        """In a slice that the code can do without."""
        with self._opened() as space:
            for bundle in space.ledger.bundles(FEDERATION):
                bad = [k for k in bundle.keys if k in self.damaged or k.holder in self.away]
                spare = len(bundle.holders) - len(bad) - code_named(bundle.code).k
                key = self.random.choice(bundle.keys)
                path = space.store.path(key)  # type: ignore[attr-defined]
                if spare > 0 and key not in bad and key.holder not in (HEAD, SERVER) and path.exists():
                    blob = bytearray(path.read_bytes())
                    blob[self.random.randrange(len(blob))] ^= 1 << self.random.randrange(8)
                    path.write_bytes(blob)
                    self.damaged.add(key)
                    return True
        return False

    def _again(self) -> bool:
        """A request that was acknowledged comes again, up to fifty times."""
        sent = [one for one in self.asked if one.acknowledged and one.blob]
        if not sent:
            return False
        one = self.random.choice(sent)
        with self._opened() as space:
            for receipt in space.requests.ask(*[one.blob] * self.random.choice([1, 2, 50])).receipts:
                fine = receipt.again or receipt.kind == "expired"
                fine = fine or (receipt.kind == "impossible" and self._done(space, one))
                must(fine, f"{one.id}, delivered again, was {receipt}")
        return True

    def _forge(self) -> bool:
        """Requests nobody may make: none is taken, and nothing changes."""
        draw, now = self.random, self.clock.now.replace(microsecond=0)
        victim, other = draw.sample(stub.names(self.clients), 2)
        said = Said(FEDERATION, "forged", "client", victim, f"{draw.getrandbits(128):032x}", now, now + timedelta(1))
        scope = Scope.of_clients([victim])

        def signed(one: Said, by: str) -> bytes:
            return Signed.sign(Wish(one, scope).to_document(), key(by)).to_bytes()

        def other_bit() -> bytes:
            blob = bytearray(signed(said, victim))
            blob[draw.randrange(len(blob))] ^= 1 << draw.randrange(8)
            return bytes(blob)

        late = Said(FEDERATION, "late", "client", victim, "b" * 32, now - timedelta(9), now - timedelta(2))
        elsewhere = Said("another", "elsewhere", "client", victim, "c" * 32, now, now + timedelta(1))
        makers: list[Callable[[], bytes]] = [
            other_bit,
            lambda: signed(said, "nobody"),
            lambda: signed(said, other),
            lambda: signed(late, victim),
            lambda: signed(elsewhere, victim),
            lambda: draw.randbytes(draw.randrange(200)),
        ]
        with self._opened() as space:
            with space.ledger.reading() as db:
                before = len(queue.listed(db))
            for receipt in space.requests.ask(draw.choice(makers)()).receipts:
                must(receipt.state == "denied", f"a forged request was taken: {receipt}")
            with space.ledger.reading() as db:
                must(len(queue.listed(db)) == before, "a forged request is in the queue")
        return True

    def _jump(self) -> bool:
        self.clock.now += timedelta(hours=self.random.choice([1, 25, 24 * 9, 24 * 40]))
        return True

    def _back_up(self) -> bool:
        self.backup = Backup((self.path / "ledger.db").read_bytes(), self.stages, self.joined)
        return False  # nothing went wrong

    def _restore(self) -> bool:
        """The ledger is lost and an older one comes back: what was acknowledged since is delivered again."""
        if self.backup is None or self.random.random() < 0.5:
            return False
        self.engine.dispose()
        (self.path / "ledger.db").write_bytes(self.backup.ledger)
        (self.path / "ledger.db-journal").unlink(missing_ok=True)
        self.stages, self.joined = self.backup.stages, self.backup.joined
        for one in self.asked:
            one.acknowledged = False
        with self._opened() as space:
            space.requests.run()  # takes the lock: the tombstones are replayed
        return True

    # --- what must hold ---------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Nobody who was seen to be forgotten is ever seen again."""
        with self._opened() as space:
            there = {m.client for m, rebuild in space.ledger.members() if rebuild is None}
            must(not there & self.gone, f"resurrected: {there & self.gone}")
            self.gone |= {m.client for m, rebuild in space.ledger.members() if rebuild is not None}

    def _settle_all(self) -> None:
        """The end: everybody is there, everything is delivered, trained and carried out."""
        self._everybody_back()
        with self._opened() as space:
            self._work(space)
            if len(space.ledger.stages()) < self.stages:
                raise Broken("a stage is lost")
            self._train(space)
            self.clock.now += timedelta(days=40)
            space.repair()
            space.requests.run(now=True)
            self._train(space)

    def _expected(self) -> "Expected":
        return Expected.of([one.scope for one in self.asked if one.acknowledged], self)

    def _judge(self) -> None:
        """No request lost, nobody back, no effect twice, and the models of the undisturbed life."""
        must(all(one.acknowledged for one in self.asked), "a request was never acknowledged")
        expected = self._expected()
        with self._opened() as space:
            Effect.of(space).must_be(expected)
            states = {line.id: line.state for line in space.requests.list().requests}
            done = {"executed", "final", "rejected"}
            must(set(states.values()) <= done, f"not carried out: {states}")
            carried = Counter(r for e in space.ledger.events() if e.kind == "executed" for r in e.body["requests"])
            must(all(count == 1 for count in carried.values()), f"carried out twice: {carried}")
            report = space.verify()
            must(report.passed, f"verify: {report.checks}")
            must(not report.findings and not space.ledger.debts(), "slices are missing, or owed")
            found = {tuple(p): row.model_digest for p, row in space.state().rows.items()}
            must(found == self._world(space, expected), "the models are not those of the undisturbed life")
            self._no_strays(space)
        self.engine.dispose()
        shutil.rmtree(self.path)
        shutil.rmtree(self._aside(HEAD).parent, ignore_errors=True)

    def _world(self, space: Workspace, expected: "Expected") -> Mapping[tuple[int, ...], str]:
        """Trained from nothing, in memory, by what was asked alone."""
        names = stub.names(self.clients + self.joined)
        members = [Member(name, seat, joined=0 if seat < self.clients else 1) for seat, name in enumerate(names)]
        stages = [Stage(2), *(Stage(2, handover) for handover in self.handovers)][: self.stages]  # type: ignore[arg-type]
        settings = self.settings
        plan = Plan(settings.seed, 2, tuple(members), tuple(stages), settings.participants or None)
        away = frozenset((c, t) for c, ts in expected.away.items() for t in ts if plan.member(c).present(t))
        left = frozenset(c for c in expected.left if c in plan.clients)
        plan = plan.changed(PlanChange(left, away=away))
        must(plan == space.state().plan, f"the plan is {space.state().plan}, not {plan}")
        mine = stub.Here(stub.Hashing(), effective(self.task.examples, expected.drops))
        return {tuple(r.place): r.model.digest for r in train_all(mine, plan, stub.Hashing(), settings.training)}

    def _no_strays(self, space: Workspace) -> None:
        state = space.state()
        must(space.keys.epochs() == (state.vault.epoch,), f"keys of {space.keys.epochs()}")
        known = {space.store.path(k) for b in state.bundles for k in b.keys}  # type: ignore[attr-defined]
        found = {Path(folder, n) for folder, _, some in os.walk(self.path / "holders") for n in some}
        must(found == known, f"strays: {found ^ known}")


@dataclass(frozen=True)
class Expected:
    """What a set of scopes comes to, whatever the order."""

    left: frozenset[str]
    drops: Mapping[str, frozenset[int]]
    away: Mapping[str, frozenset[int]]

    @staticmethod
    def of(scopes: list[Scope], life: Life) -> "Expected":
        left: set[str] = set()
        drops: dict[str, set[int]] = {}
        away: dict[str, set[int]] = {}
        for scope in scopes:
            for client in scope.clients:
                mine = life.task.examples[client]
                if scope.kind == "client":
                    left.add(client)
                elif scope.kind == "stages" and scope.stages is not None:
                    away.setdefault(client, set()).update(range(scope.stages[0], scope.stages[1] + 1))
                elif scope.kind == "class":
                    drops.setdefault(client, set()).update(i for i, y in enumerate(mine.y) if y == scope.label)
                else:
                    drops.setdefault(client, set()).update(scope.samples[client])  # type: ignore[arg-type]
        left |= {c for c, rows in drops.items() if len(rows) == len(life.task.examples[c])}
        return Expected(
            frozenset(left),
            {c: frozenset(rows) for c, rows in sorted(drops.items()) if c not in left},
            {c: frozenset(stages) for c, stages in sorted(away.items()) if c not in left},
        )

    def nobody(self, client: str) -> bool:
        return client in self.left


@dataclass(frozen=True)
class Effect:
    """What the ledger says was forgotten."""

    left: frozenset[str]
    drops: Mapping[str, frozenset[int]]
    away: Mapping[str, frozenset[int]]

    @staticmethod
    def of(space: Workspace) -> "Effect":
        left = frozenset(m.client for m, rebuild in space.ledger.members() if rebuild is not None)
        return Effect(left, erasures.drops(space.ledger), erasures.absences(space.ledger))

    def must_be(self, expected: Expected) -> None:
        must(self.left == expected.left, f"left are {set(self.left)}, not {set(expected.left)}")
        must(self.drops == expected.drops, f"dropped are {self.drops}, not {expected.drops}")
        must(self.away == expected.away, f"away are {self.away}, not {expected.away}")

    def holds(self, expected: Expected) -> bool:
        """Whether all of it is among what was forgotten."""
        rows = all(c in self.left or r <= self.drops.get(c, frozenset()) for c, r in expected.drops.items())
        stages = all(c in self.left or t <= self.away.get(c, frozenset()) for c, t in expected.away.items())
        return expected.left <= self.left and rows and stages


def key(name: str) -> SecretKey:
    """Everybody's secret key, from the name."""
    return SecretKey(name.encode().ljust(32, b"."))


def failure(seed: int, life: Life, fault: BaseException) -> str:
    """How to see it again, and what had happened."""
    said = f"{type(fault).__name__}: {fault}"
    return "\n".join([f"seed {seed}: {said}", *(f"  {line}" for line in life.trail)])


@dataclass(frozen=True)
class Theatre:
    """Where lives are lived, one after another."""

    room: Path
    engine: Engine

    @staticmethod
    def at(room: Path) -> "Theatre":
        return Theatre(room, database.engine(f"sqlite:///{room / 'life' / 'ledger.db'}"))

    def lived(self, seed: int, faults: int = FAULTS) -> tuple[Counter[str], str]:
        """The faults a life met, and what broke in it, if anything did."""
        life = Life(seed, self.room / "life", self.engine, faults)
        try:
            return life.live(), ""
        except (Broken, FedForgetError, OSError, ValueError, LookupError, TypeError) as fault:
            self.engine.dispose()
            for path in self.room.iterdir():
                shutil.rmtree(path)
            return life.met, failure(seed, life, fault)
