"""Plan: who is where and takes part when, and what a change touches, as pure functions of a seed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.errors import SettingError, UnknownClient
from fedforget.plan import Cell, Change, Influence, Member, Plan, Stage, Taint
from strategies import NAMES, batches_of_leavers, plans


def places(plan: Plan) -> Iterable[tuple[int, int, int]]:
    return (
        (stage, shard, round)
        for stage in range(len(plan.stages))
        for shard in range(plan.shards)
        for round in range(plan.stages[stage].rounds)
    )


# --- who is where -------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(0, 40), st.integers())
def test_shards_are_even_within_one(shards: int, more: int, seed: int) -> None:
    seed %= 1 << 64
    plan = Plan.of([f"c{i}" for i in range(shards + more)], shards=shards, rounds=1, seed=seed)
    sizes = [len(plan.present(0, s)) for s in range(shards)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == shards + more
    assert all(c in plan.present(0, plan.shard_of(c)) for c in plan.clients)


def test_who_is_seated_where_depends_on_the_seed() -> None:
    seatings = {tuple(Plan.of(NAMES, shards=3, rounds=1, seed=s).shard_of(c) for c in NAMES) for s in range(10)}
    assert len(seatings) == 10


@given(plans(), st.data())
def test_whoever_leaves_moves_nobody_and_leaves_only_its_own_place(plan: Plan, data: st.DataObject) -> None:
    leavers = set(data.draw(batches_of_leavers(plan))[0])
    after = plan.without(leavers)
    assert set(after.clients) == set(plan.clients) - leavers
    assert all(after.shard_of(c) == plan.shard_of(c) for c in after.clients)
    for place in places(plan):
        old, new = set(plan.cohort(*place)), set(after.cohort(*place))
        assert old - leavers <= new
        assert len(new) == min(len(after.present(*place[:2])), plan.participants or len(NAMES))
        if not old & leavers:
            assert new == old


@given(plans(), st.data())
def test_the_next_ranked_step_in(plan: Plan, data: st.DataObject) -> None:
    """With one place more than before, the cohort would have been the same and whoever now steps in."""
    plan = replace(plan, participants=2)
    place = data.draw(st.sampled_from(list(places(plan))))
    wider = replace(plan, participants=3).cohort(*place)
    for leaver in plan.cohort(*place):
        assert set(plan.without({leaver}).cohort(*place)) == set(wider) - {leaver}


@given(plans(max_stages=2))
def test_newcomers_move_nobody_and_membership_is_sticky(plan: Plan) -> None:
    seats = {f"new-{i}": 20 + i for i in range(5)}
    grown = plan.next_stage(Stage(2), join=seats)
    for client in plan.clients:
        assert grown.shard_of(client) == plan.shard_of(client)
    for place in places(plan):
        assert grown.cohort(*place) == plan.cohort(*place)
    stage = len(plan.stages)
    for shard in range(plan.shards):
        joined = {c for c in seats if grown.shard_of(c) == shard}
        assert set(grown.present(stage, shard)) == set(plan.present(stage - 1, shard)) | joined
        assert not joined & set(grown.present(stage - 1, shard))


def test_those_who_leave_at_a_stage_keep_their_seat_and_take_no_part() -> None:
    plan = Plan.of("abcd", shards=2, rounds=2).next_stage(Stage(1), leave=["b"]).next_stage(Stage(1), leave=["b"])
    assert plan.member("b") == Member("b", 1, 0, 1)
    assert [("b" in plan.present(stage, plan.shard_of("b"))) for stage in range(3)] == [True, False, False]


def test_a_shard_that_everybody_left_lives_on_by_lineage_alone() -> None:
    plan = Plan.of("ab", shards=2, rounds=1)
    (away,) = plan.present(0, 0)
    lineage = plan.next_stage(Stage(1), leave=[away]).next_stage(Stage(1))
    assert [lineage.living_shards(stage) for stage in range(3)] == [(0, 1), (0, 1), (0, 1)]
    for handover in ("fresh", "merged"):
        ended = plan.next_stage(Stage(1, handover), leave=[away]).next_stage(Stage(1))
        assert [ended.living_shards(stage) for stage in range(3)] == [(0, 1), (1,), (1,)]
    assert plan.without({away}).living_shards(0) == (1,)


# --- who takes part when ------------------------------------------------------------------------------------


@given(plans())
def test_a_cohort_is_of_those_present_by_name_and_as_many_as_asked(plan: Plan) -> None:
    for place in places(plan):
        cohort, present = plan.cohort(*place), plan.present(*place[:2])
        assert list(cohort) == sorted(set(cohort))
        assert set(cohort) <= set(present)
        assert len(cohort) == min(len(present), plan.participants or len(present))


@given(plans())
def test_drawn_once_a_stage_it_stays_all_stage(plan: Plan) -> None:
    plan = replace(plan, draw="stage")
    for stage, shard, round in places(plan):
        assert plan.cohort(stage, shard, round) == plan.cohort(stage, shard, 0)


def test_drawn_each_round_everybody_gets_a_turn() -> None:
    plan = Plan.of(NAMES, shards=1, rounds=200, participants=3)
    turns = Counter(c for round in range(200) for c in plan.cohort(0, 0, round))
    assert set(turns) == set(NAMES)
    assert max(turns.values()) < 2 * min(turns.values())


@pytest.mark.parametrize("participants", [4, 9, None])
def test_as_many_as_there_are_or_more_is_everybody(participants: int | None) -> None:
    plan = Plan.of("abcd", shards=1, rounds=3, participants=participants)
    assert {plan.cohort(0, 0, r) for r in range(3)} == {("a", "b", "c", "d")}


@given(plans(), st.data())
def test_first_rounds_and_newcomers_tell_the_same_story(plan: Plan, data: st.DataObject) -> None:
    clients = set(data.draw(batches_of_leavers(plan))[0])
    for stage in range(len(plan.stages)):
        for shard in range(plan.shards):
            rounds = range(plan.stages[stage].rounds)
            drawn = [r for r in rounds if clients & set(plan.cohort(stage, shard, r))]
            assert plan.first_round(stage, shard, clients) == min(drawn, default=None)
            newly = [set(plan.newcomers(stage, shard, r)) for r in rounds]
            for round, new in enumerate(newly):
                assert new == {c for c in plan.present(stage, shard) if plan.first_round(stage, shard, {c}) == round}


# --- what a change touches ----------------------------------------------------------------------------------


def by_hand(plan: Plan, clients: set[str], influences: Iterable[Influence], also: Mapping[Cell, int]) -> dict:
    """Follow the data from step to step: "model r" is a cell's model before round r, "uploads r" what round r got."""
    flows: dict[object, set[object]] = {}
    tainted: set[object] = set()
    for stage, shard, round in places(plan):
        cell = (stage, shard)
        flows.setdefault((cell, "model", round), set()).update({(cell, "uploads", round), (cell, "model", round + 1)})
        flows.setdefault((cell, "uploads", round), set()).add((cell, "model", round + 1))
        if clients & set(plan.cohort(*cell, round)) or also.get(cell) == round:
            tainted.add((cell, "uploads", round))
    for influence in influences:
        source, cell, round = influence.source, influence.cell, influence.round
        for earlier in range(round + 1):  # a length may be of the nearest earlier round with uploads in it
            flows.setdefault((source, "uploads", earlier), set()).add((cell, "borrowed", round))
        flows[cell, "borrowed", round] = {(cell, "uploads", round)}
    for stage in range(1, len(plan.stages)):
        for shard in range(plan.shards):
            if plan.stages[stage].handover == "fresh":
                continue
            merged = plan.stages[stage].handover == "merged"
            for donor in range(plan.shards) if merged else [shard]:
                if plan.living(stage - 1, donor):
                    end = ((stage - 1, donor), "model", plan.stages[stage - 1].rounds)
                    flows.setdefault(end, set()).add(((stage, shard), "model", 0))
    frontier = set(tainted)
    while frontier:
        tainted |= frontier
        frontier = {to for node in frontier for to in flows.get(node, ())} - tainted
    found = {}
    for stage, shard, round in places(plan):
        cell = (stage, shard)
        if cell not in found and (cell, "uploads", round) in tainted:
            inherited = (cell, "model", round) in tainted or (cell, "borrowed", round) in tainted
            found[cell] = Taint(round, inherited)
    return found


