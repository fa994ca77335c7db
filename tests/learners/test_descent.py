"""Descent: batches, momentum and RapidRetrain's step, against what the formulas say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.examples import Examples
from fedforget.learners.descent import Descent, Gradient, batches, flat, softmax
from fedforget.params import Params

START = Params.of({"w": np.array([1.0, -2.0], np.float32)})
ONE = Examples(np.zeros((1, 1), np.float32), np.zeros(1, np.int64))


def bowl(weights, x, y) -> Gradient:
    """½‖w‖², whose gradient is w; as if two examples had pulled at w ± 1."""
    w = weights["w"]
    return Gradient({"w": w.copy()}, lambda: {"w": w * w + 1})


@given(st.integers(0, 20), st.integers(1, 7), st.integers(1, 3), st.integers(0, 9))
def test_each_epoch_sees_every_example_once_in_an_order_of_its_own(n: int, size: int, epochs: int, seed: int) -> None:
    data = Examples(np.arange(n), np.arange(n))
    seen = list(batches(data, size, epochs, seed))
    rows = [int(i) for batch in seen for i in batch.y]
    assert len(seen) == epochs * -(-n // size)
    assert all(len(batch) <= size for batch in seen)
    for epoch in range(epochs):
        assert sorted(rows[epoch * n : (epoch + 1) * n]) == list(range(n))


def test_the_order_differs_by_epoch_and_by_seed() -> None:
    data = Examples(np.arange(30), np.arange(30))
    orders = [tuple(int(i) for i in batch.y) for seed in (0, 1) for batch in batches(data, 30, 2, seed)]
    assert len(set(orders)) == 4


def test_a_longer_training_begins_as_the_shorter_one_did() -> None:
    data = Examples(np.arange(10), np.arange(10))
    short, long = (list(batches(data, 3, epochs, 4)) for epochs in (1, 2))
    assert [b.y.tolist() for b in long[: len(short)]] == [b.y.tolist() for b in short]


def test_momentum_is_what_the_formula_says() -> None:
    descent = Descent(lr=0.1, momentum=0.5, batch=1)
    w, speed = START["w"].astype(np.float64), 0.0
    for _ in range(3):
        speed = 0.5 * speed + w
        w = w - 0.1 * speed
    assert descent.run(bowl, START, ONE, 3, 0, "sgd")["w"] == pytest.approx(w, rel=1e-6)


def test_rapid_retrains_step_is_what_the_formula_says() -> None:
    descent = Descent(fisher_lr=0.1, betas=(0.9, 0.99), batch=1)
    w, m, v = START["w"].astype(np.float64), 0.0, 0.0
    for t in (1, 2, 3):
        m, v = 0.9 * m + 0.1 * w, 0.99 * v + 0.01 * (w * w + 1)
        w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    assert descent.run(bowl, START, ONE, 3, 0, "fisher")["w"] == pytest.approx(w, rel=1e-4)


def test_speed_does_not_outlive_a_training() -> None:
    """Two trainings of one epoch are not one of two: optimiser state begins and ends in a round."""
    descent = Descent(lr=0.1, batch=1)
    twice = descent.run(bowl, descent.run(bowl, START, ONE, 1, 0, "sgd"), ONE, 1, 0, "sgd")
    assert twice != descent.run(bowl, START, ONE, 2, 0, "sgd")


def test_a_solver_that_needs_second_derivatives_is_refused() -> None:
    with pytest.raises(SettingError, match="solver is 'hutchinson'"):
        Descent().run(bowl, START, ONE, 1, 0, "hutchinson")


@pytest.mark.parametrize(
    ("setting", "value"), [("batch", 0), ("lr", 0.0), ("lr", float("nan")), ("momentum", 1.0), ("momentum", -0.1)]
)
def test_a_descent_that_cannot_be_is_refused_by_name(setting: str, value: float) -> None:
    with pytest.raises(SettingError) as refusal:
        Descent(**{setting: value})
    assert refusal.value.setting == setting


def test_softmax_is_not_afraid_of_large_numbers() -> None:
    rows = softmax(np.array([[1e30, 0, -1e30], [5, 5, 5]], np.float32))
    assert rows == pytest.approx(np.array([[1, 0, 0], [1 / 3] * 3]))
    assert rows.dtype == np.float32


def test_rows_are_flattened_without_a_copy_where_they_can_be() -> None:
    pictures = np.zeros((4, 2, 3), np.float32)
    assert flat(pictures).shape == (4, 6)
    assert np.shares_memory(flat(pictures), pictures)
    assert flat(np.zeros((0, 2, 3))).shape == (0, 6)
    assert flat(np.zeros((2, 3), np.uint8)).dtype == np.float32
