"""`plan`: what it says is what `forget` then does, and saying it changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import METHODS, client, copied, make, opened, trained
from worlds import contents, drawn_from, refused, shards_of

from fedforget.errors import AlreadyForgotten, NoReference, SettingError, UnknownClient
from fedforget.forgetting import Calibration
from fedforget.workspace import Workspace

SIZE: dict[str, Any] = {"clients": 12, "shards": 3, "rounds": 5}
Choose = Callable[[Workspace], tuple[str, ...]]


def one(space: Workspace) -> tuple[str, ...]:
    return (shards_of(space)[0][0],)


def two_of_a_shard(space: Workspace) -> tuple[str, ...]:
    return shards_of(space)[1][:2]


def two_of_two_shards(space: Workspace) -> tuple[str, ...]:
    shards = shards_of(space)
    return (shards[0][1], shards[2][0])


def a_whole_shard(space: Workspace) -> tuple[str, ...]:
    return shards_of(space)[1]


@pytest.fixture(scope="module")
def three_shards(shared_room: Path) -> Path:
    return trained(shared_room / "three", **SIZE)


@pytest.fixture(scope="module")
def two_stages(shared_room: Path) -> Path:
    path = trained(shared_room / "two-stages", **SIZE)
    with opened(path, seats=12) as space:
        space.open_stage(2)
        space.train()
    return path


@pytest.mark.parametrize("choose", [one, two_of_a_shard, two_of_two_shards, a_whole_shard])
@pytest.mark.parametrize(
    ("method", "calibration"),
    [
        ("exact", Calibration()),
        ("clean", Calibration()),
        ("clean", Calibration(length=0.3)),
        ("calibrated", Calibration()),
        ("calibrated", Calibration(ratio=1.0, interval=2)),
        ("calibrated", Calibration(compat="released")),
        ("FR", Calibration()),
    ],
    ids=str,
)
@pytest.mark.parametrize("stages", [1, 2])
def test_forgetting_costs_touches_and_promises_what_the_plan_said(
    three_shards: Path,
    two_stages: Path,
    room: Path,
    choose: Choose,
    method: str,
    calibration: Calibration,
    stages: int,
) -> None:
    with opened(copied(two_stages if stages == 2 else three_shards, room / "w"), seats=12) as space:
        leavers = choose(space)
        said = space.plan(leavers, method, calibration)
        done = space.forget(leavers, method, calibration)
        assert said.clients == done.clients == tuple(sorted(leavers))
        assert said.method == done.method == method
        assert said.touches == done.touches
        assert said.rounds == done.rounds
        assert said.client_epochs == done.client_epochs
        assert said.guarantee == done.guarantee
        assert said.ends == done.ended


def test_planning_changes_nothing(three_shards: Path, room: Path) -> None:
    path = copied(three_shards, room / "w")
    before = contents(path)
    with opened(path, seats=12) as space:
        for method in METHODS:
            space.plan([client(0)], method)
    assert contents(path) == before


def test_the_estimated_time_is_what_client_epochs_took_so_far(three_shards: Path) -> None:
    with opened(three_shards, seats=12) as space:
        costs = [row.cost for row in space.state().rows.values()]
        each = sorted(c.seconds / c.client_epochs for c in costs)
        said = space.plan([client(0)])
        assert said.seconds is not None
        assert said.wall_seconds is not None
        assert each[0] / 2 < said.seconds / said.client_epochs < each[-1] * 2  # by examples, too
        assert 0 < said.seconds < said.wall_seconds


def test_before_training_there_is_nothing_to_touch_and_no_time_to_go_by(room: Path) -> None:
    with make(room / "w") as space:
        said = space.plan([client(0)])
        assert said.seconds is None
        assert said.touches == ()
        assert said.guarantee.grade == "X0"


def test_whoever_was_never_drawn_costs_nothing(room: Path) -> None:
    path = trained(room / "w", participants=1, draw="stage")
    never = next(c for c, first in drawn_from(path).items() if first is None)
    with opened(path) as space:
        said = space.plan([never])
        assert (said.touches, said.rounds, said.client_epochs, said.seconds) == ((), 0, 0, 0.0)
        assert said.guarantee.grade == "X0"


def test_a_shard_nobody_would_be_left_in_is_said_to_end(three_shards: Path) -> None:
    with opened(three_shards, seats=12) as space:
        said = space.plan(shards_of(space)[2])
        assert said.ends == (2,)
        assert said.rounds == said.client_epochs == 0
        assert [(r.stage, r.shard) for r in said.touches] == [(0, 2)]


def test_the_same_name_twice_is_one_client(three_shards: Path) -> None:
    with opened(three_shards, seats=12) as space:
        assert space.plan([client(0), client(0)]) == space.plan([client(0)])


def test_calibration_halves_the_epochs_and_every_second_round_halves_them_again(three_shards: Path) -> None:
    with opened(three_shards, seats=12) as space:
        exact, whole, half, fourth = (
            space.plan([client(0)], method, calibration).client_epochs
            for method, calibration in (
                ("exact", Calibration()),
                ("clean", Calibration(ratio=1.0)),
                ("clean", Calibration(ratio=2.0)),
                ("clean", Calibration(ratio=2.0, interval=2)),
            )
        )
        assert exact > whole > half > fourth > 0
        assert whole == 2 * half


def test_unanswerable_questions_are_refused(three_shards: Path, room: Path) -> None:
    path = copied(three_shards, room / "w")
    with opened(path, seats=12) as space:
        space.forget([client(0)])
        with refused(path, UnknownClient, "client-777", "never enrolled"):
            space.plan([client(1), "client-777"])
        with refused(path, UnknownClient, "../../etc"):
            space.plan(["../../etc"])
        with refused(path, AlreadyForgotten, client(0)):
            space.plan([client(0), client(1)])
        with refused(path, SettingError, "client"):
            space.plan([])
        with refused(path, SettingError, "method", "magic"):
            space.plan([client(1)], "magic")


def test_clean_needs_a_shard_to_borrow_from_unless_a_constant_is_given(three_shards: Path) -> None:
    with opened(three_shards, seats=12) as space:
        everywhere = [members[0] for members in shards_of(space).values()]
        with pytest.raises(NoReference, match="--length"):
            space.plan(everywhere, "clean")
        assert space.plan(everywhere, "clean", Calibration(length=0.2)).guarantee.grade == "X3"