@settings(max_examples=300)
@given(plans(), st.data())
def test_what_is_affected_is_what_the_data_can_reach(plan: Plan, data: st.DataObject) -> None:
    clients = frozenset(data.draw(batches_of_leavers(plan))[0])
    spots = st.sampled_from(list(places(plan)))
    influences = [
        Influence((stage, shard), round, (stage, data.draw(st.integers(0, plan.shards - 1))))
        for stage, shard, round in data.draw(st.lists(spots, max_size=5))
    ]
    also = {(stage, shard): round for stage, shard, round in data.draw(st.lists(spots, max_size=2))}
    affected = plan.affected(Change(clients), influences, also)
    assert affected == by_hand(plan, set(clients), influences, also)
    assert plan.affected(Change(frozenset(), edit=clients), influences, also) == affected


def test_lineage_stays_in_its_shard_merged_reaches_all_and_fresh_none() -> None:
    plan = Plan.of("abcd", shards=2, rounds=3)
    shard = plan.shard_of("a")
    change = Change(frozenset("a"))
    own = {(0, shard): Taint(0)}
    lineage = plan.next_stage(Stage(1), leave="a")
    assert lineage.affected(change) == {**own, (1, shard): Taint(0, inherited=True)}
    fresh = plan.next_stage(Stage(1, "fresh"), leave="a")
    assert fresh.affected(change) == own
    merged = plan.next_stage(Stage(1, "merged"), leave="a").next_stage(Stage(1))
    everywhere = {(stage, s): Taint(0, inherited=True) for stage in (1, 2) for s in (0, 1)}
    assert merged.affected(change) == {**own, **everywhere}


