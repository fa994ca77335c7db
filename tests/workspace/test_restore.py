"""An old database put back over a newer one: the forgotten stay forgotten, and nothing has to be believed."""

import shutil
from pathlib import Path

import pytest
from small import (
    EVERY_KEEPING,
    Died,
    assert_in_order,
    client,
    copied,
    dies_before,
    digests,
    every_digest,
    make,
    opened,
    operations,
    small_settings,
    small_task,
    trained,
)

from fedforget.errors import AlreadyForgotten, Damaged, NotTrained, SealBroken, SettingError
from fedforget.manifest import Keep, Layout
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace

LEAVER, NEXT = client(7), client(3)


def back_up(path: Path, to: Path) -> Path:
    to.parent.mkdir(exist_ok=True)
    shutil.copy(path / "ledger.db", to)
    return to


def put_back(backup: Path, path: Path) -> None:
    shutil.copy(backup, path / "ledger.db")


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_the_next_training_makes_the_models_the_leaver_never_joined_again(room: Path, layout: Layout, keep: Keep):
    path = trained(room / "w", layout, keep)
    backup = back_up(path, room / "old" / "ledger.db")
    with opened(path) as space:
        space.forget([LEAVER])
        wanted = every_digest(space)
    put_back(backup, path)
    with opened(path) as space:
        with pytest.raises(Damaged, match=r"epoch-0\.key"):
            space.status()  # nothing in it opens any more
        space.train()
        assert every_digest(space) == wanted
        assert_in_order(space)
        assert space.verify(never_joined=True).passed
        assert set(space.state().forgotten) == {LEAVER}
        assert not list(space.store.keys(LEAVER))
        with pytest.raises(AlreadyForgotten):
            space.forget([LEAVER])
        space.forget([NEXT])
        assert set(space.state().forgotten) == {LEAVER, NEXT}
        assert_in_order(space)


def test_whatever_moment_of_a_forget_the_backup_is_from(room: Path):
    """From before it to its end; those of after the switch are no old databases at all."""
    path, backups = trained(room / "w"), room / "backups"

    def probe(operation: str, target: str) -> None:
        if operation in ("commit", "erase"):
            back_up(path, backups / f"{len(list(backups.glob('*')) if backups.is_dir() else []):03d}")

    with opened(path, disk=Disk(probe)) as space:
        space.forget([LEAVER])
        wanted = every_digest(space)
    made = sorted(backups.iterdir())
    assert len(made) > 4
    for backup in made:
        again = copied(path, room / "again")
        put_back(backup, again)
        with opened(again) as space:
            space.train()
            assert_in_order(space)
            assert every_digest(space) == wanted
            assert set(space.state().forgotten) == {LEAVER}
        shutil.rmtree(again)


def test_after_two_forgets_the_oldest_backup_brings_neither_back(room: Path):
    path = trained(room / "w")
    backup = back_up(path, room / "old" / "ledger.db")
    with opened(path) as space:
        space.forget([LEAVER])
        space.forget([NEXT], "calibrated")
        grown = space.state().vault.epoch
    put_back(backup, path)
    with opened(path) as space:
        space.train()
        assert set(space.state().forgotten) == {LEAVER, NEXT}
        assert space.state().vault.epoch == grown == 2
        assert_in_order(space)
        assert space.verify(never_joined=True).passed


def test_a_passphrase_goes_from_epoch_to_epoch_and_over_a_restore(room: Path):
    words = "correct horse battery"
    path, task = room / "w", small_task()
    space = Workspace.init(path, small_settings(), task=task, passphrase=words)
    space.train()
    space.close()
    backup = back_up(path, room / "old" / "ledger.db")
    for restored in (False, True):
        if restored:
            put_back(backup, path)
        space = Workspace.open(path, task=task, passphrase=words)
        space.train() if restored else space.forget([LEAVER])
        assert_in_order(space)
        assert set(space.state().forgotten) == {LEAVER}
        space.close()
    for wrong, fault in (("correct horse bakery", SealBroken), (None, SettingError)):
        space = Workspace.open(path, task=task, passphrase=wrong)
        with pytest.raises(fault):
            space.train()
        space.close()


