"""`status` and `evaluate`: where the federation stands and what its models are worth."""

from pathlib import Path

import numpy as np
import pytest
from small import EVERY_KEEPING, METHODS, client, digests, make, opened, small_task, trained
from worlds import contents, shards_of

from fedforget.errors import SettingError
from fedforget.evaluation.combination import combine
from fedforget.evaluation.quality import accuracy, loss
from fedforget.slices import HEAD, SERVER


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_the_bytes_said_to_be_stored_are_those_that_lie_there(room: Path, layout: str, keep: str) -> None:
    path = trained(room / "w", layout, keep)  # type: ignore[arg-type]
    with opened(path) as space:
        status = space.status()
        held = {
            holder.name: sum(p.stat().st_size for p in holder.rglob("*") if p.is_file())
            for holder in (path / "holders").iterdir()
        }
        server = held.pop(SERVER, 0) + held.pop(HEAD)
        assert status.server_bytes == server
        assert status.holder_bytes == max(held.values(), default=0)
        assert status.total_bytes == server + sum(held.values())
        assert (status.layout, status.history) == (layout, keep)
        assert status.holders == (1 if layout == "server" else len(held))


def test_it_says_task_learner_stage_and_every_shard(room: Path) -> None:
    with opened(trained(room / "w")) as space:
        status = space.status(members=True)
        assert (status.task, status.learner, status.stage, status.handover) == ("digits", "softmax", 0, "lineage")
        assert status.federation == "small"
        assert [(s.shard, s.clients, s.rounds, s.of, s.generation, s.standing) for s in status.shards] == [
            (0, 4, 3, 3, 0, "X1"),
            (1, 4, 3, 3, 0, "X1"),
        ]
        assert {s.shard: s.digest for s in status.shards} == digests(space)
        assert dict(status.members) == {c: s for s, members in shards_of(space).items() for c in members}
        assert status.codes == ("rs8/3/2/0",)
        assert space.status().members == ()


def test_generation_epoch_and_requests_grow_with_each_forgetting(room: Path) -> None:
    with opened(trained(room / "w")) as space:
        for at in range(1, 4):
            report = space.forget([client(at)])
            status = space.status()
            assert (status.epoch, status.requests) == (at, at)
            assert len(status.forgotten) == at
            for reach in report.touches:
                assert status.shards[reach.shard].generation == at


def test_looking_changes_nothing(room: Path) -> None:
    path = trained(room / "w")
    before = contents(path)
    with opened(path) as space:
        space.status(members=True)
        space.evaluate()
    assert contents(path) == before


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_those_of_the_models_served(room: Path, method: str) -> None:
    with opened(trained(room / "w", clients=12, shards=3), seats=12) as space:
        space.forget([client(0)], method)
        task = small_task(12)
        models = list(space.state().served().values())
        report = space.evaluate()
        assert [s.model for s in report.scores] == ["shard 0", "shard 1", "shard 2", "average", "ensemble", "vote"]
        assert report.test_examples == len(task.test)
        for kind in ("average", "ensemble", "vote"):
            said = combine(kind, task.learner, models, task.test.x)
            assert report.score(kind).test_accuracy == pytest.approx(accuracy(said, task.test.y))
            assert report.score(kind).test_loss == pytest.approx(loss(said, task.test.y), rel=1e-6)
        said = task.learner.predict(models[1], task.test.x)
        assert report.score("shard 1").test_accuracy == accuracy(said, task.test.y)
        gone = task.examples[client(0)]
        said = task.learner.predict(models[1], gone.x)
        assert report.score("shard 1").forgotten_accuracy == accuracy(said, gone.y)
        assert all(s.retained_accuracy is not None for s in report.scores)


def test_where_nobody_was_forgotten_there_is_no_such_score(room: Path) -> None:
    with opened(trained(room / "w")) as space:
        assert {s.forgotten_accuracy for s in space.evaluate().scores} == {None}


def test_before_training_the_initial_model_is_scored(room: Path) -> None:
    with make(room / "w") as space:
        scores = space.evaluate().scores
        assert len({s.test_loss for s in scores if s.model.startswith("shard")}) == 1
        assert all(np.isfinite(s.test_loss) for s in scores)


def test_progress_counts_the_models(room: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with opened(trained(room / "w")) as space:
        space.evaluate(lambda *now: told.append(now))
    assert told == [("evaluating", at, 3) for at in range(3)]


def test_an_unknown_score_is_no_score(room: Path) -> None:
    with opened(trained(room / "w")) as space, pytest.raises(SettingError, match="shard 0, shard 1, average"):
        space.evaluate().score("oracle")
