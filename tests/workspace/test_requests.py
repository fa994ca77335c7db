"""Requests one after another and several at once, spread evenly and all in one shard."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from small import METHODS, assert_in_order, client, copied, every_digest, opened, trained
from worlds import shards_of, world_without

from fedforget.federation import Place
from fedforget.forgetting import Calibration
from fedforget.workspace import Workspace

SIZE: dict[str, Any] = {"clients": 12, "shards": 3, "rounds": 4}


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine", **SIZE)


def even(space: Workspace) -> tuple[str, ...]:
    """One of every shard."""
    return tuple(members[1] for members in shards_of(space).values())


def adapt(space: Workspace) -> tuple[str, ...]:
    """All of one shard."""
    return shards_of(space)[2][:3]


@pytest.mark.parametrize("spread", [even, adapt])
@pytest.mark.parametrize("method", METHODS)
def test_at_once_or_one_by_one_nothing_of_any_of_them_is_left(
    pristine: Path, room: Path, method: str, spread: Any
) -> None:
    calibration = Calibration(length=0.2)
    for at_once in (True, False):
        with opened(copied(pristine, room / str(at_once)), seats=12) as space:
            leavers = spread(space)
            world = world_without(space, *leavers)
            for batch in [leavers] if at_once else [(leaver,) for leaver in leavers]:
                space.forget(batch, method, calibration)
                assert_in_order(space)
            if method == "exact":
                assert every_digest(space) == world
            assert space.status().forgotten == tuple(sorted(leavers))
            assert not set(leavers) & {c for r in space.state().rows.values() for c in r.roster}
            assert not set(leavers) & {label.client for label in space.state().records}


def test_at_once_a_shard_is_made_again_once_one_by_one_each_time(pristine: Path, room: Path) -> None:
    cost: dict[tuple[str, bool], tuple[int, int]] = {}
    for spread in (even, adapt):
        for at_once in (True, False):
            with opened(copied(pristine, room / f"{spread.__name__}-{at_once}"), seats=12) as space:
                leavers = spread(space)
                batches = [leavers] if at_once else [(leaver,) for leaver in leavers]
                reports = [space.forget(batch) for batch in batches]
                rounds = sum(r.rounds for r in reports)
                cost[spread.__name__, at_once] = rounds, sum(r.client_epochs for r in reports)
                if at_once:
                    assert len({(r.stage, r.shard) for r in reports[0].touches}) == len(reports[0].touches)
                    assert rounds <= 4 * len(reports[0].touches)
    assert cost["even", True] == cost["even", False]
    assert cost["adapt", True] < cost["adapt", False]
    assert cost["adapt", True][0] <= 4 < cost["even", True][0]


def test_the_order_of_requests_makes_no_difference_to_exact_forgetting(pristine: Path, room: Path) -> None:
    leavers = (client(1), client(4), client(6))
    ends = []
    for at, order in enumerate(permutations(leavers)):
        with opened(copied(pristine, room / str(at)), seats=12) as space:
            for leaver in order:
                space.forget([leaver])
            ends.append(every_digest(space))
    assert all(end == ends[0] for end in ends)


def test_requests_are_numbered_and_stay_on_record(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        numbers = [space.forget([client(i)]).request for i in range(3)]
        assert numbers == [1, 2, 3]
        assert [(r.id, r.state) for r in space.ledger.requests()] == [(n, "executed") for n in numbers]
        assert space.status().requests == 3
        assert space.status().epoch == 3


def test_methods_may_be_mixed_and_exact_takes_with_it_what_borrowed_from_its_shard(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        first = [space.state().rows[Place(0, shard, 0)].roster[0] for shard in range(3)]
        standings = []
        for leaver, method in zip(first, ("calibrated", "clean", "exact"), strict=True):
            space.forget([leaver], method)
            assert_in_order(space)
            assert space.verify(never_joined=True).passed
            standings.append("".join(f"{s.standing} " for s in space.status().shards))
        assert standings == ["A X1 X1 ", "A X3 X1 ", "A X1 X1 "]  # shard 1's lengths came from shard 2

        space.forget([shards_of(space)[0][0]], "exact")
        assert {s.standing for s in space.status().shards} == {"X1"}
        assert every_digest(space) == world_without(space)
