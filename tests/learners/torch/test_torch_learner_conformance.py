"""What every learner owes the federation, whatever it is made of."""

import numpy as np
import pytest
from tiny import LEARNERS, TEXT, examples_for, loss

from fedforget.errors import SettingError
from fedforget.federation import Learner, Solver
from fedforget.learners.torch import SGD, NanoGPT

SMOOTH = ("cnn", "nanogpt", "module")


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Learner:
    return LEARNERS[request.param]


def test_init_is_a_function_of_the_seed(learner: Learner) -> None:
    assert learner.init(1) == learner.init(1)
    assert learner.init(1) != learner.init(2)
    assert learner.init(1).layout == learner.init(2).layout


def test_fit_is_a_function_of_its_arguments(learner: Learner) -> None:
    begin, mine = learner.init(0), examples_for(learner, "a", 19)
    before = begin.digest
    once = learner.fit(begin, mine, epochs=2, seed=5)
    assert once == learner.fit(begin, mine, epochs=2, seed=5)
    assert once != learner.fit(begin, mine, epochs=2, seed=6)
    assert once != learner.fit(begin, mine, epochs=1, seed=5)
    assert once != learner.fit(begin, examples_for(learner, "b", 19), epochs=2, seed=5)
    assert once.layout == begin.layout
    assert learner.init(0).digest == before  # nothing was written to


def test_fit_learns(learner: Learner) -> None:
    mine, other = examples_for(learner, "a", 120), examples_for(learner, "b", 60)
    begin = learner.init(0)
    end = learner.fit(begin, mine, epochs=10, seed=1)
    assert loss(learner, end, other) < 0.7 * loss(learner, begin, other)


def test_predictions_are_probabilities_of_each_example_alone(learner: Learner) -> None:
    params, x = learner.init(0), examples_for(learner, "a", 9).x
    chance = learner.predict(params, x)
    assert chance.dtype == np.float32
    assert len(chance) == 9
    np.testing.assert_allclose(chance.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(learner.predict(params, x[3:5]), chance[3:5], rtol=1e-4)
    assert len(learner.predict(params, x[:0])) == 0


def test_a_single_example_is_enough(learner: Learner) -> None:
    end = learner.fit(learner.init(0), examples_for(learner, "a", 1), epochs=1, seed=0)
    assert end.is_finite


@pytest.mark.parametrize("solver", ["fisher", "hutchinson"])
@pytest.mark.parametrize("name", SMOOTH)
def test_rapid_retraining_learns_and_repeats(name: str, solver: Solver) -> None:
    learner = LEARNERS[name]
    begin, mine = learner.init(0), examples_for(learner, "a", 60)
    end = learner.fit(begin, mine, epochs=4, seed=1, solver=solver)
    assert end == learner.fit(begin, mine, epochs=4, seed=1, solver=solver)
    assert end != learner.fit(begin, mine, epochs=4, seed=1)
    assert loss(learner, end, mine) < loss(learner, begin, mine)


@pytest.mark.parametrize("name", ["cnn", "nanogpt", "module"])
def test_an_unknown_solver_is_refused(name: str) -> None:
    learner = LEARNERS[name]
    with pytest.raises(SettingError, match="solver"):
        learner.fit(learner.init(0), examples_for(learner, "a", 3), epochs=1, seed=0, solver="newton")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"lr": 0.0}, {"fisher_lr": -1.0}, {"momentum": 1.0}, {"betas": (0.9, 1.0)}, {"epsilon": 0}]
)
def test_settings_nobody_can_walk_with_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        SGD(**wrong)  # type: ignore[arg-type]


def test_a_text_longer_than_the_context_is_refused() -> None:
    short = NanoGPT(TEXT.vocabulary, context=2)
    with pytest.raises(SettingError, match="examples"):
        short.fit(short.init(0), examples_for(TEXT, "a", 3), epochs=1, seed=0)