def test_a_restore_interrupted_at_every_operation(room: Path):
    path = trained(room / "w")
    backup = back_up(path, room / "old" / "ledger.db")
    with opened(path) as space:
        space.forget([LEAVER])
        wanted = every_digest(space)
    put_back(backup, path)
    straight = copied(path, room / "straight")

    def work(disk: Disk, where: Path) -> None:
        with opened(where, disk=disk) as space:
            space.train()

    steps = operations(lambda disk: work(disk, straight))
    first_round = next(i for i, (operation, target) in enumerate(steps) if target == "enter")
    for step in range(0, first_round + 2, 2):
        again = copied(path, room / "again")
        with pytest.raises(Died):
            work(dies_before(step), again)
        with opened(again) as space:
            space.train()
            assert_in_order(space)
            assert every_digest(space) == wanted
            assert set(space.state().forgotten) == {LEAVER}
        shutil.rmtree(again)


def test_an_old_database_beside_both_keys_does_not_bring_the_leaver_back(room: Path):
    """The process died between the switch and the end of the old key, and then the backup was put back."""
    path = trained(room / "w")
    backup = back_up(path, room / "old" / "ledger.db")
    straight = copied(path, room / "straight")

    def work(disk: Disk) -> None:
        with opened(straight, disk=disk) as space:
            space.forget([LEAVER])

    steps = operations(work)
    with opened(straight) as space:
        wanted = digests(space)
    switch, erase = steps.index(("commit", "switch")), [o for o, _ in steps].index("erase")
    for step in (switch + 1, erase, erase + 1):
        again = copied(path, room / "again")
        with pytest.raises(Died), opened(again, disk=dies_before(step)) as space:
            space.forget([LEAVER])
        put_back(backup, again)
        with opened(again) as space:
            space.train()
            assert set(space.state().forgotten) == {LEAVER}
            assert digests(space) == wanted
            assert_in_order(space)
        shutil.rmtree(again)


def test_keys_older_than_the_database_are_named_and_nothing_is_touched(room: Path):
    path = trained(room / "w")
    old_keys = copied(path / "keys", room / "old keys")
    with opened(path) as space:
        space.forget([LEAVER])
        before = sorted(space.store.keys())
    shutil.rmtree(path / "keys")
    copied(old_keys, path / "keys")
    with opened(path) as space:
        with pytest.raises(Damaged, match=r"epoch-1\.key"):
            space.train()
        assert sorted(space.store.keys()) == before


def test_a_holder_that_was_away_during_the_restore_brings_nothing_old_into_force(room: Path):
    """Its slices bear the same names as those made after the restore, but not the same bytes."""
    path = trained(room / "w")
    with opened(path) as space:
        holder = next(h for h in space.state().history[-1].holders if h != LEAVER)
        backups = [back_up(path, room / "old" / "before")]
        space.forget([LEAVER])
        wanted = every_digest(space)
    (path / "holders" / holder).rename(room / "away")
    put_back(backups[0], path)
    with opened(path) as space:
        space.train()
    shutil.copytree(room / "away", path / "holders" / holder, dirs_exist_ok=True)
    with opened(path) as space:
        space.train()
        assert every_digest(space) == wanted
        assert space.verify().passed
        space.repair()
        assert_in_order(space)


def test_a_client_that_joined_and_was_forgotten_after_the_backup_does_not_join_again(room: Path):
    """Its seat is no seat of the old database, which therefore has nothing to mark as forgotten."""
    path, newcomer, other = room / "w", client(8), client(9)
    with opened(trained(path, seats=10), seats=10) as space:
        backup = back_up(path, room / "old" / "ledger.db")
        assert [name for name, _ in space.open_stage(2, join=1).joined] == [newcomer]
        space.train()
        space.forget([newcomer])
    put_back(backup, path)
    with opened(path, seats=10) as space:
        assert f"forgotten again by the tombstones: {newcomer}" in space.train().notices
        assert set(space.state().forgotten) == {newcomer}
        assert_in_order(space)
        with pytest.raises(AlreadyForgotten):
            space.forget([newcomer])
        with pytest.raises(SettingError, match=other):
            space.open_stage(2, join=[newcomer])
        assert [name for name, _ in space.open_stage(2, join=1).joined] == [other]
        space.train()
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


