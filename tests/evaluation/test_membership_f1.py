"""The paper's F1, beside the F1 of guessing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from fedforget.errors import SettingError
from fedforget.evaluation.membership_f1 import blind_f1, f1_attack, f1_of, fit_attacker


@pytest.mark.parametrize(("q", "f1"), [(0.0, 0.0), (0.5, 0.5), (0.6, 0.5455), (1.0, 2 / 3)])
def test_blind(q, f1):
    assert blind_f1(q) == pytest.approx(f1, abs=1e-4)


@pytest.mark.parametrize("q", [0.1, 0.6, 0.9])
def test_blind_is_what_guessing_gets(q):
    random = np.random.default_rng(0)
    guesses = f1_of(random.random(200_000) < q, random.random(200_000) < q)
    assert guesses.f1 == pytest.approx(blind_f1(q), abs=0.005)
    assert guesses.blind == pytest.approx(blind_f1(q), abs=0.005)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_agrees_with_scikit_learn(answers):
    members, others = np.array(answers).T
    truth, said = np.repeat([True, False], len(answers)), np.concatenate([members, others])
    found = f1_of(members, others)
    assert found.f1 == pytest.approx(f1_score(truth, said, zero_division=0))
    assert found.precision == pytest.approx(precision_score(truth, said, zero_division=0))
    assert found.recall == pytest.approx(recall_score(truth, said, zero_division=0))
    assert found.said_member == pytest.approx(said.mean())


def softmax_vectors(sure, n, seed, classes=10):
    """Vectors whose largest entry is about `sure`, at a random class."""
    random = np.random.default_rng(seed)
    top = np.clip(random.normal(sure, 0.02, (n, 1)), 0.2, 1)
    rest = random.dirichlet(np.ones(classes - 1), n) * (1 - top)
    return random.permuted(np.hstack([top, rest]), axis=1)


def test_an_overconfident_model_is_found_out_and_one_that_forgot_is_a_guess():
    attacker = fit_attacker(softmax_vectors(0.95, 900, 0), softmax_vectors(0.6, 300, 1))
    held_out = softmax_vectors(0.6, 400, 2)
    memorised = f1_attack(attacker, softmax_vectors(0.95, 300, 3), held_out)
    assert memorised.f1 > 0.98
    assert (memorised.members, memorised.others) == (300, 300)
    forgotten = f1_attack(attacker, softmax_vectors(0.6, 300, 4), held_out)
    assert forgotten.recall < 0.05


def test_nothing_to_tell_by_is_blind():
    attacker = fit_attacker(softmax_vectors(0.8, 1000, 0), softmax_vectors(0.8, 1000, 1))
    found = f1_attack(attacker, softmax_vectors(0.8, 2000, 2), softmax_vectors(0.8, 2000, 3))
    assert found.f1 == pytest.approx(found.blind, abs=0.03)


def test_classes_have_no_names_for_the_attacker_and_a_seed_fixes_it():
    inside, outside = softmax_vectors(0.9, 200, 0), softmax_vectors(0.7, 350, 1)
    asked = softmax_vectors(0.8, 100, 2)
    attacker, again = fit_attacker(inside, outside, seed=5), fit_attacker(inside, outside, seed=5)
    assert np.array_equal(attacker.members(asked), again.members(asked))
    assert np.array_equal(attacker.members(asked), attacker.members(asked[:, ::-1]))


def test_as_many_are_asked_about_on_both_sides():
    attacker = fit_attacker(softmax_vectors(0.95, 300, 0), softmax_vectors(0.6, 300, 1))
    gone, others = softmax_vectors(0.95, 50, 4), softmax_vectors(0.6, 200, 3)
    found = f1_attack(attacker, gone, others)
    assert (found.members, found.others) == (50, 50)
    assert found == f1_attack(attacker, gone, others[:50]), "the rest are not looked at"


def test_text_is_asked_character_by_character():
    inside, outside = softmax_vectors(0.95, 240, 0), softmax_vectors(0.6, 240, 1)
    flat = fit_attacker(inside, outside)
    text = fit_attacker(inside.reshape(24, 10, 10), outside.reshape(24, 10, 10))
    asked = softmax_vectors(0.8, 60, 2)
    assert np.array_equal(flat.members(asked), text.members(asked.reshape(6, 10, 10)))


def test_refusals():
    attacker = fit_attacker(softmax_vectors(0.95, 30, 0), softmax_vectors(0.6, 30, 1))
    with pytest.raises(SettingError, match="held-out"):
        f1_attack(attacker, softmax_vectors(0.9, 5, 0), softmax_vectors(0.9, 4, 0))
    with pytest.raises(SettingError, match="classes"):
        attacker.members(softmax_vectors(0.9, 5, 0, classes=3))
    with pytest.raises(SettingError, match="classes"):
        fit_attacker(softmax_vectors(0.9, 5, 0), softmax_vectors(0.9, 5, 0, classes=3))
    with pytest.raises(SettingError, match="answers"):
        f1_of(np.array([True]), np.array([], bool))
    with pytest.raises(SettingError, match="q"):
        blind_f1(1.5)
    with pytest.raises(SettingError, match="probabilities"):
        attacker.members(np.zeros((0, 10)))
