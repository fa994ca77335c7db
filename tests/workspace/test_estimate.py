"""The estimate of time follows from what the rounds in force took, by epochs, examples and how many work at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small import opened, trained

from fedforget.federation import Cost
from fedforget.forgetting import Rebuild, method_named, prepare_work
from fedforget.manifest import RoundRow
from fedforget.plan import Change
from fedforget.workspace.estimate import estimate_seconds
from fedforget.workspace.state import State

EPOCHS = 8  # of the forget


@pytest.fixture(scope="module")
def made(shared_room: Path) -> tuple[State, Rebuild]:
    """Two shards of two clients a round; the rebuild is of one of them."""
    with opened(trained(shared_room / "w")) as space:
        state = space.state()
        leaver = state.plan.cohort(0, 0, 0)[0]
        return state, prepare_work(method_named("exact"), state.plan, state.past, Change(frozenset([leaver])))


def told(made: tuple[State, Rebuild], cost: Callable[[RoundRow], Cost], examples: int = 5) -> tuple[object, object]:
    state, work = made
    rows = {
        place: replace(row, cost=cost(row), examples=tuple(examples for _ in row.roster))
        for place, row in state.rows.items()
    }
    return estimate_seconds(replace(state, rows=rows), work, EPOCHS)


def test_nothing_timed_nothing_estimated(made: tuple[State, Rebuild]) -> None:
    assert told(made, lambda row: Cost()) == (None, None)
    assert told(made, lambda row: Cost(4, 2.0, 1.0)) == (4.0, None)


def test_one_after_another_keeping_comes_on_top(made: tuple[State, Rebuild]) -> None:
    """A round of both shards waited 0.6 s for the disk: 0.2 and 0.2 a shard. Now there is one shard, 3 rounds of it."""
    work, wall = told(made, lambda row: Cost(4, 2.0, 1.0, 2.3))
    assert work == pytest.approx(4.0)
    assert wall == pytest.approx(4.0 + 3 * 1.5 * (0.2 + 0.2))


def test_at_once_it_takes_longer_where_somebody_works_alone(made: tuple[State, Rebuild]) -> None:
    """Four clients on three workers waited for one another as two do now."""
    _, wall = told(made, lambda row: Cost(4, 3.0, 1.0, 1.0))
    assert wall == pytest.approx(4 / 4 * EPOCHS * 3 / 4 / 3 * (3 / 2) / (6 / 4))


def test_who_has_more_examples_takes_longer(made: tuple[State, Rebuild]) -> None:
    state, work = made
    again = {c for place in state.rows if place.shard == 0 for c in work.after.cohort(*place)}

    def count(row: RoundRow) -> tuple[int, ...]:
        return tuple(30 if c in again else 10 for c in row.roster)

    rows = {p: replace(row, cost=Cost(4, 2.0, 1.0), examples=count(row)) for p, row in state.rows.items()}
    usual = sum(n for row in rows.values() for n in row.examples) / sum(len(row.roster) for row in rows.values())
    known = {c for row in rows.values() for c in row.roster}
    asked = [c for r in range(3) for c in work.after.cohort(0, 0, r)]
    mean = sum(30 if c in known else usual for c in asked) / len(asked)
    seconds, _ = estimate_seconds(replace(state, rows=rows), work, EPOCHS)
    assert seconds == pytest.approx(EPOCHS * 0.5 * mean / usual)


def test_what_touches_nothing_takes_no_time(made: tuple[State, Rebuild]) -> None:
    state, work = made
    nothing = replace(work, taints={})
    for cost in (Cost(4, 2.0, 1.0, 2.3), Cost(4, 3.0, 1.0, 1.0)):
        rows = {p: replace(row, cost=cost) for p, row in state.rows.items()}
        assert estimate_seconds(replace(state, rows=rows), nothing, 0) == (0.0, 0.0)
