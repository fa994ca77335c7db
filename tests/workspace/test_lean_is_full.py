"""What a forget makes does not depend on how the history is kept: nor on whether it is kept on disk at all."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from small import EVERY_KEEPING, assert_in_order, client, every_digest, make, reopen, small_settings, small_task

from fedforget.engines.local import LocalCohort
from fedforget.errors import NoReference
from fedforget.federation import Cohort
from fedforget.forgetting import Calibration
from fedforget.plan import Plan, Stage
from fedforget.workspace import Workspace
from fedforget.workspace.workspace import names_of
from strategies import Federation

PAPER, RELEASED, SPARSE = Calibration(), Calibration(compat="released"), Calibration(ratio=1.0, interval=2)
CONSTANT, SPARSE_CONSTANT = Calibration(length=0.3), Calibration(ratio=1.0, interval=2, length=0.3)
Deed = tuple[str, tuple[str, ...], Calibration]  # a method and its leavers, or "stage"

LIVES: Mapping[str, list[Deed]] = {
    "exact": [("exact", (client(7),), PAPER)],
    "clean": [("clean", (client(7),), PAPER)],
    "calibrated": [("calibrated", (client(7),), PAPER)],
    "calibrated as released": [("calibrated", (client(7),), RELEASED)],
    "released, then clean, then released": [
        ("calibrated", (client(4),), RELEASED),
        ("clean", (client(0),), CONSTANT),
        ("calibrated", (client(1),), RELEASED),
    ],
    "every other round": [("calibrated", (client(3),), SPARSE), ("clean", (client(1),), SPARSE_CONSTANT)],
    "a constant length": [("clean", (client(1), client(3)), CONSTANT)],
    "clean, then exact in the shard it borrowed from": [
        ("clean", (client(7),), PAPER),
        ("exact", (client(0),), PAPER),
    ],
    "calibrated twice, then exact": [
        ("calibrated", (client(7),), PAPER),
        ("calibrated", (client(4),), PAPER),
        ("exact", (client(1),), PAPER),
    ],
    "a whole shard": [("exact", (client(1), client(2), client(4), client(7)), PAPER), ("exact", (client(0),), PAPER)],
    "after a stage": [
        ("lineage", (), PAPER),
        ("exact", (client(7),), PAPER),
        ("calibrated", (client(0),), PAPER),
    ],
    "after a merged stage": [("merged", (), PAPER), ("clean", (client(7),), CONSTANT), ("exact", (client(0),), PAPER)],
    "stages between": [
        ("calibrated", (client(2),), RELEASED),
        ("fresh", (), PAPER),
        ("clean", (client(8),), CONSTANT),
        ("lineage", (), PAPER),
        ("calibrated", (client(1), client(3)), PAPER),
        ("exact", (client(9),), PAPER),
    ],
}
STAGES = ("lineage", "merged", "fresh")
ROUNDS = 4


def on_disk(space: Workspace, life: list[Deed]) -> None:
    space.train()
    for deed, leavers, calibration in life:
        if deed in STAGES:
            space.open_stage(3, deed, join=1)
            space.train()
        else:
            space.forget(leavers, deed, calibration)


def in_memory(life: list[Deed]) -> dict[tuple[int, int, int], tuple[str, str]]:
    task, chosen = small_task(10), small_settings(clients=8, seats=10, rounds=ROUNDS)
    names = names_of(task, chosen)
    plan = Plan.of(names[:8], shards=2, rounds=ROUNDS, seed=chosen.seed, participants=2)
    now = TaskFederation(plan, task.examples, chosen.training, task.learner).trained()
    used = 8
    for deed, leavers, calibration in life:
        if deed in STAGES:
            joined = {names[used]: used}
            used += 1
            now = replace(now, plan=now.plan.next_stage(Stage(3, deed), join=joined))  # type: ignore[arg-type]
            now = now.train(len(now.plan.stages) - 1, 3)
        else:
            now = now.forget(deed, *leavers, calibration=calibration)
    return {tuple(p): (r.start.digest, r.model.digest) for p, r in now.past.by_place.items()}


class TaskFederation(Federation):
    """The federation of the core's tests, with the engine that a workspace uses."""

    @property
    def cohort(self) -> Cohort:  # type: ignore[override]
        return LocalCohort(self.learner, self.examples)


@pytest.mark.parametrize("name", LIVES)
def test_every_keeping_and_none_at_all_end_in_the_same_rounds(room: Path, name: str):
    wanted = in_memory(LIVES[name])
    for layout, keep in EVERY_KEEPING:
        space = make(room / f"{layout} {keep}", layout, keep, clients=8, seats=10, rounds=ROUNDS)
        on_disk(space, LIVES[name])
        assert every_digest(space) == wanted, (layout, keep)
        assert_in_order(space)
        space.close()


@st.composite
def lives(draw: st.DrawFn) -> list[Deed]:
    left, life, staged = list(draw(st.permutations(range(8)))), [], 0
    for _ in range(draw(st.integers(1, 4))):
        if staged < 2 and draw(st.integers(0, 3)) == 3:
            life.append((draw(st.sampled_from(STAGES)), (), PAPER))
            staged += 1
            continue
        count = draw(st.sampled_from([1, 1, 1, 2]))
        leavers, left = left[:count], left[count:]
        if leavers:
            method = draw(st.sampled_from(["exact", "clean", "calibrated"]))
            how = draw(st.sampled_from([CONSTANT] if method == "clean" else [PAPER, RELEASED, SPARSE]))
            life.append((method, tuple(client(c) for c in sorted(leavers)), how))
    return life


def live_and_compare(room: Path, life: list[Deed], keepings: tuple) -> None:
    wanted = in_memory(life)
    for at, (layout, keep) in enumerate(keepings):
        folder = room / f"{len(list(room.iterdir()))} {at}"
        space = make(folder, layout, keep, clients=8, seats=10, rounds=ROUNDS)
        on_disk(space, life)
        assert every_digest(space) == wanted, (layout, keep)
        assert_in_order(space)
        space.close()


@settings(max_examples=12, phases=[Phase.generate])
@given(lives())
def test_any_life_ends_the_same_in_lean_and_full(shared_room: Path, life: list[Deed]):
    live_and_compare(shared_room, life, (("shard", "lean"), ("cross", "full")))


@pytest.mark.slow
@settings(max_examples=120, phases=[Phase.generate])
@given(lives())
def test_any_life_ends_the_same_in_every_keeping(shared_room: Path, life: list[Deed]):
    live_and_compare(shared_room, life, EVERY_KEEPING)


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_where_there_is_no_reference_nothing_begins(room: Path, layout, keep):
    """Clean forgetting in both shards at once finds no untainted lengths: refused before anything is entered."""
    space = make(room / "w", layout, keep)
    space.train()
    before = every_digest(space)
    with pytest.raises(NoReference):
        space.forget([client(1), client(3)], "clean")
    space.close()
    space = reopen(room / "w")
    assert space.ledger.requests() == ()
    assert every_digest(space) == before
    assert_in_order(space)
    space.close()
