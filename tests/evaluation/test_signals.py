"""Signals: each example by its owner's shard and by the ensemble, and what an attacker makes of them."""

import numpy as np
import pytest
from scipy.special import logit as scipy_logit
from scipy.stats import norm

from fedforget.errors import SettingError
from fedforget.evaluation.audit import CLIENTS_ENOUGH, Prosecution, tell_apart
from fedforget.evaluation.curves import assess_attack
from fedforget.evaluation.lira import lira
from fedforget.evaluation.rmia import Population, rmia
from fedforget.evaluation.signals import ask, listen, typical
from fedforget.examples import Examples
from fedforget.learners.linear import Softmax

LEARNER = Softmax(3, 3)


def data(seed=0):
    random = np.random.default_rng(seed)
    return {c: Examples(random.standard_normal((4, 3)), random.integers(0, 3, 4)) for c in ("a", "b", "c")}


def models():
    return {s: LEARNER.fit(LEARNER.init(s), data(s)["a"], epochs=3, seed=s) for s in (0, 1)}


MINE = data()
TEST = data(9)["a"]
SHARDS = {"a": 0, "b": 1, "c": 0}


def test_every_example_is_asked_of_its_owners_shard_and_of_all():
    questions = ask(SHARDS, MINE, TEST)
    assert questions.owners.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert questions.shards.tolist() == [0] * 4 + [1] * 4 + [0] * 4
    made = models()
    found = listen(LEARNER, made, questions)
    for at, (client, shard) in enumerate(SHARDS.items()):
        x, y = MINE[client].x, MINE[client].y
        own = LEARNER.predict(made[shard], x)[np.arange(4), y]
        served = np.mean([LEARNER.predict(made[s], x)[np.arange(4), y] for s in (0, 1)], axis=0)
        mine = slice(4 * at, 4 * at + 4)
        assert found.confidence["shard"][mine] == pytest.approx(own)
        assert found.log_odds["shard"][mine] == pytest.approx(scipy_logit(own.astype(float)), rel=1e-4)
        assert found.confidence["served"][mine] == pytest.approx(served)
    for shard in (0, 1):
        outside = LEARNER.predict(made[shard], TEST.x)[np.arange(4), TEST.y]
        assert found.population[shard] == pytest.approx(outside)
    assert found.served_population == pytest.approx(np.mean([found.population[s] for s in (0, 1)], axis=0))


def test_a_model_met_before_is_not_asked_again():
    questions, memo, made = ask(SHARDS, MINE, TEST), {}, models()
    first = listen(LEARNER, made, questions, memo)
    assert set(memo) == {m.digest for m in made.values()}
    memo[made[0].digest] = tuple(p[::-1] for p in memo[made[0].digest])
    again = listen(LEARNER, made, questions, memo)
    assert not np.array_equal(first.log_odds["shard"], again.log_odds["shard"])


def test_text_has_one_confidence_an_example():
    p = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    assert typical(p, np.array([[0, 0]])) == pytest.approx([np.sqrt(0.9 * 0.4)])


def test_refusals():
    with pytest.raises(SettingError, match="clients"):
        ask({"x": 0}, MINE, TEST)
    questions = ask(SHARDS, MINE, TEST)
    with pytest.raises(SettingError, match="shards"):
        listen(LEARNER, {0: models()[0]}, questions)


# --- the attacks on them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["shard", "served"])
def test_a_prosecution_scores_as_its_attacks_do(view):
    questions = ask(SHARDS, MINE, TEST)
    answers = [listen(LEARNER, models_of(seed), questions) for seed in range(8)]
    members = np.array([np.random.default_rng(i).permutation(8) < 4 for i in range(12)]).T
    target = listen(LEARNER, models_of(99), questions)
    case = Prosecution(questions, answers, members)
    chosen = questions.owners != 1
    refs = np.array([a.log_odds[view] for a in answers])[:, chosen]
    for name, mode in (("LiRA", "online"), ("LiRA offline", "offline")):
        known = lira(target.log_odds[view][chosen], refs, members[:, chosen], mode=mode)
        assert np.allclose(case.scores(name, view, target, chosen), known)
    # Shard by shard: an example of shard 0 is compared with the population as shard 0's models see it.
    mine = questions.owners == 1
    z = [a.served_population if view == "served" else a.population[1] for a in (target, *answers)]
    confidences = np.array([a.confidence[view] for a in answers])[:, mine]
    known = rmia(target.confidence[view][mine], confidences, members[:, mine], Population(z[0], np.array(z[1:])))
    everything = case.scores("RMIA", view, target, np.ones(12, bool))
    assert np.array_equal(everything[mine], known)
    assert np.array_equal(case.scores("RMIA", view, target, mine), known)


def models_of(seed):
    random = np.random.default_rng(seed)
    return {s: LEARNER.fit(LEARNER.init(s), data(int(random.integers(99)))["b"], epochs=2, seed=s) for s in (0, 1)}


# --- intervals ------------------------------------------------------------------------------------------------------


def crossed(random, trainings=8, owners=10, each=12, d=0.7):
    """Scores with a shift of the training and one of the owner, both shared by what belongs to them."""
    shift = random.normal(0, 0.6, (trainings, 1, 1)) + random.normal(0, 0.6, (1, owners, 1))
    scores = lambda mean: (mean + shift + random.standard_normal((trainings, owners, each))).reshape(trainings, -1)  # noqa: E731
    return scores(d), (random.standard_normal((trainings, owners * each))), np.repeat(np.arange(owners), each)


def test_intervals_cover_the_truth_although_trainings_and_owners_each_move_together():
    """World ~ N(0.7, 1 + 2·0.6²), never ~ N(0, 1): AUC Φ(0.7/√2.72). Drawing single scores would cover far less."""
    truth = norm.cdf(0.7 / np.sqrt(2 + 2 * 0.36))
    covered = naive = 0
    for seed in range(60):
        world, never, owners = crossed(np.random.default_rng(seed))
        low, high = tell_apart(world, never, owners, resamples=150, fprs=()).interval
        covered += low <= truth <= high
        scores, members = np.concatenate([world.ravel(), never.ravel()]), np.repeat([True, False], world.size)
        low, high = assess_attack(scores, members, resamples=150, fprs=()).interval
        naive += low <= truth <= high
    assert covered >= 50
    assert naive <= 25


def test_few_owners_are_not_drawn_but_their_examples_are():
    random = np.random.default_rng(0)
    world, never = random.normal(1, 1, (1, 60)), random.standard_normal((1, 60))
    low, high = tell_apart(world, never, np.zeros(60, int), resamples=50).interval
    assert low < high, "one owner drawn from one owner would never vary"
    many = np.arange(60) % CLIENTS_ENOUGH
    assert tell_apart(world, never, many, resamples=50).interval != (low, high)
