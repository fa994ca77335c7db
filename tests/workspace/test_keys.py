"""The epoch key: where it lies, what opens it, what its loss and its destruction mean."""

from pathlib import Path

import pytest
from small import client, copied, make, opened, small_settings, small_task
from worlds import refused

from fedforget.errors import Damaged, SealBroken, SettingError
from fedforget.workspace import Workspace
from fedforget.workspace.keys import KeyFolder, tombstone

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(scope="module")
def guarded(shared_room: Path) -> Path:
    """A trained workspace whose key is made by a passphrase."""
    path = shared_room / "guarded"
    with Workspace.init(path, small_settings(), task=small_task(), passphrase=PASSPHRASE) as space:
        space.train()
    return path


def test_a_key_is_made_once_and_read_back(room: Path) -> None:
    keys = KeyFolder(room)
    made = keys.make(3)
    assert keys.load(3) == made
    assert keys.epochs() == (3,)
    assert made.key.hex() not in repr(made)
    assert PASSPHRASE not in repr(KeyFolder(room, PASSPHRASE))


def test_with_a_passphrase_the_key_itself_is_nowhere_on_disk(room: Path) -> None:
    made = KeyFolder(room, PASSPHRASE).make(0)
    assert made.key not in (room / "epoch-0.key").read_bytes()
    assert KeyFolder(room, PASSPHRASE).load(0) == made
    with pytest.raises(SealBroken):
        KeyFolder(room, PASSPHRASE + "!").load(0)


def test_a_guarded_workspace_works_with_its_passphrase(guarded: Path, room: Path) -> None:
    path = copied(guarded, room / "w")
    with Workspace.open(path, task=small_task(), passphrase=PASSPHRASE) as space:
        space.forget([client(0)])
        assert space.verify(never_joined=True).passed


def test_a_typo_before_the_first_training_seals_nothing_under_another_key(room: Path) -> None:
    Workspace.init(room / "w", small_settings(), task=small_task(), passphrase=PASSPHRASE).close()
    typo = PASSPHRASE + " "
    with (
        Workspace.open(room / "w", task=small_task(), passphrase=typo) as space,
        refused(room / "w", SealBroken, "FEDFORGET_PASSPHRASE"),
    ):
        space.train()


def test_without_the_passphrase_nothing_opens_and_the_way_out_is_said(guarded: Path, room: Path) -> None:
    path = copied(guarded, room / "w")
    with opened(path) as space:
        for verb in (space.status, space.train, space.verify, space.evaluate, lambda: space.forget([client(0)])):
            with refused(path, SettingError, "FEDFORGET_PASSPHRASE"):
                verb()


@pytest.mark.parametrize("wrong", ["correct horse battery stable", "x" * 40])
def test_a_wrong_passphrase_opens_nothing_and_loses_nothing(guarded: Path, room: Path, wrong: str) -> None:
    path = copied(guarded, room / "w")
    with Workspace.open(path, task=small_task(), passphrase=wrong) as space:
        for verb in (space.status, space.train, space.evaluate, lambda: space.forget([client(0)])):
            with refused(path, SealBroken, "keys/", "FEDFORGET_PASSPHRASE"):
                verb()
    with Workspace.open(path, task=small_task(), passphrase=PASSPHRASE) as space:
        assert space.verify().passed


def test_a_passphrase_nobody_asked_for_is_not_used(room: Path) -> None:
    with make(room / "w") as space:
        space.train()
    with Workspace.open(room / "w", task=small_task(), passphrase=PASSPHRASE) as space:
        assert space.status().shards[0].rounds == 3


@pytest.mark.parametrize("blob", [b"", b"fedforget-key-1\n", b"fedforget-key-1\n" + bytes(47), b"something else" * 5])
def test_a_key_file_of_another_size_or_kind_is_damaged(room: Path, blob: bytes) -> None:
    keys = KeyFolder(room)
    keys.path(0).write_bytes(blob)
    with pytest.raises(Damaged, match=r"epoch-0\.key"):
        keys.load(0)


@pytest.mark.parametrize("at", [20, -1])
def test_a_key_with_a_flipped_bit_is_damaged_and_unlocks_nothing_else(room: Path, at: int) -> None:
    keys = KeyFolder(room)
    keys.make(0)
    blob = bytearray(keys.path(0).read_bytes())
    blob[at] ^= 4
    keys.path(0).write_bytes(blob)
    with pytest.raises(Damaged, match=r"epoch-0\.key"):
        keys.load(0)


def test_a_passphrase_that_is_too_short_writes_no_key(room: Path) -> None:
    with pytest.raises(SettingError, match="12 characters"):
        KeyFolder(room, "short").make(1)
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("blob", [b"", b"[", b"\xff\xfe", b"3", b"[[]]"])
def test_damaged_tombstones_are_named_never_taken_for_none(room: Path, blob: bytes) -> None:
    (room / "tombstones.json").write_bytes(blob)
    with pytest.raises(Damaged, match=r"tombstones\.json"):
        KeyFolder(room).tombstones()


def test_a_key_that_is_gone_is_named(room: Path) -> None:
    with pytest.raises(Damaged, match=r"epoch-7\.key.*no file"):
        KeyFolder(room).load(7)


def test_all_keys_but_one_are_destroyed(room: Path) -> None:
    keys = KeyFolder(room)
    for epoch in range(4):
        keys.make(epoch)
    keys.destroy_all_but(2)
    keys.destroy_all_but(2)
    assert keys.epochs() == (2,)
    assert [p.name for p in room.iterdir()] == ["epoch-2.key"]


def test_tombstones_name_nobody_to_those_who_do_not_know_the_name(room: Path) -> None:
    keys = KeyFolder(room)
    assert keys.tombstones() == frozenset()
    keys.bury("mine", ["client-007"])
    keys.bury("mine", ["client-008", "client-007"])
    assert keys.tombstones() == {tombstone("mine", "client-007"), tombstone("mine", "client-008")}
    assert b"client-00" not in (room / "tombstones.json").read_bytes()
    assert tombstone("mine", "client-007") != tombstone("yours", "client-007")
