"""Triggers: where they are put, and that a real model learns and forgets one."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedforget.engines.local import LocalCohort
from fedforget.errors import SettingError
from fedforget.evaluation.backdoor import Trigger, backdoor, plant, success
from fedforget.evaluation.combination import combine
from fedforget.examples import Examples
from fedforget.federation import Settings, train_all
from fedforget.forgetting import METHODS, Recorded, forget, prepare_work
from fedforget.learners.mlp import MLP
from fedforget.plan import Change, Plan


def test_stamped_where_it_says():
    picture = np.zeros((2, 4, 5), np.uint8)
    marked = Trigger(target=0, value=255, size=2).stamp(picture)
    assert marked.sum() == 2 * 4 * 255
    assert (marked[:, 2:, 3:] == 255).all()
    assert marked.dtype == np.uint8
    assert not picture.any(), "the input is left alone"
    coloured = Trigger(target=0, value=1.0, size=1).stamp(np.zeros((1, 3, 3, 2)))
    assert coloured.sum() == coloured[0, 2, 2].sum() == 2
    flat = Trigger(target=0, value=1.0, size=2).stamp(np.zeros((1, 10)))
    assert flat.tolist() == [[0] * 6 + [1] * 4]


def test_planted_in_as_many_as_asked_for():
    data = Examples(np.zeros((10, 9)), np.arange(10) % 3)
    bad = plant(Trigger(target=2, value=1.0), data, share=0.4, seed=3)
    touched = bad.x.any(axis=1)
    assert touched.sum() == 4
    assert (bad.y[touched] == 2).all()
    assert np.array_equal(bad.y[~touched], data.y[~touched])
    assert not data.x.any()
    assert np.array_equal(plant(Trigger(target=2, value=1.0), data, share=0.4, seed=3).x, bad.x)


def test_success_counts_only_examples_of_other_classes():
    trigger = Trigger(target=1, value=5.0, size=1)
    data = Examples(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), np.array([1, 0, 0, 0]))

    def predict(x):  # obeys the trigger except where the first feature is 3
        obeys = (x[:, -1] == 5.0) & (x[:, 0] < 3)
        return np.stack([~obeys, obeys], axis=1).astype(float)

    assert success(trigger, predict, data) == pytest.approx(2 / 3)


def test_a_real_model_learns_it_and_exact_forgetting_takes_it_out():
    pixels, labels = load_digits(return_X_y=True)
    x = (pixels / 16).astype(np.float32)
    trigger = Trigger(target=0, value=2.0)
    names = [f"c{i}" for i in range(6)]
    data = {c: Examples(x[i * 100 : i * 100 + 100], labels[i * 100 : i * 100 + 100]) for i, c in enumerate(names)}
    data["c3"] = plant(trigger, data["c3"])
    learner, plan = MLP(64, 10), Plan.of(names, shards=2, rounds=4)
    cohort, settings = LocalCohort(learner, data), Settings(epochs=5)
    past = Recorded.of(train_all(cohort, plan, learner, settings))
    work = prepare_work(METHODS["exact"], plan, past, Change(frozenset(["c3"])))
    after = past.after(forget(METHODS["exact"], cohort, learner, work, settings))
    shard = plan.shard_of("c3")

    def answers(rounds):
        return lambda inputs: combine("average", learner, [rounds.final((0, shard))], inputs)

    found = backdoor(trigger, answers(past), answers(after), Examples(x[1000:1400], labels[1000:1400]))
    assert found.before > 0.9
    assert found.after < 0.3


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 9), (2,), (1, 4, 4, 1, 1)])
def test_no_room(shape):
    with pytest.raises(SettingError, match="inputs"):
        Trigger(target=0, value=1.0, size=2).stamp(np.zeros(shape))


def test_refusals():
    with pytest.raises(SettingError, match="size"):
        Trigger(target=0, value=1.0, size=0)
    with pytest.raises(SettingError, match="share"):
        plant(Trigger(target=0, value=1.0), Examples(np.zeros((1, 4)), np.zeros(1)), share=0)
    with pytest.raises(SettingError, match="examples"):
        success(Trigger(target=0, value=1.0), lambda x: x, Examples(np.zeros((1, 4)), np.zeros(1)))
