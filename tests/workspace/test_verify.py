"""`verify` finds what is not as it was recorded, and says nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from small import EVERY_KEEPING, client, copied, make, opened, small_settings, small_task, trained
from worlds import contents

from fedforget.engines.local import LocalCohort
from fedforget.errors import VerificationFailed
from fedforget.examples import Examples
from fedforget.storage import tables
from fedforget.workspace import Workspace
from fedforget.workspace.reports import Check, VerifyReport


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine")


def verdicts(report: VerifyReport) -> dict[str, bool]:
    return {check.what: check.passed for check in report.checks}


def test_a_sound_workspace_passes_every_check_and_is_not_changed_by_them(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    before = contents(path)
    with opened(path) as space:
        report = space.verify(replay=4, never_joined=True)
        assert list(verdicts(report)) == [
            "ledger",
            "slices",
            "records",
            "lineage",
            "forgotten",
            "strays",
            "replay",
            "never joined",
        ]
        assert report.passed
        assert report.findings == ()
        assert "4 rounds trained again" in report.checks[-2].detail
        assert "6 models bit-identical" in report.checks[-1].detail
        report.raise_if_failed()
    assert contents(path) == before


def test_a_workspace_nobody_trained_passes_too(room: Path) -> None:
    with make(room / "w") as space:
        assert space.verify(replay=3, never_joined=True).passed


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_more_rounds_than_there_are_can_be_asked_for(room: Path, layout: str, keep: str) -> None:
    with opened(trained(room / "w", layout, keep)) as space:  # type: ignore[arg-type]
        assert space.verify(replay=99).passed


def test_progress_names_what_is_being_checked(pristine: Path) -> None:
    told: list[str] = []
    with opened(pristine) as space:
        space.verify(replay=2, never_joined=True, progress=lambda what, done, total: told.append(what))
    assert list(dict.fromkeys(told)) == ["slices", "records", "replaying", "never joined"]


def test_a_few_bad_slices_are_named_and_survived_too_many_are_a_failure(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        bundle = next(b for b in space.state().history if len(b.holders) == 3)
        first, second, _ = (space.store.path(key) for key in bundle.keys)  # type: ignore[attr-defined]
        first.unlink()
        report = space.verify()
        assert report.passed
        assert report.findings == (f"{bundle.keys[0]} is missing",)
        second.write_bytes(b"\0" + second.read_bytes()[1:])
        report = space.verify()
        assert verdicts(report)["slices"] is False
        assert verdicts(report)["records"] is False
        assert f"{bundle.keys[1]} is altered" in report.findings
        with pytest.raises(VerificationFailed, match="slices"):
            report.raise_if_failed()


def test_a_slice_nobody_knows_is_found(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        key = next(iter(space.store.keys()))._replace(generation=9)
        space.store.put({key: b"left over"})
        report = space.verify()
        assert verdicts(report)["strays"] is False
        assert str(key) in report.checks[5].detail


def test_an_old_key_left_behind_is_found(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        old = space.keys.path(0).read_bytes()
        space.forget([client(0)])
        space.keys.path(0).write_bytes(old)
        report = space.verify()
        assert verdicts(report)["forgotten"] is False
        assert "epoch 0" in report.checks[4].detail
        space.train()
        assert space.verify().passed


def _rewrite(space: Workspace, table: sa.Table, column: str, change: object) -> None:
    """Behind the workspace's back, in every row."""
    with space.ledger.engine.begin() as db:
        for row in db.execute(sa.select(table)).mappings().all():
            db.execute(sa.update(table).where(table.c.id == row["id"]).values({column: change(row[column])}))  # type: ignore[operator]


