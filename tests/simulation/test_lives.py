"""A few lives, a disk that behaves as it says, and a forget interrupted at every durable operation in every way."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from fedforget.manifest import Keeping
from fedforget.requests import Scope
from fedforget.storage import database
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.disk import Disk
from fedforget.storage.ledger import Ledger
from fedforget.workspace import FederationSettings, Workspace
from fedforget.workspace.keys import KeyFolder
from fedforget.workspace.state import unfinished

from . import stub
from .fragile import FAILURES, Died, Failure, Fate, Fragile
from .life import FAULTS, Theatre

_SETTINGS = FederationSettings(
    clients=4,
    shards=2,
    participants=2,
    rounds=2,
    epochs=1,
    seed=1,
    federation="exhaustive",
    learner="softmax",
    keeping=Keeping("shard", "full", 3, 1),
)
LEAVER = "client-002"


# --- lives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_life(tmp_path: Path, seed: int) -> None:
    met, broken = Theatre.at(tmp_path).lived(seed)
    assert not broken, broken
    assert sum(met.values()) >= FAULTS


def test_a_life_lives_again_by_its_number(tmp_path: Path) -> None:
    theatre = Theatre.at(tmp_path)
    assert theatre.lived(7) == theatre.lived(7)


@pytest.mark.slow
def test_five_hundred_lives(tmp_path: Path) -> None:
    theatre = Theatre.at(tmp_path)
    broken = [why for seed in range(500) if (why := theatre.lived(seed)[1])]
    assert not broken, "\n".join(broken)


# --- the disk -------------------------------------------------------------------------------------------------


def test_what_was_written_to_its_end_survives(tmp_path: Path) -> None:
    for how in FAILURES:
        files = Fragile()
        Disk(system=files).write(tmp_path / how / "deep" / "a", b"new")
        assert not files.pending
        files.fails(how, Random(0))
        assert (tmp_path / how / "deep" / "a").read_bytes() == b"new"


@pytest.mark.parametrize("step", range(4))
def test_what_was_not_is_the_old_or_the_new_and_never_between(tmp_path: Path, step: int) -> None:
    for how in FAILURES:
        for seed in range(20):
            path, files = tmp_path / f"{how}-{seed}", Fragile()
            Disk(system=files).write(path, b"the old one")
            with pytest.raises(Died):
                Disk(Fate("dies", step), files).write(path, b"one that is new")
            files.fails(how, Random(seed))
            assert path.read_bytes() in (b"the old one", b"one that is new")


def test_a_disk_that_did_not_sync_would_be_found_out(tmp_path: Path) -> None:
    files, found = Fragile(), set()
    for seed in range(20):
        files.fill(tmp_path / "t", b"content", 0o600)
        files.rename(tmp_path / "t", tmp_path / "a")
        files.fails("torn", Random(seed))
        found.add((tmp_path / "a").read_bytes() if (tmp_path / "a").exists() else None)
        for path in tmp_path.iterdir():
            path.unlink()
    assert None in found
    assert len(found) > 2


def test_what_is_not_synced_comes_back_when_it_was_deleted_and_goes_when_it_was_made(tmp_path: Path) -> None:
    files = Fragile()
    (tmp_path / "kept").write_bytes(b"kept")
    files.unlink(tmp_path / "kept")
    files.make(tmp_path / "folder")
    files.fill(tmp_path / "folder" / "a", b"a", 0o600)
    files.fails("lost", Random(0))
    assert {p.name for p in tmp_path.rglob("*")} == {"kept"}
    files.overwrite(tmp_path / "kept")
    files.fails("lost", Random(0))
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_a_process_that_only_died_takes_nothing_with_it_but_what_it_left_can_still_be_lost(tmp_path: Path) -> None:
    files = Fragile()
    files.make(tmp_path / "folder")
    files.fails("clean", Random(0))
    assert (tmp_path / "folder").is_dir()
    files.fails("lost", Random(0))
    assert not (tmp_path / "folder").exists()


# --- a forget, at every durable operation -----------------------------------------------------------------------


class Small:
    """A federation trained once, copied for every death."""

    def __init__(self, room: Path) -> None:
        self.base, self.path = room / "base", room / "now"
        self.engine = database.engine(f"sqlite:///{self.path / 'ledger.db'}")
        with Workspace.init(self.base, _SETTINGS, task=stub.task(4)) as space:
            settings = space.settings
        self.settings = settings
        with Workspace.open(self.base, task=stub.task(4), make_cohort=stub.cohort) as space:
            space.train()

    def again(self) -> None:
        self.engine.dispose()
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.base, self.path)

    def opened(self, fate: Fate, files: Fragile) -> Workspace:
        disk = Disk(fate, files)
        ledger = Ledger(self.engine, str(self.engine.url), disk.probe)
        keys, store = KeyFolder(self.path / "keys", None, disk), DirectoryStore(self.path / "holders", disk)
        return Workspace(
            self.path, self.settings, ledger, keys, store, disk, make_cohort=stub.cohort, _given=stub.task(4)
        )

    def outcome(self, space: Workspace) -> object:
        """All that must not depend on what happened on the way."""
        report = space.verify()
        assert report.passed, report
        assert report.findings == ()
        assert space.ledger.debts() == ()
        state = space.state()
        assert space.keys.epochs() == (state.vault.epoch,)
        assert set(space.store.keys()) == {key for bundle in state.bundles for key in bundle.keys}
        assert [line.state for line in space.requests.list().requests] == ["executed"]
        return state.plan, {place: row.model_digest for place, row in state.rows.items()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    made = Small(tmp_path_factory.mktemp("exhaustive"))
    yield made
    made.engine.dispose()


SCOPES = {"client": Scope.of_clients([LEAVER]), "samples": Scope.of_samples({LEAVER: [0]})}


def straight(small: Small, scope: Scope) -> tuple[int, object]:
    small.again()
    fate = Fate()
    space = small.opened(fate, Fragile())
    space.forget(scope=scope)
    return fate.done, small.outcome(space)


def ends_well(small: Small, scope: Scope, steps: Callable[[int], range], how: Failure) -> int:
    """Die before each of these operations, lose what the failure takes, do it again; the end is always the same."""
    count, end = straight(small, scope)
    for step in steps(count):
        small.again()
        files = Fragile()
        with pytest.raises(Died):
            small.opened(Fate("dies", step), files).forget(scope=scope)
        files.fails(how, Random(step))
        space = small.opened(Fate(), files)
        if unfinished(space.ledger) is not None:
            space.forget()
        elif not space.ledger.requests():
            space.forget(scope=scope)
        else:
            space.train()  # it had taken effect; what was left to tidy up is
        files.fails("lost", Random(step))  # and what it said is done is on disk
        assert small.outcome(space) == end, f"died before operation {step} of {count}"
    return len(steps(count))


@pytest.mark.parametrize("how", FAILURES)
def test_a_forget_dies_at_every_fifth_durable_operation(small: Small, how: Failure) -> None:
    first = FAILURES.index(how)
    assert ends_well(small, SCOPES["client"], lambda count: range(first, count, 5), how) > 7


@pytest.mark.slow
@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_forget_dies_at_every_durable_operation(small: Small, scope: str, how: Failure) -> None:
    assert ends_well(small, SCOPES[scope], range, how) > 40
