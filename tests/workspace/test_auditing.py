"""What an auditor asks, and the answers to questions that cannot be answered."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small import client, copied, opened, trained

from fedforget.errors import SettingError, VerificationFailed
from fedforget.evidence import merkle
from fedforget.evidence.entry import opened_hash
from fedforget.evidence.note import read_note
from fedforget.workspace import Workspace, auditing

LEAVER = client(7)


@pytest.fixture(scope="module")
def forgotten(shared_room: Path) -> Path:
    path = trained(shared_room / "forgotten")
    with opened(path) as space:
        space.forget([LEAVER])
    return path


def file_of(space: Workspace) -> Path:
    return Path(auditing.certificates(space).certificates[0].file)


def test_a_key_is_text_or_a_file_with_it(forgotten: Path, room: Path) -> None:
    with opened(forgotten) as space:
        text = auditing.key(space).key
    (room / "key").write_text(text + "\n")
    assert auditing.read_key(text) == auditing.read_key(str(room / "key"))


def test_events_are_shown_all_or_the_newest(forgotten: Path) -> None:
    with opened(forgotten) as space:
        report = auditing.events(space)
        assert len(report.events) == report.of == space.ledger.height()
        assert auditing.events(space, 2).events == report.events[-2:]
        with pytest.raises(SettingError, match="last"):
            auditing.events(space, -1)


def test_every_event_can_be_proved_by_who_has_only_the_key(forgotten: Path) -> None:
    with opened(forgotten) as space:
        key = auditing.read_key(auditing.key(space).key)
        for seq in range(space.ledger.height()):
            report = auditing.prove(space, seq)
            point = read_note(report.checkpoint, key)
            proof = [bytes.fromhex(part) for part in report.proof]
            assert merkle.included(opened_hash(report.event), seq, point.size, proof, point.root)


def test_a_checkpoint_kept_elsewhere_is_what_the_log_goes_on_from(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    with opened(path) as space:
        kept = auditing.checkpoint(space)
        (room / "kept").write_text(kept.checkpoint)
        space.open_stage()
        key = auditing.read_key(kept.key)
        now = auditing.verify_log(space, room / "kept", key)
        assert (now.since, now.size) == (kept.size, kept.size + 1)
        (room / "later.json").write_text(json.dumps({"checkpoint": now.checkpoint, "proof": now.proof}))
        assert "goes on from it" in auditing.verify(file_of(space), key, later=room / "later.json").verified[-1]
        for wrong in ("{}", "no json", '{"checkpoint": "x", "proof": ["zz"]}'):
            (room / "wrong.json").write_text(wrong)
            with pytest.raises(VerificationFailed):
                auditing.verify(file_of(space), key, later=room / "wrong.json")
        with pytest.raises(SettingError, match="since"):
            auditing.checkpoint(space, 99)
        longer = kept.checkpoint
        with space.ledger.engine.begin() as db:
            db.exec_driver_sql("UPDATE events SET kind = 'x' WHERE seq = 3")
        with pytest.raises(VerificationFailed, match="event 3"):
            auditing.verify_log(space, room / "kept", key)
        assert longer


def test_a_log_that_is_shorter_than_what_was_kept_is_told(forgotten: Path, room: Path) -> None:
    with opened(copied(forgotten, room / "one")) as space:
        space.open_stage()
        kept = auditing.checkpoint(space)
        (room / "kept").write_text(kept.checkpoint)
    with opened(forgotten) as space, pytest.raises(VerificationFailed, match="does not begin with"):
        auditing.verify_log(space, room / "kept", auditing.read_key(kept.key))


def test_redacting_by_number_and_by_name(forgotten: Path, room: Path) -> None:
    with opened(copied(forgotten, room / "w")) as space:
        request = space.ledger.open_request({"leave": [client(3)]})
        space.ledger.refuse(request, f"no slices of {client(3)}, {client(4)}")
        space.ledger.refuse(request, f"no slices of {client(3)}0")
        key = auditing.read_key(auditing.key(space).key)
        report = auditing.redact(space, [1], client(3), "article 17")
        assert len(report.events) == 2
        assert all(event["body"] is None for event in report.events)
        assert auditing.verify(file_of(space), key).verified
        for seqs, who, why in (([], "", "why"), ([], "nobody", "why"), ([2], "", " ")):
            with pytest.raises(SettingError):
                auditing.redact(space, seqs, who, why)


def test_names_are_found_in_lists_and_objects(forgotten: Path, room: Path) -> None:
    with opened(copied(forgotten, room / "w")) as space:
        gone = next(h for b in space.state().history for h in b.holders if h not in space.state().forgotten)
        before = len(auditing.log.mentioning(space, gone))
        space.repair(gone=[gone])
        assert len(auditing.log.mentioning(space, gone)) > before


def test_a_client_finds_itself_with_its_salt_and_nobody_else_does(forgotten: Path) -> None:
    with opened(forgotten) as space:
        key, file = auditing.read_key(auditing.key(space).key), file_of(space)
        mine = auditing.salt(space, 1, LEAVER)
        assert f"it is about {LEAVER} (leave)" in auditing.verify(file, key, client=LEAVER, salted=mine.salt).verified
        with pytest.raises(VerificationFailed, match="not about"):
            auditing.verify(file, key, client=client(3), salted=mine.salt)
        with pytest.raises(SettingError, match="salt"):
            auditing.verify(file, key, client=LEAVER, salted="zz")
        for request, who in ((1, client(3)), (2, LEAVER)):
            with pytest.raises(SettingError, match="request"):
                auditing.salt(space, request, who)


def test_what_is_shown_is_said_to_be_believed_by_nobody_yet(forgotten: Path, room: Path) -> None:
    with opened(forgotten) as space:
        report = auditing.show(file_of(space))
        assert report.verified == ()
        assert report.keyid == auditing.read_key(auditing.key(space).key).id
    from fedforget.canonical import canonical
    from fedforget.evidence import dsse
    from fedforget.signing import SecretKey

    (room / "odd").write_bytes(dsse.wrap(canonical({"a": 1}), SecretKey(bytes(32))))
    with pytest.raises(VerificationFailed, match="schema"):
        auditing.show(room / "odd")


def test_replaying_compares_the_models_with_those_served(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    with opened(path) as space:
        key, file = auditing.read_key(auditing.key(space).key), file_of(space)
        checked = auditing.verify(file, key, replay=(2, space)).verified
        assert checked[-2:] == ("2 rounds trained again, bit for bit the same", "the models are those served")
        space.forget([client(0)])
        assert "moved on since: shard-" in auditing.verify(file, key, replay=(1, space)).verified[-1]
        next(iter(space.store.path(k) for k in space.store.keys("server.head"))).unlink()  # type: ignore[attr-defined]
        with pytest.raises(VerificationFailed):
            auditing.verify(file, key, replay=(1, space))


def test_the_verifier_laid_beside_them_runs_by_itself(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    with opened(path) as space:
        auditing.issue(space, verifier=True)
        command = [sys.executable, "-I", str(path / "certificates" / auditing.VERIFIER), str(file_of(space))]
        done = subprocess.run([*command, "--key", auditing.key(space).key], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("verified: request 1 is executed, class X1")
