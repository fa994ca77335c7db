"""The paper's membership attack: F1 of a boosted attacker on sorted softmax vectors. For parity only.

Fitted on the original model, members against non-members; then asked about the forgotten client's data and as many
held-out samples it was not fitted on. An attacker who blindly says "member" with chance q has recall q and
precision ½, so F1 = q/(½ + q): 0.667 for one who always says so, and the paper's 0.5455 is q = 0.6. A low F1 is
no sign of forgetting; a small distance to that of retraining is the most it can show.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingError
from ..seeds import generator

# scikit-learn's histogram boosting. No early stopping: its inner split would spend samples we are short of.
PARAMETERS = {
    "max_iter": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
}


class _Classifier(Protocol):
    def predict(self, X: NDArray[Any]) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False)
class Attacker:
    """A fitted attacker; it answers "member" or not for softmax vectors."""

    classifier: _Classifier
    classes: int

    def members(self, probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        features = _features(probabilities)
        if features.shape[1] != self.classes:
            raise SettingError("classes", features.shape[1], f"as fitted, {self.classes}")
        with _one_thread():
            return np.asarray(self.classifier.predict(features), dtype=bool)


@dataclass(frozen=True)
class F1:
    f1: float
    precision: float
    recall: float
    said_member: float  # q: the share of all answers that are "member"
    blind: float  # the F1 of who blindly says "member" as often
    members: int
    others: int


def fit_attacker(members: NDArray[Any], others: NDArray[Any], *, seed: int = 0) -> Attacker:
    """From the original model's softmax vectors (..., classes) of samples in and not in its training.

    As many of each: the larger side is drawn from without replacement, or the attacker would learn who is more common.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    inside, outside = _features(members), _features(others)
    size = min(len(inside), len(outside))
    if inside.shape[1] != outside.shape[1]:
        raise SettingError("classes", (inside.shape[1], outside.shape[1]), "the same for members and others")
    random = generator(seed, "membership/f1")
    inside, outside = (side[np.sort(random.permutation(len(side))[:size])] for side in (inside, outside))
    answers = np.repeat([True, False], size)
    classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=seed % 2**32, **PARAMETERS)
    with _one_thread():
        classifier.fit(np.concatenate([inside, outside]), answers)
    return Attacker(classifier, inside.shape[1])


def f1_attack(attacker: Attacker, forgotten: NDArray[Any], held_out: NDArray[Any]) -> F1:
    """Ask about the forgotten data and the first as many held-out samples, softmax vectors by the model under test.

    For the caller to see to: none of the held-out samples may be among those the attacker was fitted on, and they
    come in a drawn order, for test sets have one of their own (the first half of MNIST's is the easier one).
    """
    said, false = attacker.members(forgotten), attacker.members(held_out)
    if len(false) < len(said):
        raise SettingError("held-out samples", len(false), f"as many as forgotten ones, {len(said)}")
    return f1_of(said, false[: len(said)])


def f1_of(said_of_members: NDArray[np.bool_], said_of_others: NDArray[np.bool_]) -> F1:
    """From the answers: True where the attacker said "member"."""
    if not len(said_of_members) or len(said_of_members) != len(said_of_others):
        raise SettingError("answers", (len(said_of_members), len(said_of_others)), "as many of members as of others")
    hits, alarms = int(np.sum(said_of_members)), int(np.sum(said_of_others))
    recall = hits / len(said_of_members)
    precision = hits / (hits + alarms) if hits + alarms else 0.0
    f1 = 2 * hits / (hits + alarms + len(said_of_members))
    q = (hits + alarms) / (len(said_of_members) + len(said_of_others))
    return F1(f1, precision, recall, q, blind_f1(q), len(said_of_members), len(said_of_others))


def _one_thread() -> AbstractContextManager[Any]:
    """Boosting's many short parallel loops wait for each other; on a busy machine they mostly wait."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="openmp")
    return limits


def blind_f1(q: float) -> float:
    """q/(½ + q): recall q at precision ½, when members and others are as many."""
    if not 0 <= q <= 1:
        raise SettingError("q", q, "from 0 to 1")
    return q / (0.5 + q)


def _features(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Each vector sorted, largest first: what the attacker sees does not depend on the class."""
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim < 2 or not p.size:
        raise SettingError("probabilities", p.shape, "(..., classes) and not empty")
    return -np.sort(-p.reshape(-1, p.shape[-1]), axis=1)
