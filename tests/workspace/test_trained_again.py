"""A newest model that was lost is trained again from the nearest kept one, and has the digest it had or is refused."""

from pathlib import Path

import pytest
from small import assert_in_order, client, copied, digests, every_digest, opened, reopen, trained

from fedforget.errors import Unrecoverable
from fedforget.workspace import Workspace


@pytest.fixture(scope="module")
def lean(shared_room: Path) -> Path:
    return trained(shared_room / "lean", keep="lean", rounds=12)


def heads(path: Path) -> list[Path]:
    return sorted((path / "holders" / "server.head").rglob("*.slice"))


def flip(file: Path) -> None:
    blob = bytearray(file.read_bytes())
    blob[5] ^= 1
    file.write_bytes(blob)


def test_repair_trains_a_lost_head_of_a_lean_history_again(lean: Path, room: Path) -> None:
    path = copied(lean, room / "w")
    with opened(path) as space:
        before = digests(space)
        for file in heads(path):
            flip(file)
        with pytest.raises(Unrecoverable):
            digests(space)
        report = space.repair()
        assert len(report.repaired) == 2
        assert report.lost == ()
        assert digests(space) == before
        assert_in_order(space)


def test_training_on_makes_lost_heads_again_first_and_no_others(lean: Path, room: Path) -> None:
    """Of all stages, for the new one begins where the one before ended."""
    straight, path = copied(lean, room / "straight"), copied(lean, room / "w")
    for where in (straight, path):
        with opened(where) as space:
            space.open_stage(2)
            if where == path:
                flip(heads(path)[0])
            space.train()
            assert_in_order(space)
    with opened(straight) as one, opened(path) as other:
        assert every_digest(one) == every_digest(other)


def test_a_head_that_cannot_be_trained_again_to_the_same_bits_is_lost_and_said_to_be(lean: Path, room: Path) -> None:
    path = copied(lean, room / "w")
    for file in heads(path):
        file.unlink()
    space = reopen(path)
    task = space.task
    for name in task.examples:
        task.examples[name] = task.examples[client(0)]  # type: ignore[index]
    space.close()
    with Workspace.open(path, task=task) as space:
        assert all("is damaged" in loss for loss in space.repair().lost)
        for file in path.rglob("*.slice"):
            file.unlink()
        begin = space.repair().lost  # from the very beginning, then, and not to the same bits either
        assert any("is damaged" in loss for loss in begin)


def test_rounds_that_plain_training_did_not_make_are_not_trained_again(lean: Path, room: Path) -> None:
    path = copied(lean, room / "w")
    with opened(path) as space:
        shard = space.state().plan.shard_of(client(1))
        space.forget([client(1)], "calibrated")
        for file in path.rglob("*.slice"):
            file.unlink()
        heads_lost = [loss for loss in space.repair().lost if f"stage 0, shard {shard}, round 11" in loss]
        assert any("neither it nor one to train it again from is left" in loss for loss in heads_lost)
