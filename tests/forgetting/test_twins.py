"""Two runs that differ only in a leaver's data: bit-identical after exact and after clean, not after calibrated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedforget.examples import Examples
from fedforget.federation import Place
from fedforget.forgetting import Calibration, standing
from fedforget.plan import Plan
from strategies import CLASSES, FEATURES, Federation, Wish, examples_of, federations, life, lived, wishes

ANY_METHOD = ("clean", "exact", "clean", "clean", "calibrated", "calibrated", "RR")

many_of_them = federations(shards=st.integers(2, 4), clients=st.integers(6, 9))

# Other values, another size, none at all, and values that drive models out of float32, up to refusing the retained.
OTHER_DATA: Mapping[str, Examples] = {
    "as many, other values": examples_of("other", 4, seed=1),
    "more": examples_of("other", 40, seed=2),
    "none": examples_of("other", 0),
    "loud": examples_of("other", 6, seed=3, scale=1e4),
    "deafening": examples_of("other", 6, seed=4, scale=1e25),
    "beyond float32": examples_of("other", 6, seed=5, scale=1e38),
    "not a number": Examples(np.full((3, FEATURES), np.nan, np.float32), np.arange(3) % CLASSES),
}


other_data = st.sampled_from(sorted(OTHER_DATA)).map(OTHER_DATA.__getitem__)


def twins(federation: Federation, other: Federation, asked: Sequence[Wish]) -> tuple[Federation, Federation]:
    """Both lives. That clean forgetting can refuse (all of a donor's uploads were) is for the operator to see."""
    one, two = list(life(federation, asked)), list(life(other, asked))
    assume([chapter.done for chapter in one] == [chapter.done for chapter in two])
    return one[-1].after, two[-1].after


@settings(max_examples=300)
@given(st.data())
def test_after_a_life_of_forgetting_by_any_methods_a_last_exact_or_clean_one_leaves_nothing_of_its_leavers(
    data: st.DataObject,
) -> None:
    federation = data.draw(many_of_them)
    asked = data.draw(wishes(federation.plan, ANY_METHOD, at_least=2))
    last = replace(asked[-1], method=data.draw(st.sampled_from(["exact", "clean", "FR"])))
    asked = [*asked[:-1], last]
    other = federation
    for leaver in last.leavers:
        other = other.with_examples(leaver, data.draw(other_data))
    one, two = twins(federation, other, asked)
    assert one.trace == two.trace


@settings(max_examples=250)
@given(st.data())
def test_a_shard_that_stands_better_than_approximate_holds_nothing_of_anybody_ever_forgotten(
    data: st.DataObject,
) -> None:
    federation = data.draw(many_of_them)
    asked = data.draw(wishes(federation.plan, ANY_METHOD, at_least=2))
    other = federation
    for leaver in (c for wish in asked for c in wish.leavers):
        other = other.with_examples(leaver, data.draw(other_data))
    one, two = twins(federation, other, asked)
    grades = standing(one.plan, one.past)
    assert grades == standing(two.plan, two.past)
    for place, bits in one.trace.items():
        assert grades[place.shard] == "A" or bits == two.trace[place]


@settings(max_examples=100)
@given(st.data())
def test_a_shard_that_stands_exact_is_the_one_that_nobody_forgotten_ever_joined(data: st.DataObject) -> None:
    federation = data.draw(many_of_them)
    asked = data.draw(wishes(federation.plan, ANY_METHOD, at_least=2))
    after = lived(federation, asked)
    never = federation.without(c for wish in asked for c in wish.leavers).trained().trace
    grades = standing(after.plan, after.past)
    assert all(bits == never[place] for place, bits in after.trace.items() if grades[place.shard] == "X1")


@pytest.mark.parametrize("seed", range(10))
def test_calibrated_forgetting_keeps_a_trace_of_the_leaver_and_this_test_can_see_it(seed: int) -> None:
    federation = Federation.of(6, shards=2, rounds=4, seed=seed)
    other = federation.with_examples("b", OTHER_DATA["as many, other values"]).trained()
    shard = federation.plan.shard_of("b")
    assert federation.past.by_place != other.past.by_place
    for method in ("calibrated", "SE", "FE"):
        one, two = federation.forget(method, "b").trace, other.forget(method, "b").trace
        assert {p for p in one if one[p] != two[p]} >= {p for p in one if p.shard == shard and p.round >= 1}
    for method in ("exact", "clean", "FR"):
        assert federation.forget(method, "b").trace == other.forget(method, "b").trace


def test_a_length_once_borrowed_is_followed_through_a_calibration_after_it() -> None:
    """Shard s borrows from d; calibrating s again keeps those lengths; so whoever leaves d must be cleared from s."""
    federation = Federation.of(9, shards=3, rounds=4)
    s, d = 0, 1
    first, second, _ = federation.plan.present(0, s)
    (donor, *_) = federation.plan.present(0, d)
    asked = [
        Wish(0, 4, "clean", (first,)),
        Wish(0, 4, "calibrated", (second,), Calibration()),
        Wish(0, 4, "exact", (donor,)),
    ]
    assert lived(federation, asked[:1]).past.source(Place(0, s, 2)) == d
    other = federation.with_examples(donor, OTHER_DATA["more"])
    assert lived(federation, asked).trace == lived(other, asked).trace


def test_an_approximate_residue_is_not_laundered_by_taking_over_the_uploads_that_hold_it() -> None:
    """Clean forgetting begins with stored uploads: if those were calibrated by tainted lengths, so is what it makes."""
    shape = {"shards": 1, "rounds": 4, "participants": 2}
    plans = (Plan.of("abcdef", seed=seed, **shape) for seed in range(100))
    plan = next(
        p
        for p in plans
        if p.first_round(0, 0, "a") == 1
        and p.without("a").first_round(0, 0, "b") == 2
        and set(p.cohort(0, 0, 2)) - {"a", "b"}
    )
    federation = Federation(plan, {c: examples_of(c, 5) for c in plan.clients})
    other = federation.with_examples("a", OTHER_DATA["more"])
    asked = [
        Wish(0, 4, "calibrated", ("a",)),
        Wish(0, 4, "clean", ("b",), Calibration(length=0.5)),
    ]
    one, two = lived(federation, asked), lived(other, asked)
    assert one.trace != two.trace
    assert standing(one.plan, one.past) == {0: "A"}
