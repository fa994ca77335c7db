"""The log and what was signed of it: what is current, put back, altered, and how each is told."""

import re
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from small import Died, client, copied, make, opened, reopen, small_settings, small_task, trained

from fedforget.errors import Damaged, SettingError, VerificationFailed
from fedforget.storage import tables
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace, auditing, log, settle


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine")


def ledger_check(space: Workspace) -> tuple[bool, str]:
    check = log.check(space)
    return check.passed, check.detail


def test_a_new_workspace_has_a_key_of_its_own_and_has_signed(room: Path) -> None:
    with make(room / "w") as space:
        assert space.keys.log_path.stat().st_mode & 0o777 == 0o600
        assert log.standing(space).kind == "current"
        assert auditing.key(space).key == str(space.keys.log_key().public)  # type: ignore[union-attr]
        assert b"secret" not in (room / "w" / "ledger.db").read_bytes()
        assert log.check(space).passed


def test_the_log_key_is_under_the_passphrase_too(room: Path) -> None:
    words = "correct horse battery"
    space = Workspace.init(room / "w", small_settings(), task=small_task(), passphrase=words)
    space.close()
    with Workspace.open(room / "w", task=small_task(), passphrase=words) as space:
        assert log.check(space).passed
    with Workspace.open(room / "w", task=small_task()) as space, pytest.raises(SettingError, match="PASSPHRASE"):
        log.check(space)


def test_every_verb_signs_what_it_did_and_one_that_did_nothing_signs_nothing(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        note = space.keys.note_path.read_bytes()
        space.train()
        assert space.keys.note_path.read_bytes() == note
        space.open_stage()
        assert space.keys.note_path.read_bytes() != note
        assert "signed" in ledger_check(space)[1]


def test_what_an_interrupted_verb_left_is_told_and_signed_by_the_next(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")

    def probe(operation: str, target: str) -> None:
        if (operation, target) == ("commit", "switch"):
            raise Died

    with pytest.raises(Died), opened(path, disk=Disk(probe)) as space:
        space.forget([client(7)])
    with opened(path) as space:
        passed, detail = ledger_check(space)
        assert passed
        assert re.search(r"[1-9]\d* since the last signature", detail)
        with pytest.raises(SettingError, match="below"):
            auditing.prove(space, space.ledger.height() - 1)
        space.forget()
        assert log.standing(space).since == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rounds SET body = replace(body, '\"plain\"', '\"clean\"')",
        "UPDATE members SET seat = seat + 100",
        "UPDATE records SET length = length + 1",
        "UPDATE bundles SET width = width + 1",
        "DELETE FROM debts",
        "INSERT INTO debts VALUES (0, 0, 0, 0, 'nobody')",
        "UPDATE meta SET value = '7' WHERE key = 'epoch'",
        "UPDATE requests SET state = 'refused'",
    ],
)
def test_a_row_altered_behind_its_back_is_found(room: Path, pristine: Path, statement: str) -> None:
    with opened(copied(pristine, room / "w")) as space:
        request = space.ledger.open_request({"leave": ["x"]})
        space.ledger.refuse(request, "a test")
        with space.ledger.engine.begin() as db:
            db.exec_driver_sql("INSERT INTO debts VALUES (9, 9, 9, 9, 'somebody')")
            db.exec_driver_sql("UPDATE requests SET state = 'executed'")
        space.ledger.note("x", "y")
        log.seal(space)
        assert log.check(space).passed
        with space.ledger.engine.begin() as db:
            assert db.exec_driver_sql(statement).rowcount > 0
        passed, detail = ledger_check(space)
        assert not passed
        assert "what is in force is not what was signed" in detail


def test_history_rewritten_with_all_its_hashes_does_not_fit_what_was_signed(pristine: Path, room: Path) -> None:
    """Somebody who can write the database, but has not the key."""
    path = copied(pristine, room / "w")
    with opened(path) as space, space.ledger.engine.begin() as db:
        rows = db.execute(sa.select(tables.events).order_by(tables.events.c.seq)).mappings().all()
        db.execute(sa.delete(tables.events))
        db.execute(sa.delete(tables.tree))
        from fedforget.storage import chain

        for row in rows:
            chain.append(db, space.ledger.clock, row["kind"], {"rewritten": True})
    with opened(path) as space:
        assert space.ledger.broken_link() is None
        with pytest.raises(Damaged, match="that was signed"):
            space.train()
        with pytest.raises(Damaged):
            space.verify()


