"""The runbooks as they are written, on a small federation: every command of every section is run, in order."""

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fedforget import cli
from fedforget.storage.disk import Disk
from fedforget.workspace import FederationSettings, Workspace

PAGE = Path(__file__).parents[2] / "docs" / "runbooks.md"
SETTINGS = FederationSettings(
    task="digits", learner="softmax", clients=8, shards=2, participants=2, rounds=2, epochs=1, federation="clinics"
)
LEAVER = "client-007"


def sections() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        lines = [line for block in re.findall(r"```bash\n(.*?)```", part, re.DOTALL) for line in block.splitlines()]
        found[part.splitlines()[0]] = [shlex.split(line) for line in lines]
    return found


@pytest.fixture(scope="module")
def trained(shared_room: Path) -> Path:
    with Workspace.init(shared_room / "trained", SETTINGS) as space:
        space.train()
    return shared_room / "trained"


@pytest.fixture
def here(trained: Path, room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """W, and beside it a backup of the night before."""
    monkeypatch.chdir(room)
    monkeypatch.delenv("FEDFORGET_PASSPHRASE", raising=False)
    shutil.copytree(trained, "W")
    shutil.copytree("W", "backup")
    return room


def walk(section: str, expected: Callable[[list[str]], int] = lambda words: 0) -> None:
    """Run the section's commands; `expected` gives the exit code where it is not 0."""
    for words in sections()[section]:
        if words[0] == "cp":
            shutil.copy(*words[1:])
            continue
        sys.argv = words
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert (end.value.code or 0) == expected(words), words


def verifies(*words: str) -> bool:
    with Workspace.open("W") as space:
        return space.verify().passed


def forgotten() -> set[str]:
    with Workspace.open("W") as space:
        return set(space.state().forgotten)


def forget(*, disk: Disk | None = None) -> None:
    with Workspace.open("W", disk=disk) as space:
        space.forget([LEAVER])


@pytest.mark.usefixtures("here")
def test_a_lost_epoch_key() -> None:
    Path("W/keys/epoch-0.key").unlink()
    walk("A lost epoch key")
    assert verifies()
    assert Path("W2/ledger.db").exists()


@pytest.mark.usefixtures("here")
def test_a_lost_ledger() -> None:
    forget()
    Path("W/ledger.db").unlink()
    first = iter([12])
    walk("A lost ledger", lambda words: next(first, 0) if words[1] == "verify" else 0)
    assert forgotten() == {LEAVER}
    assert verifies()


@pytest.mark.usefixtures("here")
def test_fewer_than_k_slices() -> None:
    shutil.rmtree("W/holders/client-003")
    walk("Fewer than k slices")
    assert verifies()


@pytest.mark.usefixtures("here")
def test_a_stuck_rebuild() -> None:
    class Died(Exception):
        pass

    def probe(operation: str, target: str) -> None:
        if (operation, target) == ("commit", "switch"):
            raise Died

    with pytest.raises(Died):
        forget(disk=Disk(probe))
    walk("A stuck rebuild")
    assert forgotten() == {LEAVER}


@pytest.mark.usefixtures("here")
def test_a_restored_backup() -> None:
    forget()
    shutil.copy("backup/ledger.db", "W/ledger.db")
    walk("A restored backup", lambda words: 12 if words[1] == "verify" else 0)
    assert forgotten() == {LEAVER}
    assert verifies()


@pytest.mark.usefixtures("here")
def test_a_lost_or_stolen_log_key() -> None:
    Path("W/keys/log.key").unlink()
    walk("A lost or stolen log key")
    assert verifies()


def test_every_section_is_walked() -> None:
    named = {name.lower().replace(" ", "_") for name in sections()}
    walked = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert named <= walked
