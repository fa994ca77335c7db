"""Clean forgetting: whose lengths are borrowed, whose never are, and what is read of the leaver's past."""

from dataclasses import replace

import numpy as np
import pytest

from fedforget.errors import NoReference, SettingError
from fedforget.examples import Examples
from fedforget.federation import Place
from fedforget.forgetting import Calibration, assess, estimate, method_named
from fedforget.forgetting.clean import references
from fedforget.plan import Plan, Stage
from strategies import NAMES, Federation, Wish, examples_of, lived

CONSTANT = Calibration(length=0.125)


def a_client_of(federation: Federation, shard: int, which: int = 0) -> str:
    return federation.plan.present(0, shard)[which]


def length(round, upload) -> float:
    return float(np.linalg.norm(upload.params.vector.astype(np.float64) - round.start.vector))


def test_each_update_gets_the_mean_length_the_same_round_had_in_the_next_free_shard() -> None:
    federation = Federation.of(9, shards=3, rounds=4)
    work = federation.work("clean", a_client_of(federation, 2))
    assert references(work) == {2: 0}
    prepared, *cleaned = federation.rebuilt("clean", work)
    assert (prepared.kind, prepared.source) == ("prepared", None)
    for round in cleaned:
        assert (round.kind, round.source) == ("clean", 0)
        expected = federation.past.measures(round.place._replace(shard=0)).mean_norm()
        assert [length(round, u) for u in round.uploads] == pytest.approx([expected] * len(round.uploads), rel=1e-5)


def test_or_a_public_constant_which_needs_no_other_shard() -> None:
    federation = Federation.of(5, shards=1, rounds=3)
    _, *cleaned = federation.rebuilt("clean", federation.work("clean", "b"), CONSTANT)
    for round in cleaned:
        assert round.source is None
        assert [length(round, u) for u in round.uploads] == pytest.approx([0.125] * 4, rel=1e-5)
    assert "a public constant, 0.125" in federation.grade("clean", "b", calibration=CONSTANT).reason


def test_the_cohort_is_the_plans_without_the_leaver_so_that_the_next_ranked_steps_in() -> None:
    federation = Federation.of(8, shards=1, rounds=5, participants=2, seed=1)
    (leaver, _) = federation.past.roster(Place(0, 0, 0))
    work = federation.work("clean", leaver)
    _, *cleaned = federation.rebuilt("clean", work, CONSTANT)
    assert all(round.roster == work.after.cohort(*round.place) for round in cleaned)


def test_a_single_shard_has_nobody_to_borrow_from() -> None:
    federation = Federation.of(5, shards=1, rounds=3)
    work = federation.work("clean", "b")
    with pytest.raises(NoReference, match="--length") as refusal:
        federation.rebuilt("clean", work)
    assert refusal.value.shard == 0
    with pytest.raises(NoReference):
        estimate(method_named("clean"), work, federation.settings)


def test_a_shard_with_a_leaver_of_its_own_lends_nothing() -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    assert references(federation.work("clean", a_client_of(federation, 0), a_client_of(federation, 1))) == {0: 2, 1: 2}
    with pytest.raises(NoReference, match="tainted too"):
        references(federation.work("clean", *(a_client_of(federation, s) for s in range(3))))


def test_a_shard_with_an_approximate_residue_lends_nothing() -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    after = federation.forget("calibrated", a_client_of(federation, 1))
    assert references(after.work("clean", a_client_of(federation, 0))) == {0: 2}
    federation = Federation.of(6, shards=2, rounds=3)
    after = federation.forget("calibrated", a_client_of(federation, 1))
    with pytest.raises(NoReference, match="residue"):
        references(after.work("clean", a_client_of(federation, 0)))


def test_nor_one_that_such_a_residue_was_handed_over_to() -> None:
    """(1, 2) is all plain rounds, but began from an average with a calibrated shard; (2, 1) has no such ancestor."""
    seats = Plan.of(NAMES[:9], shards=3, rounds=3)
    leaver, leaving = seats.present(0, 0)[0], seats.present(0, 1)[0]
    newcomers = seats.present(0, 1)[1:]
    members = tuple(
        replace(m, joined=2) if m.client in newcomers else replace(m, left=1) if m.client == leaving else m
        for m in seats.members
    )
    plan = replace(seats, members=members, stages=(Stage(3), Stage(2, "merged"), Stage(2)))
    federation = Federation(plan, {c: examples_of(c, 4) for c in NAMES}).train(0, 3)
    grown = federation.forget("calibrated", leaver).train(1, 2).train(2, 2)
    assert {grown.past.kind(p) for p in grown.past.by_place if p.stage > 0} == {"plain"}
    assert plan.predecessors((2, 1)) == ()
    work = grown.work("clean", newcomers[0])
    assert set(work.taints) == {(2, 1)}
    with pytest.raises(NoReference, match="residue"):
        references(work)


