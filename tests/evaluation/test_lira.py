"""LiRA: against SciPy's densities, and where the answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit as scipy_logit
from scipy.stats import norm

from fedforget.errors import SettingError
from fedforget.evaluation.curves import auc, tpr_at
from fedforget.evaluation.lira import FLOOR, lira, log_odds, logit


def references(models, n, d=0.0, spread=1.0, seed=0):
    """Examples of different hardness; in-models are `d` surer. Returns confidences, masks and the hardness."""
    random = np.random.default_rng(seed)
    hardness = random.normal(0, 3, n)
    members = np.array([random.permutation(models) < models // 2 for _ in range(n)]).T
    return hardness + d * members + spread * random.standard_normal((models, n)), members, hardness


def attacked(n, d, **more):
    """Two targets' log-odds, one that has seen the examples and one that has not."""
    refs, members, hardness = references(n=n, d=d, **more)
    random = np.random.default_rng(99)
    seen, unseen = hardness + d + random.standard_normal(n), hardness + random.standard_normal(n)
    return np.stack([seen, unseen]), refs, members


ANSWERS = np.array([True, False])


def pooled(scores):
    return scores.ravel(), np.repeat(ANSWERS, scores.shape[1])


# --- log-odds -----------------------------------------------------------------------------------------------------


def test_log_odds_are_the_logit_of_the_true_label():
    random = np.random.default_rng(0)
    p, y = random.dirichlet(np.ones(10), size=50), random.integers(0, 10, 50)
    known = scipy_logit(p[np.arange(50), y])
    assert np.allclose(log_odds(p, y), known)
    assert np.allclose(logit(p[np.arange(50), y]), known, atol=1e-6)


def test_log_odds_see_what_one_minus_p_rounds_away():
    p = np.array([[1.0, 1e-30, 1e-30]], np.float32)
    assert log_odds(p, np.array([0])) == pytest.approx(np.log(1 / 2e-30), rel=1e-6)
    assert np.isfinite(log_odds(np.array([[1.0, 0.0]]), np.array([1]))).all()
    assert np.isfinite(logit(np.array([0.0, 1.0]))).all()


def test_text_has_one_number_an_example():
    p = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.2, 0.8]]])
    assert np.allclose(log_odds(p, np.array([[0, 0], [1, 0]])), [np.log(9) / 2, 0.0])


# --- scores -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", ["each", "global"])
def test_online_is_scipys_ratio_of_densities(variance):
    target, refs, members = attacked(6, 1.0, models=20)
    by_hand = np.empty_like(target)
    pools = {side: [refs[members[:, i] == side, i] for i in range(6)] for side in (True, False)}
    for i in range(6):
        density = {}
        for side, own in pools.items():
            deviations = [x - x.mean() for x in own]
            shared = np.sqrt(sum((x**2).sum() for x in deviations) / sum(len(x) - 1 for x in deviations))
            spread = np.std(own[i], ddof=1) if variance == "each" else shared
            density[side] = norm.logpdf(target[:, i], np.mean(own[i]), spread)
        by_hand[:, i] = density[True] - density[False]
    assert np.allclose(lira(target, refs, members, variance=variance), by_hand)


def test_offline_orders_as_the_papers_tail_probability():
    target, refs, members = attacked(200, 1.0, models=40)
    scores = lira(target[0], refs, members, mode="offline", variance="each")
    out = [refs[~members[:, i], i] for i in range(200)]
    tail = np.array([norm.cdf(target[0, i], np.mean(o), np.std(o, ddof=1)) for i, o in enumerate(out)])
    assert np.allclose(norm.cdf(scores), tail)


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("d", [0.5, 1.5])
def test_a_gaussian_shift_gives_its_known_auc_and_tpr(mode, d):
    """With both Gaussians known, the ratio's order is the shift's: AUC Φ(d/√2), TPR Φ̄(Φ̄⁻¹(fpr) − d)."""
    scores = lira(*attacked(20_000, d, models=512), mode=mode, variance="global")
    assert auc(*pooled(scores)) == pytest.approx(norm.cdf(d / np.sqrt(2)), abs=0.01)
    assert tpr_at(*pooled(scores), 0.01).tpr == pytest.approx(norm.sf(norm.isf(0.01) - d), rel=0.15)