def test_nobody_with_a_tombstone_takes_a_seat_or_keeps_one_unseen(room: Path):
    """Whatever the ledger says: tombstones are asked themselves."""
    path = trained(room / "w", seats=10)
    with opened(path, seats=10) as space:
        space.keys.bury("small", [client(8)])
        assert space.verify().passed
        assert [name for name, _ in space.open_stage(2, join=1).joined] == [client(9)]
        space.keys.bury("small", [client(9)])
        (found,) = [check for check in space.verify().checks if not check.passed]
        assert found.what == "forgotten"
        assert f"{client(9)}, who has a tombstone" in found.detail


def test_between_its_tombstones_and_its_switch_a_forget_is_not_taken_for_a_return(room: Path):
    path = trained(room / "w")
    twin = copied(path, room / "twin")

    def forget(disk: Disk, where: Path) -> None:
        with opened(where, disk=disk) as space:
            space.forget([LEAVER])

    steps = operations(lambda disk: forget(disk, twin))
    with pytest.raises(Died):
        forget(dies_before(steps.index(("commit", "switch"))), path)
    with opened(path) as space:
        (check,) = [check for check in space.verify().checks if check.what == "forgotten"]
        assert "tombstone" not in check.detail
        space.forget()
        assert_in_order(space)


@pytest.mark.parametrize("handover", ["lineage", "fresh", "merged"])
def test_a_backup_of_several_stages_is_trained_again_stage_after_stage(room: Path, handover: str):
    path = trained(room / "w")
    with opened(path) as space:
        space.open_stage(2, handover)
        space.train()
        backup = back_up(path, room / "old" / "ledger.db")
        space.forget([LEAVER])
        wanted = every_digest(space)
    put_back(backup, path)

    def half_way(what: str, done: int, total: int) -> None:
        if done == 4:
            raise Died

    with opened(path) as space:
        with pytest.raises(Died):
            space.train(half_way)
        with pytest.raises(NotTrained, match="no finished stage 0"):
            space.open_stage(2)
        (lineage,) = [check for check in space.verify().checks if check.what == "lineage"]
        assert not lineage.passed
        assert "stage 0, shard 0 has 2 of its 3 rounds" in lineage.detail
        report = space.train()
        assert (report.stage, report.resumed_at, report.rounds) == (1, 4, 6)
        assert every_digest(space) == wanted
        assert_in_order(space)
        assert space.verify(never_joined=True).passed


def test_an_older_database_with_no_forget_in_between_trains_on_from_a_lean_history(room: Path):
    """The head it knows was given up when the next was made: it is trained again from the nearest kept start."""
    path = room / "w"

    def half_way(what: str, done: int, total: int) -> None:
        if done == 20:
            raise Died

    space = make(path, keep="lean", rounds=12)
    with pytest.raises(Died):
        space.train(half_way)
    backup = back_up(path, room / "old" / "ledger.db")
    space.train()
    wanted = every_digest(space)
    space.close()
    newest = back_up(path, room / "new" / "ledger.db")
    note = (path / "keys" / "log.note").read_bytes()
    put_back(backup, path)
    with opened(path) as space:  # the wrong backup: what was made since is still there
        before = set(space.store.keys())
        assert space.scrub().findings
        assert set(space.repair().lost) == set()
        assert before <= set(space.store.keys())
    put_back(newest, path)
    (path / "keys" / "log.note").write_bytes(note)
    put_back(backup, path)
    with opened(path) as space:
        assert space.train().rounds == 4
        assert every_digest(space) == wanted
        assert_in_order(space)
