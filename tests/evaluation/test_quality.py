"""Accuracy, loss and perplexity, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from fedforget.errors import SettingError
from fedforget.evaluation.quality import TINY, Qualities, Quality, accuracy, confidence, loss, perplexity, quality


def test_agrees_with_scikit_learn():
    random = np.random.default_rng(0)
    p, y = random.dirichlet(np.ones(10), size=200), random.integers(0, 10, 200)
    assert accuracy(p, y) == accuracy_score(y, p.argmax(axis=1))
    assert loss(p, y) == pytest.approx(log_loss(y, p, labels=range(10)))
    assert quality(p, y) == Quality(accuracy(p, y), loss(p, y), 200)


def test_uniform_is_as_unsure_as_there_are_classes():
    p = np.full((4, 6, 65), 1 / 65)
    y = np.zeros((4, 6), int)
    assert perplexity(p, y) == pytest.approx(65)
    assert quality(p, y).perplexity == pytest.approx(65)
    assert quality(p, y).count == 24


def test_text_is_counted_by_character():
    p = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.3, 0.7]]])
    y = np.array([[0, 0], [0, 1]])
    assert accuracy(p, y) == 0.75
    assert np.allclose(confidence(p, y), [[0.9, 0.2], [0.5, 0.7]])
    assert loss(p, y) == pytest.approx(-np.mean(np.log([0.9, 0.2, 0.5, 0.7])))


def test_certain_and_wrong_costs_what_float32_can_hold_not_infinity():
    assert (
        loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(-np.log(TINY)) == pytest.approx(103.28, abs=0.01)
    )


def test_no_such_data_is_none():
    q = Quality(1.0, 0.0, 3)
    assert Qualities(q, None, q).forgotten is None


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (np.ones((2, 3)), np.zeros(3, int)),
        (np.ones((0, 3)), np.zeros(0, int)),
        (np.ones((1, 3)), np.array([3])),
        (np.ones((1, 3)), np.array([-1])),
    ],
)
def test_refusals(p, y):
    with pytest.raises(SettingError):
        quality(p, y)