def test_a_database_whose_pages_are_unsound_is_named(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space, space.ledger.engine.begin() as db:
        db.exec_driver_sql("PRAGMA writable_schema = ON")
        db.exec_driver_sql("DELETE FROM sqlite_master WHERE name LIKE 'ix_%'")
    with opened(path) as space:
        passed, detail = ledger_check(space)
        assert not passed
        assert "the database says" in detail


# --- the key ------------------------------------------------------------------------------------------------


def test_a_lost_key_is_named_with_the_way_out_and_never_replaced_in_silence(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    (path / "keys" / "log.key").unlink()
    with opened(path) as space:
        passed, detail = ledger_check(space)
        assert not passed
        assert f"{space.keys.log_path} is missing" in detail
        with pytest.raises(Damaged, match=r"fedforget log key DIR --new"):
            space.train()
        auditing.key(space, new=True)
        space.train()
        assert log.check(space).passed
        assert len(log.public_keys(space)) == 2


def test_a_key_exchanged_is_found(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        known = auditing.key(space).key
        space.keys.make_log_key()
        assert "is not the key the log names" in ledger_check(space)[1]
        with pytest.raises(Damaged, match=known):
            space.train()


def test_a_note_of_somebody_else_is_damage_and_none_at_all_is_told(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    note = path / "keys" / "log.note"
    note.write_bytes(note.read_bytes().replace(b"time 2", b"time 3"))
    with opened(path) as space, pytest.raises(Damaged, match=r"log\.note"):
        space.verify()
    note.unlink()
    with opened(path) as space:
        assert ledger_check(space)[0] is False
        space.train()
        assert log.check(space).passed


def test_a_workspace_of_before_the_log_was_signed_gets_its_key_with_the_next_verb(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    for name in ("log.key", "log.note"):
        (path / "keys" / name).unlink()
    with opened(path) as space:
        with space.ledger.engine.begin() as db:
            db.execute(sa.delete(tables.meta).where(tables.meta.c.key == "log key"))
        assert ledger_check(space)[0]
        for verb in (lambda: auditing.key(space), lambda: auditing.checkpoint(space)):
            with pytest.raises(SettingError, match="certificate issue"):
                verb()
        auditing.issue(space)
        assert auditing.checkpoint(space).size == space.ledger.height()


# --- put back -----------------------------------------------------------------------------------------------


def test_a_backup_of_the_same_epoch_is_told_and_its_log_goes_on_under_another_name(pristine: Path, room: Path) -> None:
    with make(room / "w") as space:
        shutil.copy(space.path / "ledger.db", room / "old")
        space.train()
        kept = auditing.checkpoint(space)
    shutil.copy(room / "old", room / "w" / "ledger.db")
    with reopen(room / "w") as space:
        report = space.verify()
        assert not report.passed
        assert "put back from a backup" in report.checks[0].detail
        assert "what was trained since is trained again" in report.checks[0].detail
        notices = space.train().notices
        assert f"{kept.size - 3} events that were signed are not in it" in notices[0]
        now = auditing.checkpoint(space)
        assert now.origin.startswith(kept.origin + "/")
        (room / "kept").write_text(kept.checkpoint)
        with pytest.raises(VerificationFailed, match="that checkpoint is of"):
            auditing.verify_log(space, room / "kept", auditing.read_key(kept.key))
        assert space.train().notices == ()
        assert [c.what for c in space.verify().checks][-1] == "restores"


def test_a_restore_that_died_before_it_was_signed_is_not_done_twice_but_a_second_backup_is_told(room: Path) -> None:
    with make(room / "w") as space:
        shutil.copy(space.path / "ledger.db", room / "old")
        space.train()
    shutil.copy(room / "old", room / "w" / "ledger.db")

    def probe(operation: str, target: str) -> None:
        if operation == "write" and target.endswith("log.note"):
            raise Died

    with pytest.raises(Died), opened(room / "w", disk=Disk(probe)) as space:
        space.train()
    with opened(room / "w") as space:
        assert log.standing(space).kind == "branched"
        assert log.check(space).passed
        assert space.train().notices == ()
    shutil.copy(room / "old", room / "w" / "ledger.db")
    with opened(room / "w") as space:
        assert log.standing(space).kind == "put back"
        assert space.train().notices
        assert len([e for e in space.ledger.events() if e.kind == "restored"]) == 1


def test_a_backup_of_before_the_key_is_read_by_the_key_itself(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space, space.ledger.engine.begin() as db:
        db.execute(sa.delete(tables.meta).where(tables.meta.c.key == "log key"))
        db.execute(sa.delete(tables.events).where(tables.events.c.seq > 1))
        db.execute(sa.delete(tables.tree).where(tables.tree.c.level + tables.tree.c.index > 1))
    with opened(path) as space:
        assert log.standing(space).kind == "put back"
        assert space.train().notices
        assert log.public_keys(space)


def test_an_old_backup_is_told_by_its_keys_where_nothing_was_ever_signed(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    shutil.copy(path / "ledger.db", room / "old")
    with opened(path) as space:
        space.forget([client(7)])
    shutil.copy(room / "old", path / "ledger.db")
    (path / "keys" / "log.note").unlink()
    with opened(path) as space:
        assert settle.undone(space)[0] == "the ledger was put back from a backup"
        assert client(7) in " ".join(space.train().notices)
        assert space.verify().passed
