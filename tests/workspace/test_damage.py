"""A truncated, altered or missing file of each kind: named, with an exit code of its kind, and nothing else lost."""

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from small import (
    Died,
    assert_in_order,
    client,
    copied,
    dies_before,
    digests,
    every_digest,
    opened,
    operations,
    reopen,
    small_task,
    trained,
)
from worlds import contents, refused, world_without

from fedforget.errors import (
    Damaged,
    FedForgetError,
    LedgerTooNew,
    NotAWorkspace,
    Unrecoverable,
)
from fedforget.federation import Place
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace

Spoil = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    """With a forget behind it, so that there are tombstones and two generations."""
    path = trained(shared_room / "pristine")
    with opened(path) as space:
        space.forget([client(0)])
    return path


def cut(blob: bytes) -> bytes:
    return blob[: len(blob) // 2]


def emptied(blob: bytes) -> bytes:
    return b""


def flipped(blob: bytes) -> bytes:
    at = len(blob) * 2 // 3
    return blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


def noise(blob: bytes) -> bytes:
    return random.Random(0).randbytes(len(blob))


def _verbs(space: Workspace) -> tuple[Callable[[], object], ...]:
    return (
        space.status,
        space.evaluate,
        lambda: space.plan([client(1)]),
        space.train,
        space.open_stage,
        lambda: space.forget([client(1)]),
    )


@pytest.mark.parametrize("missing", ["federation.toml", "ledger.db"])
def test_a_directory_without_settings_or_ledger_is_no_workspace(pristine: Path, room: Path, missing: str) -> None:
    path = copied(pristine, room / "w")
    (path / missing).unlink()
    with refused(path, NotAWorkspace, str(path), f"fedforget init {path}"):
        reopen(path)


@pytest.mark.parametrize("path", ["nowhere", "empty", "file", "file/below"])
def test_anything_else_is_no_workspace_either(room: Path, path: str) -> None:
    (room / "empty").mkdir()
    (room / "file").write_text("")
    with refused(room, NotAWorkspace):
        reopen(room / path)


@pytest.mark.parametrize("spoil", [cut, emptied, flipped, noise])
def test_damaged_settings_are_named(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    file = path / "federation.toml"
    file.write_bytes(spoil(file.read_bytes()))
    with refused(path, Damaged, "federation.toml"):
        reopen(path)


@pytest.mark.parametrize(
    ("old", "new"), [("rounds = 3", "rounds = 4"), ("shards = 2", "shards = 9"), ("seed = 1", 'seed = "1"')]
)
def test_settings_somebody_edited_are_damaged_too(pristine: Path, room: Path, old: str, new: str) -> None:
    path = copied(pristine, room / "w")
    file = path / "federation.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with refused(path, Damaged, "federation.toml"):
        reopen(path)


@pytest.mark.parametrize("spoil", [cut, emptied, noise])
def test_a_damaged_ledger_is_named(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    file = path / "ledger.db"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(Damaged, match=r"ledger\.db") as caught, opened(path) as space:
        space.status()
    assert "\n" not in str(caught.value)


def test_a_ledger_of_a_later_version_is_left_alone(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with sqlite3.connect(path / "ledger.db") as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    db.close()
    with refused(path, LedgerTooNew, "ledger.db", "99", "pip install -U fedforget"):
        reopen(path)


def test_a_flipped_bit_anywhere_in_the_ledger_never_ends_in_a_wrong_model_or_a_traceback(
    pristine: Path, room: Path
) -> None:
    """SQLite has no checksums: what a bit changes is either nothing that counts, or is named."""
    blob = (pristine / "ledger.db").read_bytes()
    with opened(pristine) as space:
        served, known = digests(space), every_digest(space)
    where = random.Random(7)
    named = 0
    for at in range(60):
        spoilt = bytearray(blob)
        spoilt[where.randrange(len(blob))] ^= 1 << where.randrange(8)
        path = copied(pristine, room / str(at))
        (path / "ledger.db").write_bytes(spoilt)
        try:
            with opened(path) as space:
                space.verify().raise_if_failed()
                assert digests(space) == served
                assert set(every_digest(space).values()) <= set(known.values())
        except FedForgetError:
            named += 1
    assert 0 < named < 60


@pytest.mark.parametrize("spoil", [cut, emptied, flipped, noise])
def test_a_damaged_key_is_named(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    file = path / "keys" / "epoch-1.key"
    file.write_bytes(spoil(file.read_bytes()))
    with opened(path) as space:
        for verb in _verbs(space):
            with refused(path, Damaged, "epoch-1.key"):
                verb()


def test_a_missing_key_is_named(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    (path / "keys" / "epoch-1.key").unlink()
    with opened(path) as space:
        for verb in _verbs(space):
            with refused(path, Damaged, "epoch-1.key", "no file"):
                verb()


@pytest.mark.parametrize("spoil", [cut, emptied, noise])
def test_damaged_tombstones_stop_a_forget_before_it_begins(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    file = path / "keys" / "tombstones.json"
    good = file.read_bytes()
    file.write_bytes(spoil(good))
    with opened(path) as space:
        before = space.status()
        with refused(path, Damaged, "tombstones.json"):
            space.forget([client(1)])
        assert space.status() == before
        file.write_bytes(good)
        space.forget([client(1)])
        assert len(json.loads(file.read_bytes())) == 2
        assert_in_order(space)


@pytest.mark.parametrize("spoil", [cut, emptied, flipped, noise])
def test_a_damaged_slice_is_found_survived_and_mended(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        before = every_digest(space)
        for bundle in space.state().history:
            file = space.store.path(bundle.keys[0])  # type: ignore[attr-defined]
            file.write_bytes(spoil(file.read_bytes()))
        report = space.verify(never_joined=True)
        assert report.passed
        assert len(report.findings) == len(space.state().history)
        assert all("altered" in finding for finding in report.findings)
        assert space.evaluate().scores
        assert space.repair().lost == ()
        assert every_digest(space) == before
        assert_in_order(space)


@pytest.mark.parametrize("spoil", [cut, emptied, flipped, noise])
def test_when_all_slices_of_a_round_are_damaged_it_is_refused_never_guessed(
    pristine: Path, room: Path, spoil: Spoil
) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        shard = space.state().plan.shard_of(client(1))
        lost = next(b for b in space.state().history if b.shard == shard and b.round == 0)
        for key in lost.keys:
            file = space.store.path(key)  # type: ignore[attr-defined]
            file.write_bytes(spoil(file.read_bytes()))
        before, models = space.status(), every_digest(space)
        with pytest.raises(Unrecoverable) as caught:
            space.forget([client(1)], "calibrated")
        for words in (str(lost), "needs 2 good slices and has 0", "bring holders back"):
            assert words in str(caught.value)
        assert space.status() == before
        assert every_digest(space) == models
        assert not space.verify().passed
        assert space.repair().lost
        assert space.evaluate().scores


def test_a_forget_that_cannot_go_on_is_given_up_and_another_method_is_free_to_try(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        shard = space.state().plan.shard_of(client(1))
        world = world_without(space, client(1))
        for bundle in space.state().history:
            if bundle.shard == shard and bundle.round == 1:
                for key in bundle.keys:
                    space.store.path(key).unlink()  # type: ignore[attr-defined]
        told: list[int] = []
        with pytest.raises(Unrecoverable):
            space.forget([client(1)], "calibrated", progress=lambda what, done, total: told.append(done))
        assert max(told) > 0
        assert space.status().unfinished == ()
        assert [r.state for r in space.ledger.requests()] == ["executed", "refused"]
        assert space.train().rounds == 0
        assert space.forget([client(1)], "exact").guarantee.grade == "X1"
        assert every_digest(space) == world
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


def test_past_its_tombstones_a_forget_is_only_ever_finished(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    steps = operations(lambda disk: _forget(copied(pristine, room / "twin"), disk))
    with pytest.raises(Died):
        _forget(path, dies_before(steps.index(("commit", "switch"))))
    with opened(path) as space:
        twin = every_digest(space)
        made = {p: p.read_bytes() for p in path.rglob("*.generation-2.slice")}
        for file in made:
            file.write_bytes(cut(made[file]))
        for _ in range(2):
            with pytest.raises(Unrecoverable):
                space.forget()
            assert space.status().unfinished == (client(1),)
            assert every_digest(space) == twin
        for file in made:
            file.write_bytes(made[file])
        assert space.forget().guarantee.grade == "X1"
        assert space.verify(never_joined=True).passed
        assert_in_order(space)


def _forget(path: Path, disk: Disk) -> None:
    with opened(path, disk=disk) as space:
        space.forget([client(1)])


@pytest.mark.parametrize("spoil", [cut, emptied, flipped, noise])
def test_a_damaged_head_is_made_again_from_the_history(pristine: Path, room: Path, spoil: Spoil) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        before = digests(space)
        for file in (path / "holders" / "server.head").rglob("*.slice"):
            file.write_bytes(spoil(file.read_bytes()))
        assert not space.verify().passed
        space.repair()
        assert digests(space) == before
        assert_in_order(space)


def test_a_holder_that_lost_everything_is_survived(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        for holder in sorted(p for p in (path / "holders").iterdir() if p.name.startswith("client")):
            there = contents(holder)
            for file in list(holder.rglob("*.slice")):
                file.unlink()
            assert space.verify(never_joined=True).passed
            for name, blob in there.items():
                (holder / name).write_bytes(blob)
        assert_in_order(space)


def test_what_interrupted_writes_left_behind_is_swept_away(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    for folder in ("", "keys", "holders/client-003"):
        (path / folder / ".writing-something").write_bytes(b"half")
    with opened(path) as space:
        assert space.verify().passed
        space.train()
        assert not list(path.rglob(".writing-*"))
        assert_in_order(space)


def test_the_examples_of_a_client_who_went_away_with_its_data_make_exact_forgetting_say_so(
    pristine: Path, room: Path
) -> None:
    task = small_task()
    with opened(pristine) as space:
        away, leaver, *_ = space.state().rows[Place(0, 1, 1)].roster
    del task.examples[away]  # type: ignore[attr-defined]
    with Workspace.open(copied(pristine, room / "w"), task=task) as space:
        report = space.forget([leaver])
        assert report.guarantee.grade == "X2"
        assert all(away in condition for condition in report.guarantee.conditions)
