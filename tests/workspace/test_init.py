"""Making a federation: what is there afterwards, and what a refused or interrupted `init` leaves behind."""

import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from small import Died, assert_in_order, client, dies_before, make, opened, operations, small_settings, small_task
from worlds import contents, refused

from fedforget.errors import DataError, FedForgetError, NotAWorkspace, SettingError, WorkspaceBusy, WorkspaceExists
from fedforget.manifest import Keeping
from fedforget.storage.disk import Disk
from fedforget.workspace import FederationSettings, Task, Workspace
from fedforget.workspace.lock import locked


def test_a_new_federation_has_settings_ledger_and_key_and_nobody_trained(room: Path) -> None:
    with make(room / "w") as space:
        status = space.status(members=True)
        assert {p.name for p in (room / "w").iterdir()} == {"federation.toml", "ledger.db", "keys", "lock"}
        assert [s.rounds for s in status.shards] == [0, 0]
        assert [s.clients for s in status.shards] == [4, 4]
        assert len(status.members) == 8
        assert status.forgotten == status.unfinished == ()
        assert status.total_bytes == 0
        assert_in_order(space)


def test_keys_are_for_the_owner_alone(room: Path) -> None:
    with make(room / "w") as space:
        assert stat.S_IMODE(space.keys.path(0).stat().st_mode) == 0o600


def test_the_default_federation_is_the_papers_on_the_bundled_digits(room: Path) -> None:
    with Workspace.init(room / "w") as space:
        chosen = space.settings
        assert (chosen.clients, chosen.shards, chosen.participants, chosen.rounds, chosen.epochs) == (100, 4, 5, 30, 10)
        assert (chosen.task, chosen.learner) == ("digits", "softmax")
        assert len(space.task.examples) == 100


def test_federations_made_alike_differ_in_name_and_key_so_that_no_record_of_one_opens_in_another(room: Path) -> None:
    names, keys = set(), set()
    for at in range(2):
        with Workspace.init(room / str(at), FederationSettings(clients=4, shards=1)) as space:
            names.add(space.settings.federation)
            keys.add(space.keys.path(0).read_bytes())
    assert len(names) == len(keys) == 2


def test_an_empty_directory_will_do(room: Path) -> None:
    (room / "w").mkdir()
    with make(room / "w") as space:
        assert space.status().clients == 8


def test_a_directory_with_anything_in_it_is_left_alone(room: Path) -> None:
    (room / "w").mkdir()
    (room / "w" / "letter.txt").write_text("dear")
    with refused(room, WorkspaceExists, str(room / "w")):
        make(room / "w")


def test_a_workspace_is_not_made_twice(room: Path) -> None:
    make(room / "w").close()
    with refused(room, WorkspaceExists):
        make(room / "w")


def test_a_file_is_no_place_for_one(room: Path) -> None:
    (room / "w").write_text("dear")
    with refused(room, WorkspaceExists):
        make(room / "w")


def test_more_shards_than_clients_is_refused_and_leaves_no_trace(room: Path) -> None:
    with refused(room, SettingError, "shards", "9", "8"):
        make(room / "w", shards=9)


def test_a_missing_data_set_leaves_no_trace(room: Path) -> None:
    with refused(room, DataError):
        Workspace.init(room / "w", FederationSettings(task="mnist", learner="softmax"), data=room / "nowhere")
    assert not (room / "w").exists()


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "/etc/passwd", "", ".", "..", ".hidden", "server", "server.head", "c" * 65, "a b", "ü\n"]
)
def test_a_client_whose_name_is_no_folders_name_is_refused_and_leaves_no_trace(room: Path, name: str) -> None:
    task = small_task()
    names = [*list(task.examples)[1:], name]
    odd = Task(task.dataset, task.learner, dict(zip(names, task.examples.values(), strict=True)))
    with refused(room, SettingError, "client"):
        Workspace.init(room / "w", small_settings(), task=odd)
    assert not (room / "w").exists()


