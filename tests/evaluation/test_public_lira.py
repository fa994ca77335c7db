"""LiRA held against a public implementation, where that is installed: TensorFlow Privacy's.

    pip install --no-deps tensorflow-privacy==0.8.12

Its attack is plain NumPy and SciPy; only the package around it wants TensorFlow, so the one file is loaded alone.
"""

import importlib.metadata
import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from fedforget.evaluation.lira import lira, log_odds

FILE = "tensorflow_privacy/privacy/privacy_tests/membership_inference_attack/advanced_mia.py"
COUNT, N = 12, 40  # models a side, examples


@pytest.fixture(scope="module")
def public():
    try:
        path = importlib.metadata.distribution("tensorflow-privacy").locate_file(FILE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tensorflow-privacy is not installed")
    if not path.exists():
        pytest.skip("this tensorflow-privacy has no such attack")
    around = ModuleType("tensorflow_privacy.privacy.privacy_tests.utils")
    around.log_loss = None  # another statistic's, not used here
    before = dict(sys.modules)
    try:
        parts = around.__name__.split(".")
        for depth in range(1, len(parts)):
            sys.modules[".".join(parts[:depth])] = ModuleType(".".join(parts[:depth]))
        sys.modules[around.__name__] = around
        spec = importlib.util.spec_from_file_location("public_lira", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name in set(sys.modules) - set(before):
            if name.startswith("tensorflow_privacy"):
                del sys.modules[name]
    return module


@pytest.fixture(scope="module")
def sample():
    random = np.random.default_rng(7)
    members = np.array([random.permutation(2 * COUNT) < COUNT for _ in range(N)]).T
    refs = random.normal(0, 3, N) + 1.5 * members + random.normal(0, 1, (2 * COUNT, N)) * random.uniform(0.5, 2, N)
    return random.normal(0.7, 3, N), refs, members


@pytest.mark.parametrize("variance", ["each", "global"])
def test_scores_are_its_scores(public, sample, variance):
    """It estimates variances by n, we by n − 1: with c models a side that is a known factor on the squares."""
    target, refs, members = sample
    inside = [refs[members[:, i], i][:, None] for i in range(N)]
    outside = [refs[~members[:, i], i][:, None] for i in range(N)]
    theirs = -public.compute_score_lira(
        target[:, None], inside, outside, "both", fix_variance=variance == "global", median_or_mean="mean"
    )
    if variance == "each":
        widths = np.log([np.std(o) / np.std(i) for i, o in zip(inside, outside, strict=True)])
    else:
        apart = [np.concatenate([s - s.mean() for s in side]) for side in (outside, inside)]
        widths = np.log(np.std(apart[0]) / np.std(apart[1]))
    assert np.allclose(lira(target, refs, members, variance=variance), (theirs - widths) * (COUNT - 1) / COUNT + widths)


def test_statistic_is_its_statistic(public):
    random = np.random.default_rng(1)
    logits, labels = random.normal(0, 4, (50, 10)), random.integers(0, 10, 50)
    probabilities = public.convert_logit_to_prob(logits)
    known = public.calculate_statistic(logits.copy(), labels, is_logits=True, option="logit")
    assert np.allclose(log_odds(probabilities, labels), known)
