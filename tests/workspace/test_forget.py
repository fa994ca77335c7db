"""Forgetting on disk: what is left, what is not, what refuses, and how an interrupted one goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import EVERY_KEEPING, METHODS, assert_in_order, client, copied, digests, every_digest, make, opened, trained
from worlds import as_far_as, drawn_from, refused, shards_of, world_without

from fedforget.errors import (
    AlreadyForgotten,
    NobodyLeft,
    NoReference,
    SettingError,
    Unfinished,
    UnknownClient,
)
from fedforget.forgetting import Calibration

SIZE: dict[str, Any] = {"clients": 12, "shards": 3, "rounds": 4}


class Interrupted(Exception):
    """Ctrl-C, as it were."""


def interrupt(what: str, done: int, total: int) -> None:
    """Stop when the first durable step is done."""
    if done:
        raise Interrupted


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine", **SIZE)


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_exact_ends_in_the_world_the_leaver_never_joined(room: Path, layout: Any, keep: Any) -> None:
    with opened(trained(room / "w", layout, keep)) as space:
        world = world_without(space, client(2))
        before = digests(space)
        report = space.forget([client(2)])
        assert report.guarantee.grade == "X1"
        assert every_digest(space) == world
        shard = report.touches[0].shard
        assert {s for s in before if before[s] != digests(space)[s]} == {shard}
        assert {int(s): d for s, d in report.before.items()} == before
        assert {int(s): d for s, d in report.after.items()} == digests(space)
        assert space.verify(never_joined=True, replay=6).passed
        assert_in_order(space)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_empties_the_seat_and_turns_to_a_new_key(pristine: Path, room: Path, method: str) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        old = space.keys.path(0).read_bytes()
        report = space.forget([client(2)], method)
        status = space.status(members=True)
        assert status.forgotten == (client(2),)
        assert client(2) not in {c for c, _ in status.members}
        assert status.requests == 1
        assert (status.epoch, space.keys.epochs()) == (1, (1,))
        assert space.keys.path(1).read_bytes() != old
        assert report.keys_destroyed > 0
        assert report.slices_deleted > 0
        assert report.slices_owed == 0
        assert not any(key.holder == client(2) for key in space.store.keys())  # noqa: SIM118
        assert client(2) not in {c for r in space.state().rows.values() for c in r.roster}
        assert_in_order(space)


@pytest.mark.parametrize(("method", "grade"), [("exact", "X1"), ("clean", "X3"), ("calibrated", "A")])
def test_the_class_is_the_methods_and_stays_with_the_shard(pristine: Path, room: Path, method: str, grade: str) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        report = space.forget([client(2)], method)
        assert report.guarantee.grade == grade
        (shard,) = {r.shard for r in report.touches}
        assert {s.shard: s.standing for s in space.status().shards} == {
            s: grade if s == shard else "X1" for s in range(3)
        }
        check = space.verify(never_joined=True).checks[-1]
        assert check.passed
        assert (f"not claimed where shard {shard} is {grade}" in check.detail) == (method != "exact")


def test_after_calibration_exact_goes_back_to_before_it_and_never_joined_is_claimed_again(
    pristine: Path, room: Path
) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        first, second, *_ = shards_of(space)[0]
        world = world_without(space, first, second)
        space.forget([first], "calibrated")
        space.forget([second], "exact")
        assert every_digest(space) == world
        assert {s.standing for s in space.status().shards} == {"X1"}


@pytest.mark.parametrize("method", ["FR", "FE", "SE", "SE-uncoded", "RR"])
def test_the_papers_other_methods_run_on_any_federation(pristine: Path, room: Path, method: str) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        world = world_without(space, client(2))
        report = space.forget([client(2)], method)
        assert (every_digest(space) == world) == (method == "FR")
        assert report.method == method
        assert_in_order(space)


def test_whoever_never_took_part_is_forgotten_without_touching_a_model(room: Path) -> None:
    path = trained(room / "w", participants=1, draw="stage")
    never = next(c for c, first in drawn_from(path).items() if first is None)
    with opened(path) as space:
        before = every_digest(space)
        report = space.forget([never])
        assert report.guarantee.grade == "X0"
        assert report.rounds == report.client_epochs == 0
        assert every_digest(space) == before
        assert space.status().forgotten == (never,)
        assert not any(key.holder == never for key in space.store.keys())  # noqa: SIM118
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


def test_before_any_training_forgetting_only_empties_the_seat(room: Path) -> None:
    with make(room / "w") as space:
        world = world_without(space, client(1))
        assert space.forget([client(1)]).guarantee.grade == "X0"
        space.train()
        assert every_digest(space) == world
        assert_in_order(space)


# --- what is refused, and changes nothing -------------------------------------------------------------------


def test_requests_nobody_can_carry_out_are_refused(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path, seats=12) as space:
        space.forget([client(2)])
        with refused(path, UnknownClient, "client-099", "status DIR --clients"):
            space.forget(["client-099", client(3)])
        with refused(path, UnknownClient, "../../../etc/passwd"):
            space.forget(["../../../etc/passwd"])
        with refused(path, AlreadyForgotten, client(2), "nothing to do"):
            space.forget([client(2)])
        with refused(path, AlreadyForgotten, client(2)):
            space.forget([client(2), client(3)])
        with refused(path, SettingError, "no forget was interrupted"):
            space.forget()
        with refused(path, SettingError, "method", "hypnosis"):
            space.forget([client(3)], "hypnosis")
        with refused(path, NoReference, "--length", "--method exact"):
            space.forget([members[0] for members in shards_of(space).values()], "clean")


def test_a_client_unknown_here_is_told_who_is_enrolled_but_not_who_was_forgotten(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        space.forget([client(0)])
        with pytest.raises(UnknownClient) as caught:
            space.forget(["nobody"])
        assert client(0) not in caught.value.known
        assert client(1) in caught.value.known


# --- a shard that ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
@pytest.mark.parametrize("method", METHODS)
def test_when_all_clients_of_a_shard_leave_it_ends_and_the_rest_serves(
    room: Path, layout: Any, keep: Any, method: str
) -> None:
    with opened(trained(room / "w", layout, keep, **SIZE), seats=12) as space:
        everybody = shards_of(space)[1]
        before = digests(space)
        report = space.forget(everybody, method)
        assert report.ended == (1,)
        assert "1" not in report.after
        assert digests(space) == {s: d for s, d in before.items() if s != 1}
        assert [s.living for s in space.status().shards] == [True, False, True]
        assert [s.model for s in space.evaluate().scores] == ["shard 0", "shard 2", "average", "ensemble", "vote"]
        assert space.verify(never_joined=True, replay=2).passed
        assert_in_order(space)

        other = shards_of(space)[0][0]
        assert space.forget([other]).guarantee.grade == "X1"
        assert space.train().rounds == 0
        space.open_stage(2)
        space.train()
        assert set(digests(space)) == {0, 2}
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


def test_one_after_another_until_the_shard_is_empty(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        ended = [space.forget([leaver]).ended for leaver in shards_of(space)[0]]
        assert ended == [(), (), (), (0,)]
        assert space.verify(never_joined=True).passed


def test_when_everybody_has_left_nothing_is_served_and_nothing_breaks(room: Path) -> None:
    with opened(trained(room / "w")) as space:
        report = space.forget([client(i) for i in range(8)])
        assert report.ended == (0, 1)
        assert report.after == {}
        status = space.status(members=True)
        assert not any(s.living for s in status.shards)
        assert status.clients == 0
        assert space.train().rounds == 0
        assert space.verify(never_joined=True, replay=1).passed
        with pytest.raises(NobodyLeft, match="no client is left"):
            space.evaluate()
        assert_in_order(space)


def test_newcomers_bring_an_ended_shard_back(room: Path) -> None:
    path = trained(room / "w", seats=10)
    with opened(path, seats=10) as space:
        gone = shards_of(space)[0]
        space.forget(gone)
        space.open_stage(2, join=2)
        space.train()
        shards = shards_of(space)
        assert shards[0]
        assert set(digests(space)) == {0, 1}
        assert space.verify(never_joined=True).passed
        space.forget(shards[0])
        assert set(digests(space)) == {1}
        assert_in_order(space)


# --- interrupted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_forget_goes_first_and_goes_on(pristine: Path, room: Path, method: str) -> None:
    with opened(copied(pristine, room / "twin"), seats=12) as twin:
        undisturbed = twin.forget([client(2)], method)
        models = every_digest(twin)
    path = copied(pristine, room / "w")
    with opened(path, seats=12) as space:
        with pytest.raises(Interrupted):
            space.forget([client(2)], method, progress=interrupt)
        assert space.status().unfinished == (client(2),)
        assert space.status().forgotten == ()
        for verb in (
            space.train,
            space.open_stage,
            lambda: space.forget([client(3)], method),
            lambda: space.forget([client(2), client(3)], method),
            lambda: space.forget([client(2)], "clean" if method == "exact" else "exact"),
            lambda: space.forget([client(2)], method, Calibration(ratio=1.0)),
        ):
            with refused(path, Unfinished, client(2), method, f"fedforget forget {path}"):
                verb()
        space.verify()
        space.evaluate()
        space.plan([client(3)])
        report = space.forget()
        assert report.clients == (client(2),)
        assert replace(report, seconds=0, parallel_seconds=0, wall_seconds=0) == replace(
            undisturbed, seconds=0, parallel_seconds=0, wall_seconds=0
        )
        assert every_digest(space) == models
        assert space.status().unfinished == ()
        assert_in_order(space)


def test_asking_again_for_the_same_goes_on_too(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w"), seats=12) as space:
        world = world_without(space, client(2), client(7))
        with pytest.raises(Interrupted):
            space.forget([client(2), client(7)], progress=interrupt)
        told: list[tuple[str, int, int]] = []
        space.forget([client(7), client(2), client(7)], progress=lambda *now: told.append(now))
        assert told[0][1] > 0
        assert told[-1][1] == told[-1][2]
        assert every_digest(space) == world


def test_a_forget_that_was_stopped_before_anything_was_made_goes_on(pristine: Path, room: Path) -> None:
    def at_once(what: str, done: int, total: int) -> None:
        raise Interrupted

    with opened(copied(pristine, room / "w"), seats=12) as space:
        world = world_without(space, client(2))
        with pytest.raises(Interrupted):
            space.forget([client(2)], progress=at_once)
        space.forget()
        assert every_digest(space) == world
        assert_in_order(space)


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_forgetting_in_the_middle_of_training_and_training_on(room: Path, layout: Any, keep: Any) -> None:
    with make(room / "w", layout, keep, rounds=6) as space:
        world = world_without(space, client(2), client(3))

        def half_way(what: str, done: int, total: int) -> None:
            if 2 * done == total:
                raise Interrupted

        with pytest.raises(Interrupted):
            space.train(half_way)
        assert [s.rounds for s in space.status().shards] == [3, 3]
        space.forget([client(2)])
        assert every_digest(space) == as_far_as(world_without(space), space)
        space.forget([client(3)])
        assert space.train().rounds == 6
        assert every_digest(space) == world
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


@pytest.mark.parametrize("method", ["clean", "calibrated"])
def test_training_goes_on_after_any_other_method_too(room: Path, method: str) -> None:
    with make(room / "w", rounds=6) as space:
        with pytest.raises(Interrupted):
            space.train(interrupt)
        space.forget([client(2)], method)
        space.train()
        assert [s.rounds for s in space.status().shards] == [6, 6]
        assert_in_order(space)
