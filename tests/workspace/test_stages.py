"""Stages: clients join and leave, models are handed over, and forgetting reaches back through all of it."""

from pathlib import Path
from typing import Any, Literal

import pytest
from small import EVERY_KEEPING, METHODS, assert_in_order, client, digests, every_digest, make, opened, trained
from worlds import refused, shards_of, world_without

from fedforget.errors import AlreadyForgotten, NotTrained, SettingError, UnknownClient
from fedforget.forgetting import Calibration

HANDOVERS: tuple[Literal["lineage", "fresh", "merged"], ...] = ("lineage", "fresh", "merged")
SIZE: dict[str, Any] = {"clients": 8, "seats": 11, "rounds": 2}


def two_stages(path: Path, handover: str = "lineage", **changes: Any) -> Path:
    """Trained; then two join and one leaves, and trained on."""
    with opened(trained(path, **{**SIZE, **changes}), seats=11) as space:
        space.open_stage(3, handover, join=2, leave=[client(0)])
        space.train()
    return path


@pytest.mark.parametrize("handover", HANDOVERS)
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_over_stages_the_workspace_still_adds_nothing_but_memory(
    room: Path, layout: Any, keep: Any, handover: str
) -> None:
    with opened(two_stages(room / "w", handover, layout=layout, keep=keep), seats=11) as space:
        assert every_digest(space) == world_without(space)
        status = space.status(members=True)
        assert (status.stage, status.handover) == (1, handover)
        assert [s.of for s in status.shards] == [3, 3]
        assert status.clients == 9
        assert_in_order(space)


@pytest.mark.parametrize("handover", HANDOVERS)
@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_exact_forgetting_reaches_every_stage_the_leaver_touched(
    room: Path, layout: Any, keep: Any, handover: str
) -> None:
    with opened(two_stages(room / "w", handover, layout=layout, keep=keep), seats=11) as space:
        leaver = shards_of(space)[0][1]
        world = world_without(space, leaver)
        report = space.forget([leaver])
        assert report.guarantee.grade == "X1"
        assert every_digest(space) == world
        touched = {(r.stage, r.shard) for r in report.touches}
        assert touched >= {(0, 0), (1, 0)}
        assert ((1, 1) in touched) == (handover == "merged")
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


@pytest.mark.parametrize("handover", HANDOVERS)
@pytest.mark.parametrize("method", METHODS)
def test_whoever_joined_late_or_left_early_is_forgotten_like_anybody(room: Path, method: str, handover: str) -> None:
    with opened(two_stages(room / "w", handover), seats=11) as space:
        for leaver in (client(8), client(0)):
            world = world_without(space, leaver)
            space.forget([leaver], method, Calibration(length=0.2))
            if method == "exact":
                assert every_digest(space) == world
            assert_in_order(space)
        assert space.status().forgotten == (client(0), client(8))
        assert space.verify(never_joined=True).passed


def test_a_merged_hand_over_warns_and_says_what_it_taints(room: Path) -> None:
    with opened(trained(room / "w", **SIZE), seats=11) as space:
        assert space.open_stage(2).warnings == ()
        space.train()
        (warning,) = space.open_stage(2, "merged").warnings
        assert "every shard" in warning
        space.train()
        said = space.plan([shards_of(space)[0][0]])
        assert {(r.stage, r.shard) for r in said.touches} >= {(2, 0), (2, 1)}
        assert "merged hand-over" in said.guarantee.reason
        assert "shard 1" in said.guarantee.reason


def test_the_report_says_who_joined_where_and_who_left(room: Path) -> None:
    with opened(trained(room / "w", **SIZE), seats=11) as space:
        report = space.open_stage(5, join=[client(9)], leave=[client(2), client(2)])
        assert (report.stage, report.rounds, report.handover) == (1, 5, "lineage")
        assert [c for c, _ in report.joined] == [client(9)]
        assert report.joined[0][1] == space.state().plan.shard_of(client(9))
        assert report.left == (client(2),)
        assert space.status().clients == 8


