"""Scopes beyond a client: examples, a class, stages. Exact ends in the run that never had them; twins cannot tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedforget.errors import NoReference, UnknownClient
from fedforget.examples import Examples
from fedforget.federation import Cohort, FitResult, FitTask, Place
from fedforget.forgetting import Calibration, Recorded, assess, method_named, prepare_work
from fedforget.plan import Change, Member, Plan, Stage
from strategies import Federation, Here, calibrations, examples_of, federations, finished, trained_until

Kept = Mapping[str, Examples]  # everybody's examples, what is forgotten dropped

several = federations(shards=st.integers(2, 4), clients=st.integers(4, 9))


@dataclass(frozen=True)
class Scope:
    """What is to be forgotten, and what the clients are left with."""

    change: Change
    kept: Kept


def without(mine: Examples, rows: Sequence[int]) -> Examples:
    return mine.take([row for row in range(len(mine)) if row not in set(rows)])


@st.composite
def samples(draw: st.DrawFn, federation: Federation) -> Scope:
    """Some examples of one to three clients, but never all of anybody's."""
    clients = federation.plan.clients
    many = [c for c in clients if len(federation.examples[c]) > 1] or clients[:1]
    chosen = draw(st.sets(st.sampled_from(many), min_size=1, max_size=3))
    kept = dict(federation.examples)
    for client in sorted(chosen):
        count = len(kept[client])
        rows = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count - 1)) if count > 1 else []
        kept[client] = without(kept[client], rows)
    return Scope(Change(edit=frozenset(chosen)), kept)


@st.composite
def classes(draw: st.DrawFn, federation: Federation) -> Scope:
    """One label, at everybody; who is left with nothing leaves."""
    clients = federation.plan.clients
    label = draw(st.sampled_from(sorted({int(y) for c in clients for y in federation.examples[c].y})))
    kept = {c: without(e, np.flatnonzero(e.y == label).tolist()) for c, e in federation.examples.items()}
    shrunk = {c for c in clients if len(kept[c]) < len(federation.examples[c])}
    leave = {c for c in shrunk if not len(kept[c])}
    return Scope(Change(frozenset(leave), frozenset(shrunk - leave)), kept)


@st.composite
def stages(draw: st.DrawFn, federation: Federation) -> Scope:
    """The part one or two clients played in a range of stages."""
    plan = federation.plan
    parts = [(m.client, t) for m in plan.members for t in range(len(plan.stages)) if m.present(t)]
    client, first = draw(st.sampled_from(parts))
    last = draw(st.integers(first, len(plan.stages) - 1))
    chosen = {client, draw(st.sampled_from(plan.clients))}
    return Scope(
        Change(away=frozenset((c, t) for c, t in parts if c in chosen and first <= t <= last)), federation.examples
    )


def forgotten(
    federation: Federation,
    scope: Scope,
    method: str,
    calibration: Calibration | None = None,
    cohort: Cohort | None = None,
) -> Federation:
    """The clients drop what they are asked to, then what it touched is made again."""
    now = replace(federation, examples={**federation.examples, **scope.kept})
    work = prepare_work(method_named(method), now.plan, now.past, scope.change)
    rounds = now.rebuilt(method, work, calibration, cohort)
    return replace(now, plan=work.after, past=now.past.after(rounds, work.emptied))


def world(federation: Federation, scope: Scope) -> Federation:
    """Where nobody ever had it, untrained."""
    plan = federation.plan.changed(scope.change)
    return replace(federation, plan=plan, examples={**federation.examples, **scope.kept}, past=Recorded({}))


SCOPES = pytest.mark.parametrize("scopes", [samples, classes, stages])


@SCOPES
@settings(max_examples=100)
@given(data=st.data())
def test_exact_ends_in_the_run_that_never_had_it(scopes, data: st.DataObject) -> None:
    federation = data.draw(federations()).trained()
    scope = data.draw(scopes(federation))
    assert forgotten(federation, scope, "exact").trace == world(federation, scope).trained().trace


@SCOPES
@settings(max_examples=60)
@given(data=st.data())
def test_forgotten_in_the_midst_of_training_and_trained_on_it_ends_there_too(scopes, data: st.DataObject) -> None:
    federation = data.draw(federations())
    last = len(federation.plan.stages) - 1
    until = data.draw(st.integers(1, federation.plan.stages[last].rounds))
    scope = data.draw(scopes(federation))
    after = forgotten(trained_until(federation, last, until), scope, "exact")
    assert finished(after).trace == world(federation, scope).trained().trace


@settings(max_examples=80)
@given(st.data())
def test_one_scope_after_another_ends_in_the_run_that_had_none_of_it(data: st.DataObject) -> None:
    """Later requests of any scope on the same clients work; after other methods exact goes back to before them."""
    now = never = data.draw(federations()).trained()
    for kind in data.draw(st.lists(st.sampled_from([samples, classes, stages, whole]), min_size=2, max_size=4)):
        if not any(m.present(t) for m in now.plan.members for t in range(len(now.plan.stages))):
            break
        scope = data.draw(kind(now))
        now, never = forgotten(now, scope, "exact"), world(never, scope)
    assert now.trace == never.trained().trace


@st.composite
def whole(draw: st.DrawFn, federation: Federation) -> Scope:
    return Scope(Change(frozenset({draw(st.sampled_from(federation.plan.clients))})), federation.examples)


@SCOPES
@settings(max_examples=60)
@given(data=st.data())
def test_shards_that_are_not_named_keep_their_bits(scopes, data: st.DataObject) -> None:
    federation = data.draw(several).trained()
    scope = data.draw(scopes(federation))
    method = data.draw(st.sampled_from(["exact", "calibrated"]))
    taints = prepare_work(method_named(method), federation.plan, federation.past, scope.change).taints
    after = forgotten(federation, scope, method).trace
    before = federation.trace
    for place, bits in after.items():
        if place.cell not in taints or place.round < taints[place.cell].round:
            assert bits == before[place]


