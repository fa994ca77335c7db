"""The past as rounds in memory: what it answers, and what it refuses to make up."""

import numpy as np
import pytest

from fedforget.errors import Unrecoverable
from fedforget.federation import Place
from fedforget.forgetting import Measures, Recorded
from fedforget.forgetting.past import cells, first_where, influences
from fedforget.plan import Influence
from strategies import Federation

HERE = Place(0, 0, 1)


def test_it_answers_from_the_rounds_it_was_given() -> None:
    federation = Federation.of(4, shards=1, rounds=3)
    past, round = federation.past, federation.past.by_place[HERE]
    assert past.rounds((0, 0)) == 3
    assert past.rounds((0, 1)) == 0
    assert (past.kind(HERE), past.source(HERE), past.lost(HERE)) == ("plain", None, ())
    assert past.roster(HERE) == round.roster == ("a", "b", "c", "d")
    assert past.checkpoint(HERE) == past.by_place[Place(0, 0, 0)].model
    assert past.uploads(HERE) == round.uploads
    assert past.final((0, 0)) == past.by_place[Place(0, 0, 2)].model


def test_what_was_never_recorded_is_refused_and_named() -> None:
    past = Recorded({})
    for ask in (past.kind, past.source, past.lost, past.roster, past.checkpoint, past.uploads, past.measures):
        with pytest.raises(
            Unrecoverable, match="stage 0, shard 0, round 1 needs 1 good slices and has 0: it was never recorded"
        ):
            ask(HERE)
    with pytest.raises(Unrecoverable):
        past.final((0, 0))


def test_measures_are_the_lengths_of_the_updates_and_their_mean() -> None:
    federation = Federation.of(4, shards=1, rounds=2)
    round, measures = federation.past.by_place[HERE], federation.past.measures(HERE)
    lengths = {u.client: np.linalg.norm(u.params.vector.astype(float) - round.start.vector) for u in round.uploads}
    assert {c: measures.norm(c) for c in "abcd"} == pytest.approx(lengths)
    assert measures.mean_norm() == pytest.approx(np.mean(list(lengths.values())))
    assert measures.examples == tuple(u.examples for u in round.uploads)
    assert Measures.of(round).gram.shape == (2, 4, 4)


def test_rebuilt_rounds_take_the_place_of_the_old_and_emptied_cells_go() -> None:
    federation = Federation.of(6, shards=3, rounds=2)
    rebuilt = federation.rebuilt("exact", federation.work("exact", federation.plan.present(0, 0)[0]))
    after = federation.past.after(rebuilt, [(0, 2)])
    assert {p.shard for p in after.by_place} == {0, 1}
    assert all(after.by_place[r.place] is r for r in rebuilt)
    assert after.by_place[Place(0, 1, 0)] is federation.past.by_place[Place(0, 1, 0)]


def test_cells_with_rounds_and_the_first_round_of_a_kind() -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    assert cells(federation.plan, federation.past) == ((0, 0), (0, 1), (0, 2))
    after = federation.forget("calibrated", federation.plan.present(0, 0)[0])
    assert first_where(after.past, (0, 0), lambda kind: kind == "calibrated") == 1
    assert first_where(after.past, (0, 1), lambda kind: kind == "calibrated") is None


def test_every_borrowed_length_is_an_influence() -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    assert influences(federation.plan, federation.past) == ()
    after = federation.forget("clean", federation.plan.present(0, 0)[0])
    assert influences(after.plan, after.past) == tuple(Influence((0, 0), r, (0, 1)) for r in (1, 2))
