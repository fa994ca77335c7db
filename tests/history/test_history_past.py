"""The history answers what forgetting asks; what it does not have it names."""

from dataclasses import replace

import pytest
from kept import Kept, small_kept

from fedforget.errors import Damaged, Unrecoverable
from fedforget.federation import Absence, Place
from fedforget.forgetting import Recorded
from fedforget.manifest import Keeping
from fedforget.params import Params
from fedforget.slices import HEAD

FULL, LEAN = Keeping("shard", "full", 4, 2), Keeping("shard", "lean", 4, 2)


@pytest.mark.parametrize("layout", ["shard", "cross", "server"])
def test_it_answers_as_the_rounds_in_memory_do(layout):
    kept = small_kept(Keeping(layout, "full", 4, 2))
    past, memory = kept.past(), Recorded.of(kept.rounds)
    for made in kept.rounds:
        place = made.place
        assert past.kind(place) == memory.kind(place)
        assert past.source(place) is memory.source(place) is None
        assert past.lost(place) == memory.lost(place) == ()
        assert past.roster(place) == memory.roster(place)
        assert past.uploads(place) == memory.uploads(place)
        assert past.checkpoint(place) == memory.checkpoint(place)
        assert past.measures(place).mean_norm() == memory.measures(place).mean_norm()
    for cell in ((0, 0), (0, 1)):
        assert past.rounds(cell) == memory.rounds(cell) == 3
        assert past.final(cell) == memory.final(cell)
    assert past.rounds((4, 0)) == 0


def test_who_was_lost_is_remembered_and_who_was_refused_is_told_apart():
    kept = small_kept(FULL)
    place = kept.rounds[0].place
    absent = (Absence("x", "lost"), Absence("y", "refused: NaN"))
    rows = {**kept.rows, place: replace(kept.rows[place], absent=absent)}
    assert replace(kept, rows=rows).past().lost(place) == ("x",)


def test_a_round_never_recorded_is_named():
    past = small_kept(FULL).past()
    for ask in (past.roster, past.kind, past.checkpoint, past.uploads, past.measures):
        with pytest.raises(Unrecoverable, match="never recorded"):
            ask(Place(3, 0, 0))


def heads_lost(kept: Kept) -> Kept:
    kept.store.delete([key for key in kept.store.keys() if key.holder == HEAD])  # noqa: SIM118
    return kept


def test_a_full_history_does_without_its_newest_models():
    kept = heads_lost(small_kept(FULL))
    for cell in ((0, 0), (0, 1)):
        assert kept.past().final(cell) == Recorded.of(kept.rounds).final(cell)


def test_a_model_needs_the_uploads_it_is_the_mean_of_and_none_of_earlier_rounds():
    kept = heads_lost(small_kept(FULL))
    lost = next(b for b in kept.history if (b.shard, b.round) == (0, 0))
    kept.store.delete(lost.keys)
    past, memory = kept.past(), Recorded.of(kept.rounds)
    assert past.checkpoint(Place(0, 0, 2)) == memory.checkpoint(Place(0, 0, 2))
    with pytest.raises(Unrecoverable):
        past.checkpoint(Place(0, 0, 1))


def test_a_lean_history_says_what_it_does_not_have():
    kept = small_kept(LEAN, rounds=6)
    past, memory = kept.past(), Recorded.of(kept.rounds)
    few = [p for p in memory.by_place if not any(x.kind == "upload" for x in kept.records if x.place == p)]
    assert few
    for place in few:
        with pytest.raises(Unrecoverable, match="lean"):
            past.uploads(place)
    held = [x.place for x in kept.records if x.kind == "start"]
    assert held
    for place in held:
        assert past.checkpoint(place) == memory.checkpoint(place)
    # Without the newest models either, some models are nowhere.
    bare = replace(kept, records={x: r for x, r in kept.records.items() if x.kind != "head"}).past()
    with pytest.raises(Unrecoverable, match="only where it may be needed"):
        bare.final(few[-1].cell)
    with pytest.raises(Unrecoverable):
        heads_lost(kept).past().final(few[-1].cell)


def test_a_record_the_manifest_has_no_slices_of_is_damage():
    kept = small_kept(FULL)
    label = next(iter(kept.records))
    archive = kept.archive
    for spoilt in (replace(archive, records={}), replace(archive, bundles={})):
        with pytest.raises(Damaged, match="a record and its slices"):
            spoilt.open([label])


def test_a_row_that_names_another_model_is_damage():
    kept = small_kept(FULL)
    place = Place(0, 0, 2)
    wrong = replace(kept.rows[place], start_digest="0" * 64, model_digest="1" * 64)
    past = replace(kept, rows={**kept.rows, place: wrong}).past()
    with pytest.raises(Damaged, match="the model before"):
        past.checkpoint(place)
    with pytest.raises(Damaged, match="the model after"):
        past.final((0, 0))


def test_uploads_are_recalled_once_for_two_questions_in_a_row():
    kept = small_kept(FULL)
    past = kept.past()
    first = past.uploads(Place(0, 0, 0))
    assert past.uploads(Place(0, 0, 0)) is first
    past.uploads(Place(0, 0, 1))
    past.uploads(Place(0, 0, 2))
    assert past.uploads(Place(0, 0, 0)) == first
    assert len(past._last) <= 2
    assert all(isinstance(u.params, Params) for u in first)
