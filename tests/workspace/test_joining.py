"""Requests that come while a rebuild runs: who is drawn only in rounds still ahead joins it, the others wait."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from asking import Clock, ask, desk, enrol, key, kinds, states
from small import Died, assert_in_order, client, copied, dies_before, every_digest, operations, trained
from worlds import world_without

from fedforget.plan import Change
from fedforget.requests import Scope
from fedforget.storage import queue
from fedforget.storage.disk import Disk
from fedforget.storage.ledger import Request
from fedforget.workspace import Workspace
from fedforget.workspace.joining import Joining
from fedforget.workspace.scopes import Ground, resolve
from fedforget.workspace.state import unfinished

SIZE = {"clients": 12, "shards": 2, "rounds": 6, "participants": 1}
EVERYBODY = [client(i) for i in range(12)]


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    path = trained(shared_room / "pristine", **SIZE)
    with desk(path, Clock(), seats=12) as space:
        enrol(space, EVERYBODY)
    return path


def first_rounds(space: Workspace, without: str = "") -> dict[str, int]:
    """Client → the first round of shard 0 it is drawn in, in the world without somebody; those never drawn left out."""
    plan = space.state().plan
    plan = plan.without([without]) if without else plan
    rounds = {c: plan.first_round(0, 0, [c]) for c in plan.present(0, 0)}
    return {c: r for c, r in sorted(rounds.items(), key=lambda item: (item[1] is None, item[1])) if r is not None}


def between(space: Workspace, round: int, then: Callable[[], None]) -> Callable[[str, int, int], None]:
    """A progress that does something once, when so many rounds of the rebuild are kept."""
    done = []

    def tell(what: str, finished: int, total: int) -> None:
        if what == "forgetting" and finished == round and not done:
            done.append(True)
            then()

    return tell


def second_desk(path: Path, clock: Clock, *clients: str) -> None:
    """Another process: it has no lock, and needs none."""
    with desk(path, clock, seats=12) as other:
        ask(other, *clients).raise_if_denied()
        assert {states(other)[f"r-{c}"] for c in clients} == {"quarantined"}


def test_who_is_drawn_in_rounds_ahead_joins_and_who_is_not_waits(pristine: Path, room: Path) -> None:
    path, clock = copied(pristine, room / "w"), Clock()
    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        ahead = first_rounds(space, leaver)
        begin = min(first_rounds(space).values())
        early = next(c for c, r in ahead.items() if r == begin)
        late = next(c for c, r in ahead.items() if r > begin + 1)
        elsewhere = space.state().plan.present(0, 1)[0]
        ask(space, leaver)
        report = space.requests.run(
            now=True, progress=between(space, 1, lambda: second_desk(path, clock, early, late, elsewhere))
        )
        # The window is over for all: what could not join is the next batch of the same run.
        assert [len(r.clients) for r in report.rebuilds] == [2, 2]
        assert report.rebuilds[0].clients == tuple(sorted([leaver, late]))
        assert set(report.executed) == {f"r-{c}" for c in (leaver, early, late, elsewhere)}
        assert kinds(space).count("widened") == 1
        assert every_digest(space) == world_without(space)
        assert_in_order(space)


def test_without_now_they_wait_for_their_own_window(pristine: Path, room: Path) -> None:
    path, clock = copied(pristine, room / "w"), Clock()
    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        elsewhere = space.state().plan.present(0, 1)[0]
        ask(space, leaver)
        clock.pass_by(hours=24)
        report = space.requests.run(progress=between(space, 1, lambda: second_desk(path, clock, elsewhere)))
        assert (report.executed, report.waiting) == ((f"r-{leaver}",), 1)
        assert report.next_batch == "2026-02-02T12:00:00Z"


def test_by_hand_too_and_the_interrupted_verb_still_knows_what_it_was_asked_for(pristine: Path, room: Path) -> None:
    path, clock = copied(pristine, room / "w"), Clock()
    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        late = next(c for c, r in first_rounds(space, leaver).items() if r > 1)
    came: list[str] = []

    def dies(what: str, finished: int, total: int) -> None:
        if finished == 1 and not came:
            came.append(late)
            second_desk(path, clock, late)
        if finished == 3:
            raise Died

    with pytest.raises(Died), desk(path, clock, seats=12) as space:
        space.forget([leaver], progress=dies)
    with desk(path, clock, seats=12) as space:
        assert states(space) == {"by-hand-1": "rebuilding", f"r-{late}": "rebuilding"}
        report = space.forget([leaver])
        assert report.clients == tuple(sorted([leaver, late]))
        assert set(states(space).values()) == {"executed"}
        assert_in_order(space)


def test_methods_that_are_not_exact_are_joined_by_nobody(pristine: Path, room: Path) -> None:
    path, clock = copied(pristine, room / "w"), Clock()
    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        late = next(c for c, r in first_rounds(space, leaver).items() if r > 1)
        ask(space, leaver)
        clock.pass_by(hours=24)
        progress = between(space, 1, lambda: second_desk(path, clock, late))
        assert space.requests.run(method="calibrated", progress=progress).executed == (f"r-{leaver}",)
        assert kinds(space).count("widened") == 0


def test_who_is_forgotten_by_the_running_rebuild_already_is_asked_for_again(pristine: Path, room: Path) -> None:
    """A second wish for the leaver itself joins at once: nothing of it is in any round made."""
    path, clock = copied(pristine, room / "w"), Clock()

    def again() -> None:
        with desk(path, clock, seats=12) as other:
            blob = other.requests.wish(scope, key(leaver), request="second").to_bytes()
            other.requests.ask(blob).raise_if_denied()

    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        ask(space, leaver)
        scope = Scope.of_clients([leaver])
        report = space.requests.run(now=True, progress=between(space, 1, again))
        assert report.executed == (f"r-{leaver}", "second")
        assert len(report.rebuilds) == 1


def test_held_just_as_it_was_to_join_it_waits(pristine: Path, room: Path) -> None:
    """The transaction that widens the rebuild finds it on hold, and is undone."""
    path, clock = copied(pristine, room / "w"), Clock()
    with desk(path, clock, seats=12) as space:
        leaver = next(iter(first_rounds(space)))
        late = next(c for c, r in first_rounds(space, leaver).items() if r > 1)
        opened: list[Request] = []

        def held(what: str, done: int, total: int) -> None:
            if what == "forgetting" and done == 1 and not opened:
                second_desk(path, clock, late)
                with space.ledger.reading() as db:
                    one = queue.find(db, f"r-{late}")
                assert one is not None
                space.requests.say(one.id, "hold", "wait")
                request = unfinished(space.ledger)
                assert request is not None
                opened.append(request)
                assert not Joining(space)._enter(request, Change(frozenset([leaver, late])), [one])

        ask(space, leaver)
        report = space.requests.run(now=True, progress=held)
        assert opened
        assert report.executed == (f"r-{leaver}",)
        assert states(space)[f"r-{late}"] == "on_hold"
        assert kinds(space).count("widened") == 0
        assert_in_order(space)


# --- killed anywhere --------------------------------------------------------------------------------------------


def life(path: Path, clock: Clock, disk: Disk | None = None) -> None:
    """Two ask, one more joins or waits, the queue is worked to its end. May be begun again wherever it was killed."""
    with desk(path, clock, seats=12, disk=disk) as space:
        leaver, late, elsewhere = asking(space)
        if f"r-{leaver}" not in states(space):
            ask(space, leaver, elsewhere).raise_if_denied()
        space.requests.run(
            now=True,
            progress=lambda what, done, total: arrives(space, late) if done == 1 else None,
        )
        arrives(space, late)
        space.requests.run(now=True)


def arrives(space: Workspace, late: str) -> None:
    if f"r-{late}" not in states(space):
        ask(space, late).raise_if_denied()


def asking(space: Workspace) -> tuple[str, str, str]:
    """Of shard 0 and of shard 1, whoever is left by now."""
    return client(4), client(8), client(3)


def check_killed_at(pristine: Path, room: Path, steps: range, ends: object) -> None:
    for step in steps:
        path, clock = copied(pristine, room / f"w{step}"), Clock()
        with suppress(Died):
            life(path, clock, dies_before(step))
        life(path, clock)
        with desk(path, clock, seats=12) as space:
            assert every_digest(space) == ends
            assert set(states(space).values()) == {"executed"}
            assert len(states(space)) == 3
            assert_in_order(space)


@pytest.fixture(scope="module")
def undisturbed(pristine: Path, shared_room: Path) -> tuple[int, object]:
    path = copied(pristine, shared_room / "undisturbed")
    steps = len(operations(lambda disk: life(path, Clock(), disk)))
    with desk(path, Clock(), seats=12) as space:
        assert_in_order(space)
        assert every_digest(space) == world_without(space)
        return steps, every_digest(space)


def test_killed_here_and_there_it_goes_on_and_ends_the_same(
    pristine: Path, room: Path, undisturbed: tuple[int, object]
) -> None:
    steps, ends = undisturbed
    check_killed_at(pristine, room, range(0, steps, max(1, steps // 12)), ends)


@pytest.mark.slow
def test_killed_before_every_single_durable_operation_it_ends_the_same(
    pristine: Path, room: Path, undisturbed: tuple[int, object]
) -> None:
    steps, ends = undisturbed
    check_killed_at(pristine, room, range(steps), ends)


def test_what_was_forgotten_meanwhile_joins_nothing(pristine: Path, room: Path) -> None:
    with desk(copied(pristine, room / "w"), Clock(), seats=12) as space:
        space.forget([client(0)])
        with space.ledger.transaction("look") as db:
            (done,) = queue.listed(db)
        joining = Joining(space)
        ground = Ground.of(space)
        part = resolve(space, ground, Scope.of_clients([client(1)]))
        assert joining._with(part, done) is None
