"""ROC, AUC and TPR at low FPR: against scikit-learn, SciPy and what is known of two Gaussians."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm
from sklearn.metrics import roc_auc_score, roc_curve

from fedforget.errors import SettingError
from fedforget.evaluation.curves import Attack, assess_attack, auc, roc, tpr_at


def shifted(d, n, seed=0):
    random = np.random.default_rng(seed)
    scores = np.concatenate([random.normal(d, 1, n), random.normal(0, 1, n)])
    return scores, np.repeat([True, False], n)


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40))
def test_agrees_with_scikit_learn_ties_included(rows):
    scores, members = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    if members.all() or not members.any():
        return
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    found = roc(scores, members)
    assert np.allclose(found.fpr, fpr)
    assert np.allclose(found.tpr, tpr)
    assert auc(scores, members) == pytest.approx(roc_auc_score(members, scores))
    u = mannwhitneyu(scores[members], scores[~members]).statistic
    assert auc(scores, members) == pytest.approx(u / (members.sum() * (~members).sum()))
    for at in (0.01, 0.25, 0.5):
        assert found.tpr_at(at) == pytest.approx(tpr[np.flatnonzero(fpr <= at)].max())


@given(st.lists(st.tuples(st.integers(-40, 40), st.booleans()), min_size=2, max_size=30))
def test_only_the_order_of_scores_matters_and_turning_it_round_mirrors_the_auc(rows):
    scores, members = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    if members.all() or not members.any():
        return
    assert auc(np.exp(scores), members) == auc(scores, members)
    assert auc(-scores, members) == pytest.approx(1 - auc(scores, members))
    assert auc(scores, ~members) == pytest.approx(1 - auc(scores, members))


@pytest.mark.parametrize("d", [0.0, 0.5, 1.0, 2.0])
def test_two_gaussians_a_distance_d_apart(d):
    scores, members = shifted(d, 200_000)
    assert auc(scores, members) == pytest.approx(norm.cdf(d / np.sqrt(2)), abs=0.003)
    for fpr in (0.001, 0.01):
        known = norm.sf(norm.isf(fpr) - d)
        assert tpr_at(scores, members, fpr).tpr == pytest.approx(known, rel=0.1)


def test_thresholds_give_the_rates_they_say():
    scores, members = shifted(1.0, 500)
    curve = roc(scores, members)
    assert curve.thresholds[0] == np.inf
    for i in range(0, len(curve.fpr), 97):
        said = scores >= curve.thresholds[i]
        assert said[members].mean() == pytest.approx(curve.tpr[i])
        assert said[~members].mean() == pytest.approx(curve.fpr[i])


def test_memory_and_blindness():
    members = np.repeat([True, False], 1000)
    memorises = assess_attack(np.repeat([9.0, 0.0], 1000), members, resamples=20)
    assert memorises.auc == 1
    assert memorises.rate(0.001).tpr == 1
    assert memorises.rate(0.01).times_blind == pytest.approx(100)
    assert memorises.apart == 1
    silent = assess_attack(np.zeros(2000), members, resamples=20)
    assert silent.auc == 0.5
    assert silent.interval == (0.5, 0.5)
    assert silent.rate(0.01).tpr == 0, "one score for all: no threshold has a low FPR, and no line is drawn to one"
    assert silent.apart == 0


def test_the_same_scores_on_both_sides_are_blind_to_the_last_bit():
    random = np.random.default_rng(0)
    same = random.standard_normal(1000)
    found = assess_attack(
        np.tile(same, 2), np.repeat([True, False], 1000), groups=np.tile(np.arange(1000), 2), resamples=50
    )
    assert found.auc == 0.5
    assert found.interval == (0.5, 0.5)
    assert [r.tpr for r in found.rates] == [0.001, 0.01]


def test_too_few_non_members_say_nothing_and_why():
    scores, members = shifted(1.0, 999)
    rare, common = assess_attack(scores, members, resamples=5).rates
    assert rare.tpr is None
    assert rare.times_blind is None
    assert rare.interval is None
    assert "999 non-members are too few for an FPR of 0.001: 1000 are needed" in rare.reason
    assert common.tpr is not None
    assert tpr_at(*shifted(1.0, 1000), 0.001).tpr is not None


def test_intervals_are_as_wide_as_sampling_makes_them():
    """The bootstrap of one sample, against the spread over many samples."""
    many = [auc(*shifted(1.0, 150, seed)) for seed in range(300)]
    low, high = assess_attack(*shifted(1.0, 150, 1), resamples=1000).interval
    assert high - low == pytest.approx(2 * 1.96 * np.std(many), rel=0.2)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    truth = norm.cdf(1 / np.sqrt(2))
    covered = 0
    for seed in range(100):
        low, high = assess_attack(*shifted(1.0, 100, seed), resamples=200).interval
        covered += low <= truth <= high
    assert 88 <= covered <= 100


def test_groups_keep_copies_from_looking_like_evidence():
    scores, members = shifted(1.0, 100)
    alone = assess_attack(scores, members, groups=np.arange(200), resamples=500).interval
    copies = np.repeat(scores, 9), np.repeat(members, 9)
    grouped = assess_attack(*copies, groups=np.repeat(np.arange(200), 9), resamples=500).interval
    naive = assess_attack(*copies, resamples=500).interval
    assert grouped == pytest.approx(alone)
    assert (naive[1] - naive[0]) * 2.5 < grouped[1] - grouped[0]


def test_several_namings_are_drawn_apart_and_multiply():
    """The pigeonhole bootstrap's spread of a mean of rows × columns is known: that of both, and of both together."""
    random = np.random.default_rng(3)
    rows, columns = np.divmod(np.arange(400), 20)
    scores = random.normal(0, 1, 20)[rows] + random.normal(0, 1, 20)[columns]
    both = np.concatenate([scores, scores - 100.0])
    members = np.repeat([True, False], 400)
    naming = [np.tile(rows, 2), np.tile(columns, 2)]
    assert assess_attack(both, members, groups=naming, resamples=20, fprs=()).interval == (1.0, 1.0)
    scattered = np.concatenate([scores, random.normal(0, 1, 400)])
    widths = {}
    for name, groups in (("one", naming[0]), ("several", naming)):
        low, high = assess_attack(scattered, members, groups=groups, resamples=400, fprs=()).interval
        widths[name] = high - low
    assert widths["several"] > 1.2 * widths["one"]
    with pytest.raises(SettingError, match="groups"):
        assess_attack(both, members, groups=[naming[0], np.arange(3)])


