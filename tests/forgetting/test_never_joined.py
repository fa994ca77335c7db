"""Exact forgetting ends bit-identical to the run the leavers never joined: every round, not only the last."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.federation import Place
from strategies import Federation, batches_of_leavers, federations, finished, life, lived, recorded, wishes

ANY_METHOD = ("exact", "exact", "clean", "clean", "calibrated", "calibrated", "RR")

many_of_them = federations(shards=st.integers(2, 4), clients=st.integers(6, 9))


@settings(max_examples=200)
@given(st.data())
def test_one_batch_after_another_ends_in_the_world_none_of_them_joined(data: st.DataObject) -> None:
    federation = data.draw(federations()).trained()
    batches = data.draw(batches_of_leavers(federation.plan))
    after = federation
    for batch in batches:
        after = after.forget("exact", *batch)
    assert after.trace == federation.without(c for batch in batches for c in batch).trained().trace


@settings(max_examples=60)
@given(st.data())
def test_unsharded_federations_too_by_exact_as_by_retraining_from_scratch(data: st.DataObject) -> None:
    federation = data.draw(federations(shards=st.just(1))).trained()
    (batch, *_) = data.draw(batches_of_leavers(federation.plan))
    never = federation.without(batch).trained().trace
    assert federation.forget("exact", *batch).trace == never
    assert federation.forget("FR", *batch).trace == never


@settings(max_examples=100)
@given(st.data())
def test_forgetting_in_the_midst_of_training_and_training_on_ends_there_too(data: st.DataObject) -> None:
    federation = data.draw(federations())
    asked = data.draw(wishes(federation.plan, ["exact"]))
    assert (
        finished(lived(federation, asked)).trace
        == federation.without(c for w in asked for c in w.leavers).trained().trace
    )


@settings(max_examples=200)
@given(st.data())
def test_after_any_other_method_exact_restarts_from_before_it_so_that_no_earlier_leaver_is_left_either(
    data: st.DataObject,
) -> None:
    federation = data.draw(many_of_them)
    gone: set[str] = set()
    for chapter in life(federation, data.draw(wishes(federation.plan, ANY_METHOD, at_least=2))):
        wish, before, after = chapter.wish, chapter.before, chapter.after
        gone |= set(wish.leavers)
        if wish.method != "exact":
            continue
        touched = before.work("exact", *wish.leavers).taints
        never = recorded(federation.without(gone), after)
        for place, bits in after.trace.items():
            assert bits == (never[place] if place.cell in touched else before.trace[place])


def test_the_leavers_seat_stays_empty_so_that_the_next_ranked_steps_in() -> None:
    federation = Federation.of(8, shards=2, rounds=6, participants=2, seed=3)
    place = next(p for p in sorted(federation.past.by_place) if "c" in federation.past.roster(p))
    after = federation.forget("exact", "c")
    assert len(after.past.roster(place)) == 2
    assert set(federation.past.roster(place)) - {"c"} < set(after.past.roster(place))
    assert "c" not in {c for p in after.past.by_place for c in after.past.roster(Place(*p))}
