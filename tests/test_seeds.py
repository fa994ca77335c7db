"""Seeds: pure functions of where they are for, and no two places alike."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedforget.seeds import derive, generator

fields = st.lists(st.one_of(st.integers(), st.text(st.characters(exclude_categories=["Cs"]))), max_size=4)


@given(st.integers(-(2**63), 2**63), fields)
def test_the_same_place_draws_the_same_whatever_was_drawn_before(seed: int, where: list[int | str]) -> None:
    expected = derive(seed, "fit", *where)
    generator(seed, "other").random()
    assert derive(seed, "fit", *where) == expected
    assert generator(seed, "fit", *where).random() == generator(seed, "fit", *where).random()


@given(st.integers(0, 3), fields, fields)
def test_other_places_draw_other_numbers(seed: int, one: list[int | str], two: list[int | str]) -> None:
    assert (derive(seed, "fit", *one) == derive(seed, "fit", *two)) == (one == two)


def test_fields_do_not_run_into_one_another() -> None:
    places = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (1, 2), (12,), ("1", "2"), ("12",), ("1", 2), ()]
    assert len({derive(0, "x", *where) for where in places}) == len(places)
    assert derive(0, "x", "y") != derive(0, "y", "x")


def test_seed_and_purpose_count() -> None:
    assert len({derive(seed, purpose) for seed in (-1, 0, 1) for purpose in ("fit", "init")}) == 6


def test_a_number_is_the_same_number_whoever_counted_it() -> None:
    assert derive(np.int64(7), "fit", np.int64(3)) == derive(7, "fit", 3) != derive(7, "fit", "3")


def test_the_bits_are_settled_for_good() -> None:
    """They go into every model ever made: were they to change, nothing recorded could be replayed."""
    assert derive(0, "init", 0) == 10413494234687370174
    assert generator(5, "order", 1).integers(0, 100, 5).tolist() == [18, 16, 9, 6, 64]
