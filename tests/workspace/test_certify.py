"""A forget ends in a certificate, once, whatever interrupts it; final when all have deleted and backups are over."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from small import Died, client, copied, dies_before, digests, opened, operations, small_settings, small_task, trained

from fedforget.engines.local import LocalCohort
from fedforget.evidence import certificate
from fedforget.storage import tables
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace, auditing, certify, log

LEAVER = client(7)


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine")


@pytest.fixture(scope="module")
def forgotten(shared_room: Path) -> Path:
    path = trained(shared_room / "forgotten")
    with opened(path) as space:
        space.forget([LEAVER])
    return path


def files(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(path.glob("certificates/request-*.json"))}


def read(space: Workspace, file: str | Path) -> certificate.Certificate:
    return certificate.read(Path(file).read_bytes(), log.public_keys(space)[-1])


def at(path: Path, days: float) -> Workspace:
    """The workspace so many days later."""
    return Workspace.open(path, task=small_task(), clock=lambda: datetime.now(UTC) + timedelta(days=days))


def test_it_tells_what_was_done_and_names_nobody(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        report = space.forget([LEAVER])
        found = read(space, report.certificate)
        told = found.predicate
        assert told["state"] == "executed"
        assert told["guarantee"]["class"] == report.guarantee.grade == "X1"
        assert told["destroyed"]["record_keys"] == report.keys_destroyed > 0
        assert told["destroyed"]["slices_pending"] == 0
        assert [t["shard"] for t in told["touched"]] == [r.shard for r in report.touches]
        assert told["replayed"]["rounds"] == report.rounds
        assert found.statement["subject"] == certificate.subjects(digests(space))
        assert told["before"] == certificate.subjects(report.before)
        assert not [c for c, _ in space.ledger.members() if c.client in Path(report.certificate).read_text()]
        assert space.verify().checks[6].what == "certificates"


def test_nothing_certified_is_nothing_to_check(pristine: Path) -> None:
    with opened(pristine) as space:
        assert certify.check(space) is None
        assert certify.certify(space) == ()


def test_conditions_are_told_without_names(room: Path) -> None:
    task = small_task()
    gone = {name: mine for name, mine in task.examples.items() if name != client(3)}
    path = room / "w"
    settings = replace(small_settings(), participants=0)
    lossy = replace(Workspace.init(path, settings, task=task), make_cohort=lambda t, s, w: LocalCohort(t.learner, gone))
    with lossy:
        lossy.train()
        plan = lossy.state().plan
        mates = [c for c in plan.clients if plan.shard_of(c) == plan.shard_of(client(3)) and c != client(3)]
        report = lossy.forget(mates[:1])
        told = read(lossy, report.certificate).predicate["guarantee"]
        assert told["class"] == report.guarantee.grade == "X2"
        assert report.guarantee.conditions[0].startswith(client(3))
        assert told["conditions"]
        assert all(text.startswith("a client ") for text in told["conditions"])


def test_clean_with_a_constant_says_so_exactly(pristine: Path, room: Path) -> None:
    from fedforget.forgetting import Calibration

    with opened(copied(pristine, room / "w")) as space:
        report = space.forget([LEAVER], "clean", Calibration(length=0.25))
        told = read(space, report.certificate).predicate
        assert (told["method"]["name"], told["method"]["length"]) == ("clean", "0.25")
        assert told["guarantee"]["class"] == "X3"
        assert "exact would give X1" in told["guarantee"]["not_better"]


def test_a_file_deleted_comes_back_bit_for_bit_and_one_altered_is_found(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    (before,) = files(path).items()
    file = path / "certificates" / before[0]
    file.unlink()
    with opened(path) as space:
        assert "1 files missing" in certify.check(space).detail  # type: ignore[union-attr]
        assert auditing.certificates(space).certificates[0].there is False
        assert auditing.issue(space).certificates[0].there
    assert files(path) == dict([before])
    file.write_bytes(file.read_bytes()[:-2] + b"\n")
    with opened(path) as space:
        check = certify.check(space)
        assert check is not None
        assert not check.passed
        assert str(file) in check.detail
        assert not space.verify().passed


def steps_after_switch(pristine: Path, room: Path) -> list[int]:
    """All but those at which nothing but an fsync or a slice is waiting."""
    straight = copied(pristine, room / "straight")

    def work(disk: Disk) -> None:
        with opened(straight, disk=disk) as space:
            space.forget([LEAVER])

    steps = operations(work)
    shutil.rmtree(straight)
    first = steps.index(("commit", "switch")) + 1
    told = [at for at, (operation, target) in enumerate(steps) if operation in ("commit", "erase") or "cert" in target]
    return [at for at in [*told, len(steps) - 1] if at >= first]


def test_killed_anywhere_after_the_switch_the_next_verb_writes_it(pristine: Path, room: Path) -> None:
    for step in steps_after_switch(pristine, room):
        path = copied(pristine, room / "w")
        with pytest.raises(Died), opened(path, disk=dies_before(step)) as space:
            space.forget([LEAVER])
        before = files(path)
        with opened(path) as space:
            space.train()
            (row,) = auditing.certificates(space).certificates
            assert read(space, row.file).statement["subject"] == certificate.subjects(digests(space))
            assert before.items() <= files(path).items()
            assert len([e for e in space.ledger.events() if e.kind == "certified"]) == 1
            assert space.verify().passed
        shutil.rmtree(path)


# --- final --------------------------------------------------------------------------------------------------


def test_final_when_the_backup_window_is_over_and_linked_to_the_first(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    (executed,) = files(path).values()
    with at(path, 29.9) as space:
        assert "backups from before it are kept until" in auditing.issue(space).waiting[0]
        assert len(files(path)) == 1
    with at(path, 30.1) as space:
        report = auditing.issue(space)
        assert report.waiting == ()
        assert [row.state for row in report.certificates] == ["executed", "final"]
        first, final = (read(space, row.file) for row in report.certificates)
        assert final.predicate["state"] == "final"
        assert final.predicate["previous"] == first.digest
        assert final.predicate["destroyed"] == first.predicate["destroyed"]
        assert executed in files(path).values()
        space.train()
        assert len(files(path)) == 2
        assert space.verify().passed


def test_not_final_while_a_holder_that_is_away_still_keeps_slices(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        touched = space.plan([LEAVER]).touches[0]
        bundle = next(b for b in space.state().history if (b.shard, b.round) == (touched.shard, touched.from_round))
        holder = next(h for h in bundle.holders if h != LEAVER)

    def absent(space: Workspace) -> Workspace:
        class Away:
            def __getattr__(self, name: str) -> Callable[..., object]:
                return getattr(space.store, name)  # type: ignore[no-any-return]

            def delete(self, keys: object) -> frozenset[object]:
                return space.store.delete([k for k in keys if k.holder != holder])  # type: ignore[attr-defined, return-value]

        return replace(space, store=Away())  # type: ignore[arg-type]

    with absent(at(path, 0)) as space:
        told = read(space, space.forget([LEAVER]).certificate).predicate["destroyed"]
        assert told["slices_pending"] > 0
    with absent(at(path, 40)) as space:
        assert "wait for holders that are away" in auditing.issue(space).waiting[0]
    with at(path, 40) as space:
        report = auditing.issue(space)
        final = read(space, report.certificates[-1].file).predicate
        assert final["state"] == "final"
        assert final["destroyed"]["slices_pending"] == 0
        assert final["destroyed"]["slices_deleted"] == told["slices_deleted"] + told["slices_pending"]


def test_in_the_cross_layout_slices_over_all_shards_count_too(room: Path) -> None:
    with opened(trained(room / "w", "cross", backup_days=0)) as space:
        report = space.forget([LEAVER])
        assert read(space, report.certificate).predicate["destroyed"]["slices_deleted"] > 0
        assert certify.pending(space, certify.accountable(space)[0]) == 0
        assert [row.state for row in auditing.issue(space).certificates] == ["executed", "final"]


def test_requests_carried_out_by_an_older_version_have_none(forgotten: Path, room: Path) -> None:
    with opened(copied(forgotten, room / "w")) as space:
        with space.ledger.engine.begin() as db:
            db.execute(sa.delete(tables.certificates))
            body = dict(space.ledger.requests()[0].body)
            db.execute(sa.update(tables.requests).values(body={**body, "outcome": {"guarantee": {}}}))
        assert certify.certify(space) == ()


def test_a_ledger_emptied_by_a_restore_certifies_nothing_it_no_longer_has(pristine: Path, room: Path) -> None:
    """The backup was taken between switch and certificate, and a later forget has destroyed its key."""
    path, old = copied(pristine, room / "w"), room / "old"

    def probe(operation: str, target: str) -> None:
        if (operation, target) == ("commit", "certify") and not old.exists():
            shutil.copy(path / "ledger.db", old)

    with opened(path, disk=Disk(probe)) as space:
        space.forget([LEAVER])
        space.forget([client(3)])
    shutil.copy(old, path / "ledger.db")
    with opened(path) as space:
        space.train()
        assert [r.state for r in space.ledger.requests()] == ["executed"]
        assert auditing.certificates(space).certificates == ()
        assert set(space.state().forgotten) == {LEAVER, client(3)}


def test_certificates_of_before_a_new_key_still_hold_under_the_old_one(forgotten: Path, room: Path) -> None:
    path = copied(forgotten, room / "w")
    with opened(path) as space:
        old = auditing.key(space).key
        new = auditing.key(space, new=True).key
        assert old != new
        assert space.verify().passed
        (row,) = auditing.certificates(space).certificates
        assert auditing.verify(Path(row.file), auditing.read_key(old)).verified
        space.forget([client(3)])
        assert auditing.verify(Path(space.path / "certificates" / sorted(files(path))[-1]), auditing.read_key(new))