def test_a_forgotten_client_in_a_roster_or_among_holders_is_found(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.forget([client(0)])
        _rewrite(space, tables.rounds, "body", lambda body: {**body, "roster": [client(0), *body["roster"][1:]]})
        _rewrite(space, tables.bundles, "holders", lambda holders: [client(0), *holders[1:]])
        report = space.verify()
        assert verdicts(report)["forgotten"] is False
        assert "the roster of stage 0" in report.checks[4].detail


@pytest.mark.parametrize("field", ["start", "model"])
def test_a_round_that_does_not_follow_from_the_one_before_is_found(pristine: Path, room: Path, field: str) -> None:
    for at, round in enumerate((0, 1)):
        with opened(copied(pristine, room / str(at))) as space:
            with space.ledger.engine.begin() as db:
                r = tables.rounds
                where = (r.c.shard == 0, r.c.round == round)
                body = dict(db.scalar(sa.select(r.c.body).where(*where)))
                db.execute(sa.update(r).where(*where).values(body={**body, field: "0" * 64}))
            report = space.verify()
            assert verdicts(report)["lineage"] is False
            assert "shard 0" in report.checks[3].detail


def test_a_round_missing_from_the_middle_is_found(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        with space.ledger.engine.begin() as db:
            db.execute(sa.delete(tables.rounds).where(tables.rounds.c.round == 1))
        assert not space.verify().passed


def test_a_record_in_no_slice_is_found(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        with space.ledger.engine.begin() as db:
            db.execute(sa.delete(tables.bundles).where(tables.bundles.c.head.is_(False), tables.bundles.c.round == 2))
        report = space.verify()
        assert verdicts(report)["records"] is False
        assert "is in no slice" in report.checks[2].detail


def test_an_event_altered_later_is_found(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        with space.ledger.engine.begin() as db:
            db.execute(sa.update(tables.events).where(tables.events.c.seq == 2).values(body="{}"))
        report = space.verify()
        assert verdicts(report)["ledger"] is False
        assert "event 2 was altered" in report.checks[0].detail


def _with_other_data(path: Path) -> Workspace:
    """The same workspace, where one client's examples have changed since."""
    task = small_task()
    mine = task.examples[client(1)]
    changed = {**task.examples, client(1): Examples(mine.x + 1, mine.y)}
    return Workspace.open(path, task=replace(task, examples=changed))


def test_replay_and_never_joined_see_that_the_data_are_not_those_trained_on(pristine: Path) -> None:
    with _with_other_data(pristine) as space:
        report = space.verify(replay=6, never_joined=True)
        assert verdicts(report) == {
            **dict.fromkeys(("ledger", "slices", "records", "lineage", "forgotten", "strays"), True),
            "replay": False,
            "never joined": False,
        }
        assert "trained again ends in" in report.checks[-2].detail
        assert "models differ, first at stage 0" in report.checks[-1].detail


def test_never_joined_is_claimed_of_no_shard_that_was_calibrated(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        (reach,) = space.forget([client(0)], "calibrated").touches
        check = space.verify(never_joined=True).checks[-1]
        assert check.passed
        assert f"not claimed where shard {reach.shard} is A" in check.detail
        assert check.detail.startswith("3 models")


def test_rounds_with_somebody_missing_are_not_replayed(room: Path) -> None:
    task = small_task()
    gone = {**task.examples}
    del gone[client(3)]
    lossy = Workspace.init(
        room / "w",
        replace(small_settings(), participants=0),
        task=task,
    )
    lossy = replace(lossy, make_cohort=lambda t, s, w: LocalCohort(t.learner, gone))
    with lossy:
        lossy.train()
        checks = lossy.verify(replay=9).checks
        assert checks[-1] == Check("replay", True, "3 rounds trained again, bit for bit the same")


def test_the_failure_says_every_check_that_failed() -> None:
    report = VerifyReport((Check("a", True, "fine"), Check("b", False, "bad"), Check("c", False, "worse")), ())
    with pytest.raises(VerificationFailed) as caught:
        report.raise_if_failed()
    assert caught.value.findings == ("b: bad", "c: worse")