def test_hardness_does_not_fool_it_as_it_fools_a_threshold():
    target, refs, members = attacked(5000, 2.0, models=64)
    assert auc(*pooled(target)) < 0.7
    assert auc(*pooled(lira(target, refs, members))) > 0.9


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_model_that_memorises_is_found_out(mode):
    scores = lira(*attacked(2000, 40.0, models=16), mode=mode)
    assert tpr_at(*pooled(scores), 0.001).tpr == 1.0


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_models_that_never_saw_anything_are_a_coin(mode):
    scores = lira(*attacked(5000, 0.0, models=64), mode=mode)
    assert auc(*pooled(scores)) == pytest.approx(0.5, abs=0.02)


@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-20, 20))
def test_scale_shift_and_the_order_of_models_do_not_matter(seed, scale, shift):
    refs, members, hardness = references(12, 5, 1.0, seed=seed)
    plain = lira(hardness, refs, members)
    moved = lira(scale * hardness + shift, scale * refs + shift, members, floor=FLOOR * scale)
    assert np.allclose(plain, moved, atol=1e-6)
    order = np.random.default_rng(seed).permutation(12)
    assert np.allclose(plain, lira(hardness, refs[order], members[order]))


def test_models_that_agree_to_the_last_bit_are_not_infinitely_sure():
    members = np.array([[True], [True], [False], [False]])
    refs = np.array([[1.0], [1.0], [0.0], [0.0]])
    found = lira(np.array([[1.0], [0.0]]), refs, members, variance="each", floor=0.5)
    assert found.tolist() == [[2.0], [-2.0]]  # ±(1/0.5)²/2


def test_variance_is_shared_while_models_are_few():
    for models, like in ((62, "global"), (64, "each")):
        target, refs, members = attacked(30, 1.0, models=models)
        assert np.array_equal(lira(target, refs, members), lira(target, refs, members, variance=like))


def test_both_sides_have_variances_of_one_kind():
    """64 models without and 20 with: shared on both sides, or the ratio compares two kinds of guess."""
    target, refs, members = attacked(30, 1.0, models=84)
    members = np.array([np.random.default_rng(i).permutation(84) < 20 for i in range(30)]).T
    assert np.array_equal(lira(target, refs, members), lira(target, refs, members, variance="global"))
    offline = lira(target, refs, members, mode="offline")
    assert np.array_equal(offline, lira(target, refs, members, mode="offline", variance="each")), "one side is enough"


def test_too_few_reference_models_are_refused_by_name():
    refs, members = np.zeros((3, 2)), np.array([[True, True], [True, False], [False, False]])
    with pytest.raises(SettingError, match="1 without example 0"):
        lira(np.zeros(2), refs, members, variance="each")
    with pytest.raises(SettingError, match="0 with example 1"):
        lira(np.zeros(2), refs, members & [True, False], variance="global")
    with pytest.raises(SettingError, match="2 or more without some example"):
        lira(np.zeros(1), refs[1:, :1], np.array([[True], [False]]), variance="global")
    assert np.isfinite(lira(np.zeros(2), refs, members & [True, False], mode="offline", variance="global")).all()


@pytest.mark.parametrize(
    "more", [{"mode": "both"}, {"variance": "none"}, {"floor": 0.0}, {"target": [1.0]}, {"target": [np.nan, 0.0]}]
)
def test_refusals(more):
    refs, members, _ = references(4, 2)
    target = np.array(more.pop("target", [0.0, 0.0]))
    with pytest.raises(SettingError):
        lira(target, refs, members, **more)
