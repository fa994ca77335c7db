"""compat="released" against the public FedEraser loop, written out again on whole tensors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fedforget.federation import Place, Settings, Upload
from fedforget.forgetting import Calibration, Measures
from fedforget.forgetting.calibrated import released_step
from fedforget.params import Params
from fedforget.seeds import derive
from strategies import PERCEPTRON, SOFTMAX, Federation, Here

Tensors = dict[str, np.ndarray]
RELEASED = Calibration(ratio=2, compat="released")


def tensors(model: Params) -> Tensors:
    return {name: value.astype(np.float64) for name, value in model.arrays().items()}


def average_of(models: Sequence[Tensors]) -> Tensors:
    return {name: sum(m[name] for m in models) / len(models) for name in models[0]}


def unlearning_step_once(old_clients: Sequence[Tensors], new_clients: Sequence[Tensors], before: Tensors, now: Tensors):
    """As published: `before` is the stored model *after* the round; lengths by layer, of the mean update."""
    old, new = average_of(old_clients), average_of(new_clients)
    result = {}
    for layer in now:
        step_length = np.linalg.norm(old[layer] - before[layer])
        direction = new[layer] - now[layer]
        result[layer] = now[layer] + step_length * direction / np.linalg.norm(direction)
    return result


def as_published(federation: Federation, leaver: str, epochs: int) -> list[Tensors]:
    plan, past = federation.plan, federation.past

    def retained(round: int) -> list[Upload]:
        return [u for u in past.uploads(Place(0, 0, round)) if u.client != leaver]

    weights = [float(u.examples if federation.settings.weighted else 1) for u in retained(0)]
    first = [tensors(u.params) for u in retained(0)]
    start = {n: sum(w * m[n] for w, m in zip(weights, first, strict=True)) / sum(weights) for n in first[0]}
    models = [start]
    for round in range(1, past.rounds((0, 0))):
        now = Params.of({name: value.astype(np.float32) for name, value in models[-1].items()})
        new = [
            federation.learner.fit(
                now, federation.examples[u.client], epochs=epochs, seed=derive(plan.seed, "fit", 0, 0, round, u.client)
            )
            for u in retained(round)
        ]
        after = past.by_place[Place(0, 0, round)].model
        old = [tensors(u.params) for u in retained(round)]
        models.append(unlearning_step_once(old, [tensors(m) for m in new], tensors(after), models[-1]))
    return models


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", [SOFTMAX, PERCEPTRON])
@pytest.mark.parametrize("participants", [None, 3])
def test_every_model_is_that_of_the_public_code(learner, weighted: bool, participants: int | None) -> None:
    federation = Federation.of(6, shards=1, rounds=5, participants=participants, seed=4)
    federation = replace(federation, learner=learner, settings=Settings(5, weighted)).trained()
    leaver = federation.past.roster(Place(0, 0, 0))[0]
    ours = federation.rebuilt("FE", federation.work("FE", leaver), RELEASED)
    for round, model in zip(ours, as_published(federation, leaver, epochs=3), strict=True):
        for name, value in model.items():
            assert round.model[name] == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_it_is_another_method_than_the_papers() -> None:
    federation = Federation.of(6, shards=1, rounds=4)
    paper, released = (federation.forget("FE", "c", calibration=c) for c in (Calibration(), RELEASED))
    assert paper.past.final((0, 0)) != released.past.final((0, 0))
    assert federation.grade("FE", "c", calibration=RELEASED).grade == "A"


def test_where_the_leaver_moved_as_the_others_did_no_step_is_left_at_all() -> None:
    """The published length is how far the leaver pulled the average: the reason "paper" is the default."""
    start = Params.of({"w": np.zeros(2, np.float32)})
    upload = Upload("a", Params.of({"w": np.array([3, 4], np.float32)}), 1)
    gram = np.ones((1, 2, 2))
    model = released_step(start, [upload], Measures(("a", "b"), (1, 1), gram), frozenset("b"), weighted=False)
    assert model == start


def test_with_nobody_to_ask_the_model_stays() -> None:
    start = Params.of({"w": np.zeros(2, np.float32)})
    stored = Measures(("b",), (1,), np.ones((1, 1, 1)))
    assert released_step(start, [], stored, frozenset("b"), weighted=True) is start


def test_a_layer_whose_mean_update_is_zero_stays() -> None:
    start = Params.of({"w": np.zeros(2, np.float32), "b": np.ones(1, np.float32)})
    upload = Upload("a", Params.of({"w": np.array([1, 0], np.float32), "b": np.ones(1, np.float32)}), 1)
    gram = np.stack([np.diag([0.0, 16.0])] * 2)
    model = released_step(start, [upload], Measures(("a", "b"), (1, 1), gram), frozenset("b"), weighted=False)
    assert (model["w"].tolist(), model["b"].tolist()) == ([2.0, 0.0], [1.0])


def test_a_step_out_of_float32_is_not_taken() -> None:
    start = Params.of({"w": np.zeros(2, np.float32)})
    upload = Upload("a", Params.of({"w": np.ones(2, np.float32)}), 1)
    gram = np.diag([0.0, 1e80])[None]
    stored = Measures(("a", "b"), (1, 1), gram)
    assert released_step(start, [upload], stored, frozenset("b"), weighted=False) is start


def test_a_retained_client_that_is_lost_now_is_still_counted_in_the_old_mean() -> None:
    federation = Federation.of(4, shards=1, rounds=2)
    absent = Here(federation.learner, {c: e for c, e in federation.examples.items() if c != "a"})
    _, round = federation.rebuilt("FE", federation.work("FE", "b"), RELEASED, absent)
    assert round.roster == ("c", "d")
    assert [a.client for a in round.absent if a.lost] == ["a"]
