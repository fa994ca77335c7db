"""The paper's eq. prepare and eq. retrain: what a calibrated round is, in laws and in examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.federation import FitResult, FitTask, Place, Upload
from fedforget.forgetting import Calibration, Rebuild
from fedforget.forgetting.calibrated import rescale
from fedforget.forgetting.rebuild import from_scratch
from fedforget.params import Params
from fedforget.plan import Change, Taint
from strategies import Federation, Here, examples_of, federations

NOBODY = Change(frozenset())


def step(start: Params, end: Params) -> np.ndarray:
    return end.vector.astype(np.float64) - start.vector


@settings(max_examples=60)
@given(federations(), st.booleans())
def test_with_no_leaver_and_as_many_epochs_calibration_is_plain_training_bit_for_bit(
    federation: Federation, inherited: bool
) -> None:
    federation = federation.trained()
    taints = {cell: Taint(0, inherited) for cell in from_scratch(federation.plan, federation.past)}
    work = Rebuild(federation.plan, federation.plan, NOBODY, federation.past, taints)
    again = federation.rebuilt("calibrated", work, Calibration(ratio=1))
    assert {r.place: r.model for r in again} == {p: r.model for p, r in federation.past.by_place.items()}


@settings(max_examples=60)
@given(st.data())
def test_each_new_update_has_the_length_of_the_stored_one_and_a_direction_of_its_own(data: st.DataObject) -> None:
    federation = data.draw(federations(max_stages=2)).trained()
    leaver = data.draw(st.sampled_from(federation.plan.clients))
    work = federation.work("calibrated", leaver)
    for round in federation.rebuilt("calibrated", work):
        if round.kind != "calibrated":
            continue
        stored = federation.past.measures(round.place)
        for upload in round.uploads:
            size = np.linalg.norm(round.start.vector.astype(np.float64))
            length = np.linalg.norm(step(round.start, upload.params))
            assert length == pytest.approx(stored.norm(upload.client), rel=1e-5, abs=1e-6 * size)


def test_a_calibrated_update_points_where_the_short_training_went() -> None:
    federation = Federation.of(5, shards=1, rounds=2, epochs=4)
    asked: list[FitResult] = []

    @dataclass(frozen=True)
    class Overheard:
        inner: Here

        def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
            for reply in self.inner.fit(tasks):
                asked.append(reply)
                yield reply

    _, round = federation.rebuilt("calibrated", federation.work("calibrated", "c"), None, Overheard(federation.cohort))
    assert [reply.client for reply in asked] == ["a", "b", "d", "e"]
    for reply, upload in zip(asked, round.uploads, strict=True):
        one, two = step(round.start, reply.params), step(round.start, upload.params)
        assert one @ two == pytest.approx(np.linalg.norm(one) * np.linalg.norm(two), rel=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
def test_preparing_averages_the_retained_uploads_of_the_first_round_and_asks_nobody(weighted: bool) -> None:
    federation = Federation.of(5, shards=1, rounds=3)
    federation = replace(federation, settings=replace(federation.settings, weighted=weighted)).trained()
    prepared, *_ = federation.rebuilt("SE", federation.work("SE", "b", "d"))
    kept = [u for u in federation.past.uploads(Place(0, 0, 0)) if u.client in "ace"]
    weights = [u.examples if weighted else 1 for u in kept]
    expected = np.average([u.params.vector.astype(np.float64) for u in kept], axis=0, weights=weights)
    assert prepared.kind == "prepared"
    assert prepared.cost.client_epochs == 0
    assert np.array_equal(prepared.model.vector, expected.astype(np.float32))


def test_the_shard_begins_again_at_the_first_round_the_leaver_was_drawn_in_and_not_before() -> None:
    federation = Federation.of(8, shards=1, rounds=6, participants=2, seed=1)
    leaver = next(c for c in federation.plan.clients if (federation.plan.first_round(0, 0, c) or 0) >= 2)
    first = federation.plan.first_round(0, 0, leaver)
    after = federation.forget("calibrated", leaver)
    for place, round in after.past.by_place.items():
        kind = "plain" if place.round < first else "prepared" if place.round == first else "calibrated"
        assert round.kind == kind


def test_between_two_retained_rounds_nothing_moves_and_nobody_is_asked() -> None:
    federation = Federation.of(4, shards=1, rounds=7)
    rounds = federation.rebuilt("FE", federation.work("FE", "a"), Calibration(interval=3))
    expected = ["prepared", "skipped", "skipped", "calibrated", "skipped", "skipped", "calibrated"]
    assert [r.kind for r in rounds] == expected
    for round in rounds:
        if round.kind == "skipped":
            assert (round.model, round.uploads, round.cost.client_epochs) == (round.start, (), 0)


def test_with_one_shard_the_papers_method_is_federaser() -> None:
    federation = Federation.of(6, shards=1, rounds=4)
    assert federation.forget("SE", "c").trace == federation.forget("FE", "c").trace
    assert federation.forget("SE-uncoded", "c").trace == federation.forget("FE", "c").trace


@dataclass(frozen=True)
class Idle:
    """Clients that send back what they were given."""

    examples: int = 3

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return (FitResult(t.place, t.client, t.params, self.examples) for t in tasks)


def test_an_update_of_length_zero_has_no_direction_and_is_left_out_by_name() -> None:
    federation = Federation.of(3, shards=1, rounds=2)
    _, round = federation.rebuilt("SE", federation.work("SE", "b"), None, Idle())
    assert (round.uploads, round.model) == ((), round.start)
    assert [(a.client, a.lost) for a in round.absent] == [("a", False), ("c", False)]
    assert "length zero" in round.absent[0].why


def test_where_the_stored_update_was_of_length_zero_the_new_one_is_too() -> None:
    federation = Federation.of(3, shards=1, rounds=2)
    idle = federation.trained(Idle())
    _, still = idle.rebuilt("SE", idle.work("SE", "b"), None, Idle())
    _, moved = idle.rebuilt("SE", idle.work("SE", "b"), None, federation.cohort)
    assert still.model == moved.model == moved.start
    assert still.roster == moved.roster == ("a", "c")


def test_an_update_that_its_length_carries_out_of_float32_is_left_out_by_name() -> None:
    start = Params.of({"w": np.zeros(3, np.float32)})
    upload = Upload("a", Params.of({"w": np.ones(3, np.float32)}), 1)
    for length in (1e39, 1e308):
        kept, (absence,) = rescale(start, [upload], [length])
        assert (kept, absence.client, absence.lost) == ((), "a", False)
        assert "leaves float32" in absence.why
    (kept,), _ = rescale(start, [upload], [3.0])
    assert np.linalg.norm(kept.params.vector) == pytest.approx(3.0)


def test_a_tiny_direction_can_still_be_given_any_length() -> None:
    start = Params.of({"w": np.zeros(2, np.float32)})
    upload = Upload("a", Params.of({"w": np.array([1e-45, 0], np.float32)}), 1)
    (kept,), _ = rescale(start, [upload], [1.0])
    assert kept.params["w"].tolist() == [1.0, 0.0]


def test_everybody_leaving_ends_the_shard_without_asking_anybody() -> None:
    federation = Federation.of(4, shards=2, rounds=2)
    leavers = federation.plan.present(0, 1)
    work = federation.work("SE", *leavers)
    assert federation.rebuilt("SE", work) == ()
    assert work.emptied == ((0, 1),)


def test_who_was_not_in_the_stored_round_is_not_asked_to_step_in() -> None:
    federation = Federation.of(8, shards=1, rounds=4, participants=3, seed=2)
    (leaver, *_) = federation.past.roster(Place(0, 0, 0))
    for round in federation.rebuilt("SE", federation.work("SE", leaver)):
        assert set(round.roster) == set(federation.past.roster(round.place)) - {leaver}


@settings(max_examples=30)
@given(federations(max_stages=2), st.integers(2, 4))
def test_a_shorter_training_costs_its_share(federation: Federation, ratio: int) -> None:
    federation = replace(federation, settings=replace(federation.settings, epochs=2 * ratio)).trained()
    leaver = federation.plan.clients[0]
    assume(federation.past.by_place)
    for round in federation.rebuilt("SE", federation.work("SE", leaver), Calibration(ratio=ratio)):
        assert round.cost.client_epochs == (2 * len(round.roster) if round.kind == "calibrated" else 0)


@pytest.mark.parametrize(
    ("full", "ratio", "compat", "epochs"),
    [(10, 2, "paper", 5), (10, 3, "paper", 3), (1, 4, "paper", 1), (5, 2, "released", 3), (5, 10, "released", 1)],
)
def test_how_many_epochs_are_left_of_L(full: int, ratio: float, compat: str, epochs: int) -> None:
    assert Calibration(ratio=ratio, compat=compat).epochs(full) == epochs


@pytest.mark.parametrize(
    ("setting", "value"),
    [("ratio", 0.5), ("ratio", float("nan")), ("interval", 0), ("compat", "mine")]
    + [("length", value) for value in (0.0, -1.0, float("inf"), float("nan"))],
)
def test_a_calibration_that_cannot_be_is_refused_by_name(setting: str, value: object) -> None:
    with pytest.raises(SettingError) as refusal:
        Calibration(**{setting: value})
    assert refusal.value.setting == setting


def test_a_client_whose_data_changes_stays_but_its_stored_first_upload_goes() -> None:
    """A request may touch some samples of a client: it trains on what is left of them."""
    federation = Federation.of(4, shards=1, rounds=3)
    smaller = federation.with_examples("b", examples_of("b", 2))
    change = Change(frozenset(), edit=frozenset("b"))
    taints = federation.plan.affected(change)
    work = Rebuild(federation.plan, federation.plan, change, federation.past, taints)
    prepared, *rest = smaller.rebuilt("calibrated", work)
    assert prepared.roster == ("a", "c", "d")
    assert all(r.roster == ("a", "b", "c", "d") for r in rest)
    again = smaller.rebuilt("exact", work)
    assert [r.model for r in again] == [r.model for _, r in sorted(smaller.trained().past.by_place.items())]
