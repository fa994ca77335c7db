"""What every learner owes the federation, for those that are in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.examples import Examples
from fedforget.federation import Learner
from fedforget.learners.descent import Descent
from fedforget.learners.linear import Softmax
from fedforget.learners.mlp import MLP

LEARNERS = {"softmax": Softmax(4, 3), "perceptron": MLP(4, 3, hidden=6)}
SOLVERS = ("sgd", "fisher")


def blobs(per_class: int = 20, seed: int = 0) -> Examples:
    """Three clouds a line can tell apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), per_class)
    centres = 3 * np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    return Examples((centres[y] + rng.standard_normal((len(y), 4))).astype(np.float32), y)


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Learner:
    return LEARNERS[request.param]


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_learns_what_can_be_learned(learner: Learner, solver: str) -> None:
    start, data = learner.init(1), blobs()
    model = learner.fit(start, data, epochs=30, seed=2, solver=solver)
    right = (learner.predict(model, data.x).argmax(axis=1) == data.y).mean()
    assert right > 0.9


def test_a_model_is_a_function_of_its_seed(learner: Learner) -> None:
    assert learner.init(3) == learner.init(3) != learner.init(4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_training_is_a_function_of_model_examples_epochs_seed_and_solver(learner: Learner, solver: str) -> None:
    start, data = learner.init(0), blobs()
    once = learner.fit(start, data, epochs=2, seed=5, solver=solver)
    learner.fit(learner.init(9), blobs(seed=9), epochs=1, seed=9, solver=solver)
    assert learner.fit(start, data, epochs=2, seed=5, solver=solver) == once
    others = [
        learner.fit(start, data, epochs=2, seed=6, solver=solver),
        learner.fit(start, data, epochs=3, seed=5, solver=solver),
        learner.fit(learner.init(1), data, epochs=2, seed=5, solver=solver),
        learner.fit(start, blobs(seed=1), epochs=2, seed=5, solver=solver),
    ]
    assert once not in others


def test_training_keeps_the_layout_and_leaves_the_start_alone(learner: Learner) -> None:
    start = learner.init(0)
    model = learner.fit(start, blobs(), epochs=1, seed=0)
    assert model.layout == start.layout
    assert model != start == learner.init(0)


@given(st.sampled_from(sorted(LEARNERS)), st.integers(0, 5))
def test_predictions_are_probabilities_one_row_an_input(name: str, count: int) -> None:
    learner = LEARNERS[name]
    rows = learner.predict(learner.init(0), np.ones((count, 4), np.float32))
    assert rows.shape == (count, 3)
    assert rows.sum(axis=1) == pytest.approx(np.ones(count), abs=1e-6)
    assert (rows >= 0).all()


def test_pictures_are_taken_row_by_row(learner: Learner) -> None:
    model, data = learner.init(0), blobs()
    pictures = Examples(data.x.reshape(-1, 2, 2), data.y)
    assert np.array_equal(learner.predict(model, pictures.x), learner.predict(model, data.x))
    assert learner.fit(model, pictures, epochs=1, seed=0) == learner.fit(model, data, epochs=1, seed=0)


def test_without_examples_nothing_is_learned(learner: Learner) -> None:
    start = learner.init(0)
    assert learner.fit(start, blobs().take([]), epochs=3, seed=0) == start


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_that_diverges_comes_back_as_what_it_is_without_a_warning(learner: Learner, solver: str) -> None:
    data = blobs()
    wild = Examples(data.x * np.float32(1e37), data.y)
    assert not learner.fit(learner.init(0), wild, epochs=3, seed=0, solver=solver).is_finite


def test_a_batch_larger_than_the_data_is_all_of_it(learner: Learner) -> None:
    data, wide = blobs(3), Descent(batch=1000)
    whole = type(learner)(4, 3, descent=wide).fit(learner.init(0), data, epochs=1, seed=0)
    assert whole.is_finite
    assert whole != learner.init(0)
