"""The four real data sets through every verb, coded and not: init, train, forget, verify, evaluate."""

from pathlib import Path

import pytest

from fedforget.manifest import Keeping
from fedforget.workspace import FederationSettings, Workspace

pytest.importorskip("torch")

KEEPINGS = {
    "coded": Keeping("shard", "full", 20, 10),
    "cross": Keeping("cross", "lean", 10, 2),
    "uncoded": Keeping("server", "full", 1, 1),
}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "kept"),
    [
        ("mnist", "coded"),
        ("mnist", "cross"),
        ("mnist", "uncoded"),
        ("fashion-mnist", "coded"),
        ("cifar10", "coded"),
        ("shakespeare", "cross"),
    ],
)
def test_a_real_task_forgets_exactly(tmp_path: Path, real_data: Path, task: str, kept: str) -> None:
    settings = FederationSettings(
        task=task,
        clients=100,
        shards=2,
        participants=1,
        rounds=2,
        epochs=1,
        partition="buckets" if task == "shakespeare" else "iid",
        keeping=KEEPINGS[kept],
    )
    with Workspace.init(tmp_path / "w", settings, data=real_data) as space:
        space.train()
        leaver = space.state().plan.cohort(0, 0, 1)[0]
        outcome = space.forget([leaver])
        assert outcome.guarantee.grade == "X1"
        assert {r.shard for r in outcome.touches} == {0}
        assert outcome.before["1"] == outcome.after["1"]
        report = space.verify(replay=1, never_joined=True)
        assert report.passed, [c for c in report.checks if not c.passed]
        scores = space.evaluate()
    assert {s.model for s in scores.scores} == {"shard 0", "shard 1", "average", "ensemble", "vote"}
    chance = 1 / 65 if task == "shakespeare" else 0.1
    assert scores.score("ensemble").test_accuracy > chance


@pytest.mark.data
def test_plain_learners_get_pixels_as_numbers(tmp_path: Path, real_data: Path) -> None:
    settings = FederationSettings(
        task="mnist", learner="softmax", clients=20, shards=2, participants=2, rounds=1, epochs=1
    )
    with Workspace.init(tmp_path / "w", settings, data=real_data) as space:
        space.train()
        assert space.evaluate().score("ensemble").test_accuracy > 0.7
