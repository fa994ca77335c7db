"""Thirty days of work, a backup every night, and every one of them put back: nobody forgotten comes back."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from small import client, copied, every_digest, make, small_task
from worlds import world_without

from fedforget.workspace import Workspace, auditing

DAY = datetime(2026, 3, 1, 3, tzinfo=UTC)
# Day of the month → what is done in the daytime.
FORGOTTEN = {4: client(7), 9: client(0), 15: client(4), 23: client(2)}
STAGES = (12, 20)


def on(path: Path, day: int) -> Workspace:
    return Workspace.open(path, task=small_task(), clock=lambda: DAY + timedelta(days=day))


@pytest.fixture(scope="module")
def month(shared_room: Path) -> tuple[Path, list[Path]]:
    """The workspace at the end, and its ledger of each night."""
    path, nights = shared_room / "w", []
    make(path).close()
    for day in range(1, 31):
        with on(path, day) as space:
            if day in FORGOTTEN:
                space.forget([FORGOTTEN[day]])
            elif day in STAGES:
                space.open_stage(2)
            else:
                space.train()
        nights.append(shutil.copy(path / "ledger.db", shared_room / f"night-{day:02d}.db"))
    return path, [Path(night) for night in nights]


def test_thirty_daily_backups_put_back_each_into_the_newest_workspace(month: tuple[Path, list[Path]], room: Path):
    path, nights = month
    assert len(nights) == 30
    told = 0
    for day, night in enumerate(nights, 1):
        again = copied(path, room / "again")
        shutil.copy(night, again / "ledger.db")
        gone_since = {who for when, who in FORGOTTEN.items() if when > day}
        with on(again, 31) as space:
            undone = not space.verify().passed
            told += undone
            notices = " ".join(space.train().notices)
            assert all(who in notices for who in gone_since), (day, notices)
            assert bool(notices) == undone
            if gone_since:
                assert "forgotten again by the tombstones" in notices
                assert [c for c in space.verify().checks if c.what == "restores"]
            check_nobody_came_back(space)
            if day in (1, 10, 22):
                world = world_without(space)
                assert all(world[place] == bits for place, bits in every_digest(space).items())
        shutil.rmtree(again)
    assert told >= 22  # every backup older than the last change


def test_thirty_daily_backups_put_back_one_after_the_other(month: tuple[Path, list[Path]], room: Path):
    """Into the same workspace, without a look in between: the branches of the log contradict each other."""
    path, nights = month
    again = copied(path, room / "again")
    origins = set()
    for night in reversed(nights):
        shutil.copy(night, again / "ledger.db")
        with on(again, 31) as space:
            space.train()
            check_nobody_came_back(space)
            origins.add(auditing.checkpoint(space).origin)
    assert len(origins) > 20


def check_nobody_came_back(space: Workspace) -> None:
    everybody = set(FORGOTTEN.values())
    state = space.state()
    assert set(state.forgotten) == everybody
    assert not everybody & set(state.plan.clients)
    assert not any(everybody & set(row.roster) for row in state.rows.values())
    assert not any(list(space.store.keys(who)) for who in everybody)
    assert space.verify().passed, space.verify()