# --- twins --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Elsewhere:
    """Clients that have other data in some of the stages."""

    here: Here
    other: Mapping[tuple[str, int], Examples] = field(default_factory=dict)

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        for task in tasks:
            odd = self.other.get((task.client, task.place.stage))
            mine = self.here if odd is None else Here(self.here.learner, {task.client: odd})
            yield from mine.fit([task])


def loud(rows: int, like: Examples) -> Examples:
    """Other examples in the place of those to be dropped: as many or more, small or huge."""
    return examples_of("other", rows, seed=len(like), scale=10.0 ** (rows % 5))


def last_forgotten(one: Federation, two: Federation, scope: Scope, method: str, calibration: Calibration) -> bool:
    try:
        first = forgotten(one, scope, method, calibration)
        second = forgotten(two, scope, method, calibration)
    except NoReference:
        assume(False)
    return first.trace == second.trace


@pytest.mark.parametrize("method", ["exact", "clean", "FR"])
@pytest.mark.parametrize("scopes", [samples, classes])
@settings(max_examples=50)
@given(data=st.data())
def test_twins_that_differ_in_the_dropped_examples_end_bit_identical(scopes, method, data: st.DataObject) -> None:
    one = data.draw(several)
    scope = data.draw(scopes(one))
    more = data.draw(st.integers(1, 9))
    two = one
    for client in sorted(scope.change.clients):
        two = two.with_examples(client, Examples.join([scope.kept[client], loud(more, one.examples[client])]))
    calibration = replace(data.draw(calibrations), length=data.draw(st.sampled_from([None, 0.25])))
    assert last_forgotten(one.trained(), two.trained(), scope, method, calibration)


@pytest.mark.parametrize("method", ["exact", "clean", "FR"])
@settings(max_examples=50)
@given(data=st.data())
def test_twins_that_differ_in_the_stages_taken_back_end_bit_identical(method, data: st.DataObject) -> None:
    one = data.draw(several)
    scope = data.draw(stages(one))
    odd = {(c, t): loud(3 + t, one.examples[c]) for c, t in scope.change.away}
    two = one.trained(Elsewhere(one.cohort, odd))
    calibration = Calibration(length=data.draw(st.sampled_from([None, 0.25])))
    assert last_forgotten(one.trained(), two, scope, method, calibration)


def test_calibrated_forgetting_keeps_a_trace_of_dropped_examples_and_this_test_can_see_it() -> None:
    one = Federation.of(6, shards=2, rounds=4)
    rows = [0, 1]
    kept = {"b": without(one.examples["b"], rows)}
    two = one.with_examples("b", Examples.join([kept["b"], loud(2, one.examples["b"])])).trained()
    scope = Scope(Change(edit=frozenset("b")), kept)
    assert one.trace != two.trace
    assert forgotten(one, scope, "calibrated").trace != forgotten(two, scope, "calibrated").trace
    assert forgotten(one, scope, "exact").trace == forgotten(two, scope, "exact").trace


# --- what a change touches ----------------------------------------------------------------------------------


def two_stages(handover: str) -> Plan:
    return Plan(3, 2, tuple(Member(c, i) for i, c in enumerate("abcdef")), (Stage(2), Stage(2, handover)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("handover", "cells"), [("lineage", 2), ("fresh", 1), ("merged", 3)])
def test_a_stage_taken_back_taints_the_stages_after_it_by_hand_over_alone(handover: str, cells: int) -> None:
    plan = two_stages(handover)
    taints = plan.affected(Change(away=frozenset({("a", 0)})))
    assert len(taints) == cells
    assert [c for c, taint in taints.items() if not taint.inherited] == [(0, plan.shard_of("a"))]


def test_whoever_is_away_is_absent_in_that_stage_and_nowhere_else() -> None:
    plan = two_stages("lineage").changed(Change(away=frozenset({("a", 0)})))
    shard = plan.shard_of("a")
    assert "a" not in plan.present(0, shard)
    assert "a" in plan.present(1, shard)
    assert plan.changed(Change(away=frozenset({("a", 1)}))).member("a").away == {0, 1}
    assert plan.next_stage(Stage(1)).member("a").present(2)


def test_nobody_who_is_not_enrolled_can_be_away() -> None:
    with pytest.raises(UnknownClient):
        two_stages("lineage").changed(Change(away=frozenset({("x", 0)})))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(frozenset("b")), "before any leaver took part"),
        (Change(edit=frozenset("b")), "before any forgotten example was used"),
        (Change(away=frozenset({("b", 0)})), "before any forgotten part was played"),
    ],
)
def test_the_reason_names_what_was_forgotten(change: Change, words: str) -> None:
    federation = Federation.of(6, shards=2, rounds=3)
    work = prepare_work(method_named("exact"), federation.plan, federation.past, change)
    assert words in assess(method_named("exact"), work, ()).reason


def test_an_edited_client_is_left_out_of_the_first_round_and_trains_again_in_the_others() -> None:
    federation = Federation.of(6, shards=2, rounds=4)
    scope = Scope(Change(edit=frozenset("b")), {"b": without(federation.examples["b"], [0])})
    shard = federation.plan.shard_of("b")
    for method in ("clean", "calibrated"):
        after = forgotten(federation, scope, method, Calibration(length=0.5))
        rosters = [after.past.roster(Place(0, shard, round)) for round in range(4)]
        assert ["b" in roster for roster in rosters] == [False, True, True, True]