def test_a_shard_that_did_not_exist_in_one_of_the_stages_lends_nothing() -> None:
    plan = Plan.of(NAMES[:6], shards=2, rounds=2)
    plan = plan.next_stage(Stage(2), leave=plan.present(0, 1))
    federation = Federation(plan, {c: examples_of(c, 4) for c in NAMES}).trained()
    with pytest.raises(NoReference, match="not trained as long"):
        references(federation.work("clean", plan.present(0, 0)[0]))


def test_after_a_round_that_nobody_took_part_in_the_nearest_earlier_one_is_measured() -> None:
    """The lender's own clean forgetting left rounds out; what it borrows are the lengths of those it made."""
    federation = Federation.of(9, shards=3, rounds=4)
    thinned = federation.forget("clean", a_client_of(federation, 1), calibration=Calibration(interval=2))
    assert [thinned.past.kind(Place(0, 1, r)) for r in range(4)] == ["prepared", "skipped", "clean", "skipped"]
    work = thinned.work("clean", a_client_of(federation, 0))
    assert references(work) == {0: 1}
    lent = {r.place.round: length(r, r.uploads[0]) for r in thinned.rebuilt("clean", work) if r.kind == "clean"}
    mean = {r: thinned.past.measures(Place(0, 1, r)).mean_norm() for r in (0, 2)}
    assert lent == pytest.approx({1: mean[0], 2: mean[2], 3: mean[2]}, rel=1e-5)


def test_whose_turn_it_is_does_not_depend_on_what_it_sent_lest_the_choice_itself_tell() -> None:
    federation = Federation.of(9, shards=3, rounds=3)
    mad = Examples(np.full((3, 3), np.nan, np.float32), np.zeros(3, np.int64))
    for client in federation.plan.present(0, 1):
        federation = federation.with_examples(client, mad)
    federation = federation.trained()
    assert federation.past.roster(Place(0, 1, 0)) == ()
    with pytest.raises(NoReference, match="shard 1, whose turn it is, has no upload in stage 0 up to 1"):
        references(federation.work("clean", a_client_of(federation, 0)))


def test_a_leaver_who_came_in_at_the_very_last_round_needs_no_lengths() -> None:
    plans = (Plan.of("abcdef", shards=1, rounds=3, participants=1, seed=seed) for seed in range(100))
    plan = next(p for p in plans if p.first_round(0, 0, "a") == 2)
    federation = Federation(plan, {c: examples_of(c, 4) for c in plan.clients}).trained()
    work = federation.work("clean", "a")
    assert references(work) == {}
    assert [r.kind for r in federation.rebuilt("clean", work)] == ["prepared"]


def test_when_everybody_leaves_a_shard_nothing_is_borrowed_for_it() -> None:
    federation = Federation.of(4, shards=2, rounds=2)
    everybody = federation.plan.clients
    work = federation.work("clean", *everybody)
    assert federation.rebuilt("clean", work) == ()
    reason = assess(method_named("clean"), work, ()).reason
    assert "nowhere: no round needed one" in reason


def test_what_was_borrowed_stays_on_record_whatever_is_made_of_those_uploads() -> None:
    """A later forgetting that takes such uploads over, or calibrates by their lengths, borrows still."""
    plans = (Plan.of(NAMES[:10], shards=2, rounds=5, participants=3, seed=seed) for seed in range(200))
    plan = next(p for p in plans if len({p.first_round(0, p.shard_of(c), {c}) for c in p.present(0, 0)}) > 2)
    federation = Federation(plan, {c: examples_of(c, 4) for c in plan.clients}).trained()
    early, *_ = sorted(plan.present(0, 0), key=lambda c: plan.first_round(0, 0, {c}) or 0)
    once = federation.forget("clean", early)
    late = max(once.plan.present(0, 0), key=lambda c: once.plan.first_round(0, 0, {c}) or 0)
    first = once.plan.first_round(0, 0, {late})
    assert (once.past.kind(Place(0, 0, first)), once.past.source(Place(0, 0, first))) == ("clean", 1)
    for method in ("clean", "calibrated"):
        twice = lived(once, [Wish(0, 5, method, (late,), CONSTANT)])
        assert (twice.past.kind(Place(0, 0, first)), twice.past.source(Place(0, 0, first))) == ("prepared", 1)
    assert {twice.past.source(Place(0, 0, r)) for r in range(first, 5)} == {1}


def test_the_constant_has_to_be_a_length() -> None:
    with pytest.raises(SettingError, match="a positive number"):
        Calibration(length=-1.0)