def test_a_stage_has_as_many_rounds_as_the_first_unless_told(room: Path) -> None:
    with opened(trained(room / "w", **SIZE), seats=11) as space:
        assert space.open_stage().rounds == 2
        assert space.train().stage == 1


def test_those_who_left_are_drawn_no_more_but_stay_in_what_they_trained(room: Path) -> None:
    with opened(two_stages(room / "w"), seats=11) as space:
        rosters: dict[int, set[str]] = {0: set(), 1: set()}
        for place, row in space.state().rows.items():
            rosters[place.stage] |= set(row.roster)
        assert client(0) not in rosters[1]
        assert {client(8), client(9)} & rosters[1]
        assert not {client(8), client(9)} & rosters[0]
        assert client(0) in dict(space.status(members=True).members)


def test_seats_are_even_over_the_shards_and_nobody_moves(room: Path) -> None:
    path = trained(room / "w", **SIZE)
    with opened(path, seats=11) as space:
        before = {c: s for s, members in shards_of(space).items() for c in members}
        space.open_stage(join=3)
        after = {c: s for s, members in shards_of(space).items() for c in members}
        assert before.items() <= after.items()
        sizes = [s.clients for s in space.status().shards]
        assert max(sizes) - min(sizes) <= 1


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_stage_opens_only_when_the_one_before_is_finished(room: Path) -> None:
    path = room / "w"
    with make(path) as space:
        with refused(path, NotTrained, "finished stage 0", f"fedforget train {path}"):
            space.open_stage()
        space.train()
        space.open_stage()
        with refused(path, NotTrained, "finished stage 1"):
            space.open_stage()


def test_stages_that_cannot_be_are_refused(room: Path) -> None:
    path = trained(room / "w", **SIZE)
    with opened(path, seats=11) as space:
        space.forget([client(7)])
        with refused(path, SettingError, "join", "3"):
            space.open_stage(join=4)
        with refused(path, SettingError, "join"):
            space.open_stage(join=-1)
        with refused(path, SettingError, "join", "../client"):
            space.open_stage(join=["../client"])
        with refused(path, SettingError, "join", client(3)):
            space.open_stage(join=[client(3)])
        with refused(path, SettingError, "handover", "telepathy"):
            space.open_stage(handover="telepathy")
        with refused(path, SettingError, "rounds", "-1"):
            space.open_stage(-1)
        with refused(path, UnknownClient, "client-099"):
            space.open_stage(leave=["client-099"])
        with refused(path, UnknownClient, client(9)):
            space.open_stage(leave=[client(9)])
        with refused(path, AlreadyForgotten, client(7)):
            space.open_stage(leave=[client(7)])


def test_when_no_seat_is_free_nobody_joins(room: Path) -> None:
    with opened(trained(room / "w")) as space:
        with refused(room / "w", SettingError, "join", "none is left"):
            space.open_stage(join=["client-008"])
        with refused(room / "w", SettingError, "join", "--seats"):
            space.open_stage(join=1)


def test_the_seat_of_somebody_forgotten_is_not_given_again(room: Path) -> None:
    with opened(trained(room / "w", **SIZE), seats=11) as space:
        space.forget([client(7)])
        with pytest.raises(SettingError):
            space.open_stage(join=[client(7)])
        assert client(7) not in {c for c, _ in space.open_stage(join=3).joined}


def test_a_stage_that_everybody_leaves_keeps_serving_what_was_trained(room: Path) -> None:
    with opened(trained(room / "w", **SIZE), seats=11) as space:
        before = digests(space)
        space.open_stage(leave=[client(i) for i in range(8)])
        assert space.train().rounds == 0
        assert digests(space) == before
        assert_in_order(space)
        space.forget([client(0)])
        assert space.verify(never_joined=True).passed
        assert_in_order(space)
