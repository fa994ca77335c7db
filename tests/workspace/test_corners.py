"""What happens to requests in the corners: races, restored ledgers, new stages, keys in files, a daemon."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asking import Clock, ask, desk, enrol, key, kinds, states, wish
from small import Died, assert_in_order, client, copied, small_settings, small_task, trained

from fedforget.errors import Damaged, SettingError, Unrecoverable, WorkspaceBusy, WorkspaceExists
from fedforget.requests import Scope
from fedforget.requests.signed import Signed
from fedforget.slices import SliceKey
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace, signer
from fedforget.workspace.lock import locked

EVERYBODY = [client(i) for i in range(8)]


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    path = trained(shared_room / "pristine", seats=9)
    with desk(path, Clock(), seats=9) as space:
        enrol(space, EVERYBODY)
    return path


@pytest.fixture
def path(pristine: Path, room: Path) -> Path:
    return copied(pristine, room / "w")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@dataclass
class Interrupting:
    """A store during whose first read something else happens."""

    store: DirectoryStore
    then: Any
    done: list[bool] = field(default_factory=list)

    def get(self, key: SliceKey) -> bytes | None:
        if not self.done:
            self.done.append(True)
            self.then()
        return self.store.get(key)

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        self.store.put(pieces)

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        return self.store.delete(keys)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        return self.store.keys(holder)

    def ahead(self, groups: Iterable[tuple[Sequence[SliceKey], int]]) -> None:
        self.store.ahead(groups)


def test_held_while_its_batch_is_made_up_it_is_left_out_of_it(path: Path, clock: Clock) -> None:
    with desk(path, clock, seats=9) as space:
        plan = space.state().plan
        late = [next(c for c in plan.present(0, s) if c not in plan.cohort(0, s, 0)) for s in range(2)]
        ask(space, *late)

    def hold() -> None:
        with desk(path, clock, seats=9) as other:
            other.requests.say(f"r-{late[0]}", "hold", "wait")

    store = Interrupting(DirectoryStore(path / "holders", Disk()), hold)
    with desk(path, clock, seats=9, store=store) as space:
        assert space.requests.run(now=True).executed == (f"r-{late[1]}",)
        assert store.done
        assert states(space)[f"r-{late[0]}"] == "on_hold"


def test_forgotten_by_hand_before_its_batch_it_is_done_with(path: Path, clock: Clock) -> None:
    """It waits in the queue, quarantined, when `forget` is quicker."""
    with desk(path, clock, seats=9) as space:
        ask(space, client(0))
        space.forget([client(0)], "calibrated")  # which nobody joins
        assert states(space) == {"r-client-000": "quarantined", "by-hand-1": "executed"}
        report = space.requests.run(now=True)
        assert (report.executed, report.waiting, report.rebuilds) == ((), 0, ())
        assert states(space)["r-client-000"] == "executed"
        assert space.requests.list().left_out == ()


def test_a_stage_opened_meanwhile_is_left_out_too(path: Path, clock: Clock) -> None:
    with desk(path, clock, seats=9) as space:
        ask(space, client(0))
        shard = space.state().plan.shard_of(client(0))
        assert [cell[:2] for cell in space.requests.list().left_out] == [(0, shard)]
        space.open_stage(join=1)
        assert states(space) == {"r-client-000": "quarantined"}
        assert [cell[:2] for cell in space.requests.list().left_out] == [(0, shard), (1, shard)]
        space.train()
        assert space.requests.run(now=True).executed == ("r-client-000",)
        assert_in_order(space)


def test_where_all_at_once_cannot_be_done_the_shards_go_one_by_one(path: Path, clock: Clock) -> None:
    """Clean forgetting borrows from a shard that is not touched; here is none, nor when the other has borrowed."""
    with desk(path, clock, seats=9) as space:
        plan = space.state().plan
        one, other = (plan.cohort(0, s, 0)[0] for s in range(2))
        ask(space, one, other)
        report = space.requests.run(now=True, method="clean")
        assert len(report.executed) == len(report.rebuilds) == len(report.needs_human) == 1
        assert {*report.executed, report.needs_human[0][0]} == {f"r-{one}", f"r-{other}"}
        assert "--method exact" in report.needs_human[0][1]
        space.requests.say(report.needs_human[0][0], "release")
        assert len(space.requests.run(now=True).executed) == 1
        assert_in_order(space)


def test_what_spoils_the_rebuild_itself_is_said_by_its_requests(path: Path, clock: Clock) -> None:
    """The slices go after the request was opened."""
    with desk(path, clock, seats=9) as space:
        plan = space.state().plan
        late = next(c for c in plan.present(0, 0) if c not in plan.cohort(0, 0, 0))
        ask(space, late)

    def dies(operation: str, target: str) -> None:
        if operation == "write":
            raise Died

    with pytest.raises(Died), desk(path, clock, seats=9, disk=Disk(dies)) as space:
        space.requests.run(now=True)
    with desk(path, clock, seats=9) as space:
        assert states(space) == {f"r-{late}": "rebuilding"}
        for slice in list(space.store.keys()):
            if slice.shard == 0 and slice.holder != "server.head":
                space.store.path(slice).unlink()
        report = space.requests.run()
        assert [request for request, _ in report.needs_human] == [f"r-{late}"]
        assert report.rebuilds == ()


def test_past_its_tombstones_a_rebuild_is_only_ever_finished(path: Path, clock: Clock) -> None:
    with desk(path, clock, seats=9) as space:
        plan = space.state().plan
        late = next(c for c in plan.present(0, 0) if c not in plan.cohort(0, 0, 0))
        ask(space, late)

    def dies(operation: str, target: str) -> None:
        if (operation, target) == ("commit", "switch"):
            raise Died

    with pytest.raises(Died), desk(path, clock, seats=9, disk=Disk(dies)) as space:
        space.requests.run(now=True)
    with desk(path, clock, seats=9) as space:
        slices = tuple(space.store.keys())
        kept = {s: space.store.get(s) for s in slices if s.generation == 1}
        for slice in kept:
            space.store.path(slice).unlink()
        with pytest.raises(Unrecoverable):
            space.requests.run()
        assert states(space) == {f"r-{late}": "rebuilding"}
        space.store.put({s: blob for s, blob in kept.items() if blob is not None})
        assert space.requests.run().executed == (f"r-{late}",)
        assert_in_order(space)


def test_without_the_data_a_request_is_taken_in_and_planned_all_the_same(path: Path, clock: Clock) -> None:
    with Workspace.open(path, clock=clock, data=path / "nowhere") as space:  # no task given, none there to build
        assert ask(space, client(0)).receipts[0].state == "quarantined"


def test_a_backup_from_before_takes_requests_up_again(path: Path, clock: Clock) -> None:
    with desk(path, clock, seats=9) as space:
        ask(space, client(0), client(1))
        space.requests.say("r-client-001", "hold", "wait")
    backup = (path / "ledger.db").read_bytes()
    with desk(path, clock, seats=9) as space:
        space.requests.run(now=True)
    (path / "ledger.db").write_bytes(backup)
    with desk(path, clock, seats=9) as space:
        space.train()
        assert states(space) == {"r-client-000": "authorised", "r-client-001": "on_hold"}
        report = space.requests.run(now=True)
        assert states(space) == {"r-client-000": "executed", "r-client-001": "on_hold"}
        assert space.requests.show("r-client-000").request.rebuild is None  # another ledger knows which
        assert report.rebuilds == ()
        clock.pass_by(days=31)
        assert space.requests.run().final == ("r-client-000",)


def test_a_daemon_works_pass_after_pass_and_looks_again_where_somebody_else_works(path: Path, clock: Clock) -> None:
    slept: list[float] = []
    told = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.pass_by(hours=12)
        if len(slept) == 4:
            raise KeyboardInterrupt

    with desk(path, clock, seats=9) as space:
        ask(space, client(0))
        with pytest.raises(KeyboardInterrupt):
            space.requests.watch(told.append, 5, sleep=sleep)
        assert slept == [5, 5, 5, 5]
        assert [report.executed for report in told] == [(), (), ("r-client-000",), ()]
        for wrong in (0.0, -1.0):
            with pytest.raises(SettingError):
                space.requests.watch(told.append, wrong)
        slept.clear()
        with locked(path), pytest.raises(KeyboardInterrupt):
            space.requests.watch(told.append, 5, sleep=sleep)
        assert len(told) == 4
        with locked(path), pytest.raises(WorkspaceBusy):
            space.requests.run()


def test_keys_and_wishes_lie_in_files(path: Path, room: Path, clock: Clock) -> None:
    made = signer.make_keys(room / "k")
    assert (room / "k").stat().st_mode & 0o777 == 0o600
    secret = signer.read_secret(room / "k")
    assert (
        str(secret.public)
        == made.key
        == str(signer.read_public(str(room / "k.pub")))
        == str(signer.read_public(made.key))
    )
    with pytest.raises(SettingError, match="already"):
        signer.make_keys(room / "k")
    with pytest.raises(SettingError, match="keygen"):
        signer.read_secret(room / "none")
    (room / "odd").write_bytes(b"\xff\xfe")
    with pytest.raises(Damaged):
        signer.read_secret(room / "odd")
    scope = Scope.of_clients([client(0)])
    report = signer.write_wish(room / "wish", "small", scope, "client", client(0), key(client(0)), clock.now)
    assert report.expires == "2026-03-03T12:00:00Z"
    with pytest.raises(SettingError, match="already"):
        signer.write_wish(room / "wish", "small", scope, "client", client(0), key(client(0)), clock.now)
    with desk(path, clock, seats=9) as space:
        assert space.requests.ask((room / "wish").read_bytes()).receipts[0].state == "quarantined"


def test_an_init_that_died_leaves_a_server_free_for_the_next(room: Path, postgres: Any) -> None:
    url = postgres.new()

    def dies(operation: str, target: str) -> None:
        if operation == "rename" and target.endswith("federation.toml"):
            raise Died

    settings = small_settings(ledger=url)
    with pytest.raises(Died):
        Workspace.init(room / "w", settings, task=small_task(), disk=Disk(dies))
    Workspace.init(room / "w", settings, task=small_task()).close()
    with pytest.raises(WorkspaceExists):
        Workspace.init(room / "other", settings, task=small_task())
    with Workspace.open(room / "w", task=small_task(), clock=Clock()) as space:
        space.train()
        enrol(space, EVERYBODY)
        ask(space, client(0))
        assert space.requests.run(now=True).executed == ("r-client-000",)
        assert space.verify(never_joined=True).passed
        assert kinds(space).count("forgotten") == 1


def test_nothing_is_signed_for_longer_than_a_month(path: Path, clock: Clock) -> None:
    with desk(path, clock, seats=9) as space:
        good = wish(space, client(0))
        assert Signed.read(good.to_bytes()) == good
        assert good.document["expires"] == "2026-03-03T12:00:00Z"
        with pytest.raises(SettingError, match="31 days"):
            space.requests.wish(Scope.of_clients([client(0)]), key(client(0)), days=32)