def test_a_shard_that_ended_hands_nothing_over() -> None:
    """Merged into a stage it has nobody in, a shard begins afresh when somebody joins: nothing came through."""
    plan = Plan.of("ab", shards=2, rounds=1)
    (away,), (stays,) = plan.present(0, 0), plan.present(0, 1)
    plan = plan.next_stage(Stage(1, "merged"), leave=[away]).next_stage(Stage(1), join={"c": 2, "d": 3})
    assert plan.predecessors((2, 0)) == ()
    assert plan.predecessors((2, 1)) == ((1, 1),)
    assert (2, 0) not in plan.affected(Change(frozenset({stays})))


# --- what cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("shards", {"shards": 0}),
        ("participants", {"participants": 0}),
        ("draw", {"draw": "daily"}),
        ("rounds", {"stages": (Stage(0),)}),
        ("handover", {"stages": (Stage(1, "sideways"),)}),
        ("members", {"members": (Member("a", 0), Member("a", 1))}),
        ("seats", {"members": (Member("a", 0), Member("b", 0))}),
    ],
)
def test_a_plan_that_cannot_be_is_refused_by_name(setting: str, change: dict[str, object]) -> None:
    with pytest.raises(SettingError) as refusal:
        replace(Plan.of("abc", shards=1, rounds=1), **change)
    assert refusal.value.setting == setting


def test_there_are_no_more_shards_than_clients() -> None:
    with pytest.raises(SettingError, match="shards is 4, but must be at most the number of clients, 3"):
        Plan.of("abc", shards=4, rounds=1)


def test_unknown_clients_are_named_wherever_they_are_asked_for() -> None:
    plan = Plan.of("abc", shards=1, rounds=1)
    for ask in (
        lambda: plan.member("x"),
        lambda: plan.shard_of("x"),
        lambda: plan.without({"a", "x"}),
        lambda: plan.next_stage(Stage(1), leave=["x"]),
        lambda: plan.affected(Change(frozenset("x"))),
    ):
        with pytest.raises(UnknownClient) as refusal:
            ask()
        assert (refusal.value.clients, refusal.value.known) == (("x",), ("a", "b", "c"))
