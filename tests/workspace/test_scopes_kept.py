"""Examples, a class and stages forgotten on disk: what is dropped, who leaves, what is refused, what stays away."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import (
    CLASSES,
    LAYOUTS,
    Died,
    assert_in_order,
    client,
    copied,
    dies_before,
    digests,
    every_digest,
    opened,
    operations,
    reopen,
    small_settings,
    small_task,
    trained,
)
from worlds import as_far_as, refused

from fedforget.datasets import Dataset
from fedforget.engines.local import LocalCohort
from fedforget.errors import AlreadyForgotten, SettingError, Unfinished, UnknownClient, VerificationFailed
from fedforget.examples import Examples
from fedforget.federation import FitResult, FitTask, train_all
from fedforget.plan import Change
from fedforget.requests import Scope
from fedforget.storage import erasures
from fedforget.storage.erasures import Holding
from fedforget.workspace import Task, Workspace
from fedforget.workspace.keys import tombstone
from fedforget.workspace.scopes import KeepsData, commitment, effective, graves


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine")


@pytest.fixture(scope="module")
def staged(shared_room: Path) -> Path:
    """Two stages, a newcomer in the second."""
    path = trained(shared_room / "staged", seats=9)
    with opened(path, seats=9) as space:
        space.open_stage(join=1)
        space.train()
    return path


def world(space: Workspace, change: Change, drops: Mapping[str, Sequence[int]]) -> Mapping[Any, Any]:
    """Every round had it never been there, from nothing, in memory."""
    task, plan = space.task, space.state().plan.changed(change)
    cohort = LocalCohort(task.learner, effective(task.examples, drops))
    rounds = train_all(cohort, plan, task.learner, space.settings.training)
    return {tuple(r.place): (r.start.digest, r.model.digest) for r in rounds}


@pytest.mark.parametrize("keep", ["full", "lean"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_end_in_the_world_that_never_had_them(room: Path, layout: Any, keep: Any) -> None:
    with opened(trained(room / "w", layout, keep)) as space:
        before = digests(space)
        never = world(space, Change(edit=frozenset({client(2)})), {client(2): [0, 3]})
        report = space.forget(scope=Scope.of_samples({client(2): [3, 0, 3]}))
        assert report.guarantee.grade == "X1"
        assert (report.clients, report.scope, report.examples) == ((client(2),), f"samples of {client(2)}", 2)
        assert every_digest(space) == never
        assert digests(space) != before
        assert client(2) in space.state().plan.clients
        assert space.status().forgotten == ()
        verified = space.verify(never_joined=True, replay=6)
        assert verified.passed, verified
        assert [c.detail for c in verified.checks if c.what == "data sets"] == [
            "1 of 1 clients have what they committed to"
        ]
        assert "2 examples dropped" in next(c.detail for c in verified.checks if c.what == "forgotten")
        assert_in_order(space)


def test_the_next_stages_train_without_them_too(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.forget(scope=Scope.of_samples({client(1): [1]}))
    with opened(room / "w") as space:
        space.open_stage()
        space.train()
        assert every_digest(space) == world(space, Change(), {client(1): [1]})
        assert all(
            count == len(space.task.examples[client(1)]) - 1
            for row in space.state().rows.values()
            for who, count in zip(row.roster, row.examples, strict=True)
            if who == client(1)
        )
        assert space.verify(never_joined=True).passed


@pytest.mark.parametrize("method", ["clean", "calibrated"])
def test_the_other_methods_drop_them_too(pristine: Path, room: Path, method: str) -> None:
    with opened(copied(pristine, room / "w")) as space:
        report = space.forget(scope=Scope.of_samples({client(2): [1]}), method=method)
        assert report.guarantee.grade == {"clean": "X3", "calibrated": "A"}[method]
        assert_in_order(space)


def test_one_request_after_another_on_the_same_client(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.forget(scope=Scope.of_samples({client(2): [1]}))
        report = space.forget(scope=Scope.of_samples({client(2): [1, 2]}))
        assert report.examples == 1
        assert every_digest(space) == world(space, Change(), {client(2): [1, 2]})
        assert erasures.drops(space.ledger) == {client(2): {1, 2}}
        with pytest.raises(AlreadyForgotten, match="samples of client-002"):
            space.forget(scope=Scope.of_samples({client(2): [2]}))
        space.forget([client(2)])
        assert every_digest(space) == world(space, Change(), {})
        assert erasures.drops(space.ledger) == erasures.holdings(space.ledger) == {}
        with pytest.raises(AlreadyForgotten):
            space.forget(scope=Scope.of_samples({client(2): [0]}))
        assert space.verify(never_joined=True).passed


def test_whoever_is_left_with_nothing_leaves(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        rows = range(len(space.task.examples[client(3)]))
        report = space.forget(scope=Scope.of_samples({client(3): rows}))
        assert report.examples == 0
        assert space.status().forgotten == (client(3),)
        assert every_digest(space) == world(space, Change(), {})
        assert_in_order(space)


def test_a_class_is_dropped_by_all_who_have_it_and_by_the_seats_not_taken_yet(room: Path) -> None:
    label = 1
    with opened(trained(room / "w", seats=9), seats=9) as space:
        rows = {c: np.flatnonzero(e.y == label).tolist() for c, e in space.task.examples.items()}
        space.plan(scope=Scope.of_class(label))
        report = space.forget(scope=Scope.of_class(label))
        assert report.guarantee.grade == "X1"
        assert every_digest(space) == world(space, Change(), rows)
        space.open_stage(join=1)
        space.train()
        assert every_digest(space) == world(space, Change(), rows)
        with pytest.raises(SettingError, match="a class that one of them has"):
            space.forget(scope=Scope.of_class(CLASSES))
        with pytest.raises(AlreadyForgotten, match="class 1 of all clients"):
            space.forget(scope=Scope.of_class(label))
        assert space.evaluate().score("average").forgotten_accuracy is not None
        assert space.verify(never_joined=True).passed


def one_label(label: int) -> Task:
    """As the small task, but one client and one free seat have nothing but the label."""
    task = small_task(9)
    only = {c: Examples(task.examples[c].x, np.full(len(task.examples[c]), label)) for c in (client(4), client(8))}
    return replace(task, examples={**task.examples, **only})


def test_a_seat_that_the_class_was_all_of_cannot_be_taken_any_more(room: Path) -> None:
    task = one_label(2)
    with Workspace.init(room / "w", small_settings(seats=9), task=task) as space:
        space.train()
        space.forget(scope=Scope.of_class(2))
        assert client(4) in space.status().forgotten
        with pytest.raises(SettingError, match="none is left"):
            space.open_stage(join=[client(8)])
        with pytest.raises(SettingError, match="from 0 to the 0 seats"):
            space.open_stage(join=1)


def test_a_class_of_some_clients_only(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        has = next(c for c, e in space.task.examples.items() if 0 < (e.y == 0).sum() < len(e))
        space.forget(scope=Scope.of_class(0, [has]))
        assert set(erasures.drops(space.ledger)) == {has}


# --- stages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 1), (0, 1)])
def test_stages_end_in_the_world_where_it_was_not_there(staged: Path, room: Path, first: int, last: int) -> None:
    with opened(copied(staged, room / "w"), seats=9) as space:
        change = Change(away=frozenset((client(2), stage) for stage in range(first, last + 1)))
        never = world(space, change, {})
        report = space.forget(scope=Scope.of_stages(first, last, [client(2)]))
        assert report.guarantee.grade == "X1"
        assert every_digest(space) == never
        assert space.status().forgotten == ()
        assert space.verify(never_joined=True, replay=4).passed
        with pytest.raises(AlreadyForgotten):
            space.forget(scope=Scope.of_stages(first, last, [client(2)]))
        space.open_stage()
        space.train()
        assert client(2) in space.state().plan.present(2, space.state().plan.shard_of(client(2)))
        assert every_digest(space) == world(space, Change(), {})
        assert_in_order(space)


def test_a_stage_of_everybody_goes_back_to_where_it_began(staged: Path, room: Path) -> None:
    with opened(copied(staged, room / "w"), seats=9) as space:
        never = world(space, Change(away=frozenset((c, 1) for c in space.state().plan.clients)), {})
        space.forget(scope=Scope.of_stages(1, 1))
        assert every_digest(space) == never
        assert {place[0] for place in never} == {0}
        assert_in_order(space)


def test_whoever_was_away_can_leave_and_be_edited_later(staged: Path, room: Path) -> None:
    with opened(copied(staged, room / "w"), seats=9) as space:
        space.forget(scope=Scope.of_stages(0, 0, [client(2)]))
        space.forget(scope=Scope.of_samples({client(2): [0]}))
        assert every_digest(space) == world(space, Change(), {client(2): [0]})
        space.forget([client(2)])
        assert erasures.absences(space.ledger) == {}
        assert every_digest(space) == world(space, Change(), {})


# --- refusals -----------------------------------------------------------------------------------------------

LATE = Scope.of_stages(0, 0, [client(8)])  # joins in stage 1


@pytest.mark.parametrize(
    ("scope", "kind", "words"),
    [
        (Scope.of_samples({"nobody": [1]}), UnknownClient, "nobody"),
        (Scope.of_samples({client(0): [99]}), SettingError, "from 0 to 3"),
        (Scope.of_samples({client(0): "sha256:" + 64 * "0"}), SettingError, "for its data are here"),
        (Scope.of_stages(0, 2), SettingError, "of those there are, 0 to 1"),
        (LATE, SettingError, "was present"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    staged: Path, room: Path, scope: Scope, kind: Any, words: str
) -> None:
    path = copied(staged, room / "w")
    with opened(path, seats=9) as space:
        with refused(path, kind, words):
            space.plan(scope=scope)
        with refused(path, kind, words):
            space.forget(scope=scope)


def test_clients_and_a_scope_at_once_are_refused(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space, refused(path, SettingError, "within the scope"):
        space.forget([client(1)], scope=Scope.of_class(1))


def test_text_has_no_classes(pristine: Path, room: Path) -> None:
    path, task = copied(pristine, room / "w"), small_task()
    text = replace(task, dataset=Dataset("small", "text", task.dataset.train, task.test, task.dataset.labels))
    with Workspace.open(path, task=text) as space, refused(path, SettingError, "text, which has no classes"):
        space.forget(scope=Scope.of_class(1))


# --- interruptions and backups ------------------------------------------------------------------------------


def test_an_interrupted_one_goes_on_and_nothing_else_goes_first(pristine: Path, room: Path) -> None:
    scope = Scope.of_samples({client(2): [0, 3]})
    straight = copied(pristine, room / "straight")

    def work(disk: Any) -> None:
        with opened(straight, disk=disk) as space:
            space.forget(scope=scope)

    steps = len(operations(work))
    with opened(straight) as space:
        ends = every_digest(space)
    for step in range(3, steps, 5):
        path = copied(pristine, room / "broken")
        with pytest.raises(Died), opened(path, disk=dies_before(step)) as space:
            space.forget(scope=scope)
        with opened(path) as space:
            if any(r.state == "rebuilding" for r in space.ledger.requests()):
                assert space.status().unfinished == (f"samples of {client(2)}",)
                with pytest.raises(Unfinished, match="samples of client-002"):
                    space.forget([client(2)])
                space.forget(scope=scope)
            elif not any(r.state == "executed" for r in space.ledger.requests()):
                space.forget(scope=scope)
            else:
                space.train()
            assert every_digest(space) == ends
            assert_in_order(space)
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "scope", [Scope.of_samples({client(2): [0, 3]}), Scope.of_class(1), Scope.of_stages(0, 0, [client(1), client(2)])]
)
def test_a_restored_backup_brings_nothing_back(pristine: Path, room: Path, scope: Scope) -> None:
    path = copied(pristine, room / "w")
    backup = (path / "ledger.db").read_bytes()
    with opened(path) as space:
        space.forget(scope=scope)
        ends = every_digest(space)
        drops, away = erasures.drops(space.ledger), erasures.absences(space.ledger)
    (path / "ledger.db").write_bytes(backup)
    with opened(path) as space:
        space.train()
        assert (erasures.drops(space.ledger), erasures.absences(space.ledger)) == (drops, away)
        assert every_digest(space) == ends
        assert space.verify().passed


def test_a_newcomer_that_was_forgotten_cannot_join_again_in_a_ledger_from_before_it_came(room: Path) -> None:
    path = trained(room / "w", seats=9)
    backup = (path / "ledger.db").read_bytes()
    with opened(path, seats=9) as space:
        space.open_stage(join=1)
        space.train()
        space.forget([client(8)])
    (path / "ledger.db").write_bytes(backup)
    with opened(path, seats=9) as space:
        space.train()
        with pytest.raises(SettingError, match="none is left"):
            space.open_stage(join=[client(8)])


# --- what verify sees ---------------------------------------------------------------------------------------


def test_a_data_set_that_is_not_what_was_committed_to_is_found(pristine: Path, room: Path) -> None:
    path, task = copied(pristine, room / "w"), small_task()
    with opened(path) as space:
        space.forget(scope=Scope.of_samples({client(2): [0]}))
    mine = task.examples[client(2)]
    other = {**task.examples, client(2): Examples(mine.x + 1, mine.y)}
    changed = Workspace.open(path, task=replace(task, examples=other))
    with changed as space, pytest.raises(VerificationFailed, match="data sets: not of client-002"):
        space.verify().raise_if_failed()


def test_more_examples_than_are_left_are_found(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        space.forget(scope=Scope.of_samples({client(2): [0]}))
        with space.ledger.transaction("test") as db:
            erasures.enter(db, 9, {"drops": {client(2): [1]}, "leave": []})
        check = next(c for c in space.verify().checks if c.what == "forgotten")
        assert not check.passed
        assert f"{client(2)} with " in check.detail


# --- clients that keep their data themselves ----------------------------------------------------------------


@dataclass
class Remote:
    """Clients the workspace sees nothing of: they drop when asked, and say what they have left."""

    task: Task
    dropped: dict[str, set[int]] = field(default_factory=dict)

    def drop(self, examples: Mapping[str, Sequence[int]]) -> Mapping[str, Holding]:
        for who, rows in examples.items():
            self.dropped.setdefault(who, set()).update(rows)
        left = effective(self.task.examples, self.dropped)
        return {who: Holding(commitment(left[who], f"salt of {who}"), None, len(left[who])) for who in examples}

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return LocalCohort(self.task.learner, effective(self.task.examples, self.dropped)).fit(tasks)


def remote(path: Path, engine: Remote) -> Workspace:
    return Workspace.open(path, task=replace(engine.task, examples={}), make_cohort=lambda *_: engine)


def test_clients_that_keep_their_data_drop_and_commit_themselves(pristine: Path, room: Path) -> None:
    path, engine = copied(pristine, room / "w"), Remote(small_task())
    assert isinstance(engine, KeepsData)
    with reopen(path) as here:
        never = world(here, Change(), {client(2): [0, 3]})
    with remote(path, engine) as space:
        space.forget(scope=Scope.of_samples({client(2): [0, 3]}))
        assert engine.dropped == {client(2): {0, 3}}
        assert every_digest(space) == never
        report = space.verify(never_joined=True)
        assert report.passed, report
        engine.dropped.clear()
        assert not space.verify().passed
        everything = range(len(engine.task.examples[client(1)]))
        assert space.forget(scope=Scope.of_samples({client(1): everything})).examples == 0
        assert space.status().forgotten == (client(1),)


def test_a_commitment_of_the_clients_own_is_taken_as_it_is(pristine: Path, room: Path) -> None:
    path, engine = copied(pristine, room / "w"), Remote(small_task())
    said = engine.drop({client(2): [1]})[client(2)].commitment
    with remote(path, engine) as space:
        space.forget(scope=Scope.of_samples({client(2): said}))
        assert every_digest(space) == as_far_as(every_digest(space), space)
        assert erasures.holdings(space.ledger)[client(2)] == Holding(said)
        assert space.verify(never_joined=True).passed
        with pytest.raises(AlreadyForgotten):
            space.forget(scope=Scope.of_samples({client(2): said}))


def test_an_engine_that_cannot_ask_them_needs_a_commitment_and_no_class_can_be_named(
    pristine: Path, room: Path
) -> None:
    path, task = copied(pristine, room / "w"), small_task()
    blind = Workspace.open(
        path, task=replace(task, examples={}), make_cohort=lambda *_: LocalCohort(task.learner, task.examples)
    )
    with blind as space:
        with refused(path, SettingError, "it cannot be asked"):
            space.forget(scope=Scope.of_samples({client(2): [1]}))
        with refused(path, SettingError, "only client-002 can see"):
            space.forget(scope=Scope.of_class(1, [client(2)]))
        with refused(path, SettingError, "only the clients can see"):
            space.forget(scope=Scope.of_class(1))


def test_without_the_data_at_hand_verify_checks_what_it_can(pristine: Path, room: Path) -> None:
    path, task = copied(pristine, room / "w"), small_task()
    with opened(path) as space:
        space.forget(scope=Scope.of_samples({client(2): [1]}))
    blind = Workspace.open(
        path, task=replace(task, examples={}), make_cohort=lambda *_: LocalCohort(task.learner, task.examples)
    )
    with blind as space:
        report = space.verify()
        assert report.passed
        assert "0 of 1 clients" in next(c.detail for c in report.checks if c.what == "data sets")


def test_a_class_that_only_the_forgotten_had_is_forgotten(room: Path) -> None:
    plain = small_task()
    rare = {c: Examples(e.x, np.where(e.y == 2, 0, e.y)) for c, e in plain.examples.items()}
    rare[client(1)] = Examples(rare[client(1)].x, np.full(len(rare[client(1)]), 2))
    with Workspace.init(room / "w", small_settings(), task=replace(plain, examples=rare)) as space:
        space.train()
        space.forget([client(1)])
        with pytest.raises(AlreadyForgotten):
            space.forget(scope=Scope("class", label=2))


def test_whole_clients_have_no_numbers_in_their_graves() -> None:
    stone, other = tombstone("f", "a/examples"), tombstone("f", "b")
    assert graves("f", [f"{stone}:1,4", other], ["a", "b"], "examples") == {"a": frozenset({1, 4})}