def test_a_short_passphrase_is_refused_and_leaves_no_trace(room: Path) -> None:
    with refused(room, SettingError, "passphrase", "12 characters"):
        Workspace.init(room / "w", small_settings(), task=small_task(), passphrase="hunter2")
    assert not (room / "w").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": 0},
        {"shards": 0},
        {"rounds": 0},
        {"epochs": 0},
        {"participants": -1},
        {"batch": -1},
        {"hidden": 0},
        {"seats": 7},
        {"share": 0.0},
        {"share": float("nan")},
        {"momentum": 1.0},
        {"lr": -1.0},
        {"draw": "sometimes"},
        {"partition": "by-mood"},
        {"precision": "fp8"},
        {"task": "mnist1"},
        {"learner": "oracle"},
        {"learner": "nanogpt"},
        {"partition": "buckets", "clients": 5000},
        {"clients": 5000},
    ],
    ids=str,
)
def test_settings_nothing_can_be_made_of_are_refused_and_named(room: Path, changes: dict[str, object]) -> None:
    with refused(room, SettingError):
        Workspace.init(room / "w", FederationSettings.of({"learner": "mlp", **changes}))
    assert not (room / "w").exists()


def test_the_cross_layout_needs_a_holder_a_shard(room: Path) -> None:
    with pytest.raises(SettingError, match="holders"):
        replace(small_settings(), keeping=Keeping("cross", holders=1, threshold=1))


def test_an_init_that_died_at_any_step_is_begun_again(room: Path) -> None:
    def work(disk) -> None:  # type: ignore[no-untyped-def]
        make(room / "counted", disk=disk).close()

    steps = len(operations(work))
    assert steps > 5
    for step in range(steps):
        path = room / str(step)
        with pytest.raises(Died):
            make(path, disk=dies_before(step))
        if step < steps - 1:  # the last one makes the finished directory durable
            with pytest.raises(NotAWorkspace):
                Workspace.open(path)
            make(path).close()
        with opened(path) as space:
            space.train()
            assert_in_order(space)


def test_settings_last_so_that_an_interrupted_init_is_never_taken_for_a_workspace(room: Path) -> None:
    make(room / "w").close()
    (room / "w" / "federation.toml").unlink()
    before = contents(room)
    with pytest.raises(NotAWorkspace):
        Workspace.open(room / "w")
    assert contents(room) == before


def test_a_trained_workspace_that_lost_its_settings_is_not_begun_again(room: Path) -> None:
    with make(room / "w") as space:
        space.train()
    (room / "w" / "federation.toml").unlink()
    with refused(room, WorkspaceExists):
        make(room / "w")


def test_a_workspace_opens_where_it_was_moved_to(room: Path) -> None:
    with make(room / "w") as space:
        space.train()
        before = space.status()
    (room / "w").rename(room / "elsewhere")
    with opened(room / "elsewhere") as space:
        assert replace(space.status(), path=before.path) == before
        assert_in_order(space)


def test_a_seat_whose_examples_are_elsewhere_has_a_name_all_the_same(room: Path) -> None:
    whole = small_task()
    missing = client(5)
    part = replace(whole, examples={c: e for c, e in whole.examples.items() if c != missing})
    with Workspace.init(room / "w", small_settings(), task=part) as space:
        assert dict(space.status(members=True).members).keys() == whole.examples.keys()
        report = space.train()
    assert {(c, why) for c, _, why in report.absent} == {(missing, "lost")}


def test_two_at_once_the_second_is_told_that_the_first_is_at_it(room: Path) -> None:
    (room / "w").mkdir()
    with locked(room / "w"), refused(room, WorkspaceBusy):
        make(room / "w")
    inner: list[type[Exception]] = []

    def meanwhile(operation: str, target: str) -> None:
        try:
            make(room / "w")
        except FedForgetError as fault:
            inner.append(type(fault))

    make(room / "w", disk=Disk(meanwhile)).close()
    assert set(inner) == {WorkspaceBusy, WorkspaceExists} or set(inner) == {WorkspaceBusy}
    with opened(room / "w") as space:
        space.train()
        assert_in_order(space)


@pytest.mark.parametrize("left", ["keys alone", "keys and a tombstone", "keys and the ledger they open"])
def test_keys_of_another_federation_are_not_destroyed(room: Path, left: str) -> None:
    path = room / "w"
    with make(path) as space:
        space.train()
        if left == "keys and a tombstone":
            space.keys.bury("small", [client(1)])
    (path / "federation.toml").unlink()
    shutil.rmtree(path / "holders")
    if left == "keys alone":
        (path / "ledger.db").unlink()
    with refused(room, WorkspaceExists, "keys", "another federation"):
        make(path)