def test_the_same_seed_gives_the_same_interval():
    sample = shifted(1.0, 50)
    assert assess_attack(*sample, resamples=30, seed=1) == assess_attack(*sample, resamples=30, seed=1)
    assert assess_attack(*sample, resamples=30, seed=1) != assess_attack(*sample, resamples=30, seed=2)


def test_a_draw_of_groups_with_one_kind_only_is_passed_over():
    scores, members = np.array([1.0, 2.0, 0.0, 3.0]), np.array([True, True, False, False])
    found = assess_attack(scores, members, groups=members, resamples=40, fprs=())
    assert found.interval == (0.5, 0.5)
    with pytest.raises(SettingError, match="groups"):
        assess_attack(scores, members, groups=members, resamples=1, seed=3)


@pytest.mark.parametrize(
    ("scores", "members", "more"),
    [
        ([1.0, 2.0], [True], {}),
        ([1.0, np.nan], [True, False], {}),
        ([1.0, 2.0], [True, True], {}),
        ([1.0, 2.0], [False, False], {}),
        ([1.0, 2.0], [True, False], {"level": 1.0}),
        ([1.0, 2.0], [True, False], {"resamples": 0}),
        ([1.0, 2.0], [True, False], {"fprs": (0.0,)}),
        ([1.0, 2.0], [True, False], {"groups": np.array([1])}),
    ],
)
def test_refusals(scores, members, more):
    with pytest.raises(SettingError):
        assess_attack(np.array(scores), np.array(members), **more)


def test_a_rate_nobody_asked_for():
    with pytest.raises(SettingError, match="fpr"):
        Attack(0.5, (0.4, 0.6), (), 10, 10).rate(0.01)
