"""Begin: what has to hold before a directory becomes a workspace, so that a refused `init` leaves no trace; and where
the parts of one lie.
"""

from collections.abc import Iterable
from pathlib import Path

from ..errors import Damaged, FedForgetError, NotAWorkspace, SettingError, WorkspaceExists
from ..sealing import check_passphrase
from ..storage.disk import Disk
from ..storage.ledger import Ledger
from .settings import FederationSettings, check_client_name

# All that an `init` which did not come to its end can have written; the settings are written last.
_LEDGER = ("ledger.db-journal", "ledger.db-wal", "ledger.db-shm", "ledger.db")
_BEGUN = frozenset({"keys", *_LEDGER, ".writing-federation.toml", "lock"})
_OWN_KEYS = ("epoch-0.key", "log.key", "log.note")


def refuse_occupied(folder: Path, at_server: bool = False) -> None:
    """A new or empty directory will do, or one that an interrupted `init` left behind.

    `at_server`: the ledger is a database elsewhere, which refuses a second `init` itself.
    """
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - _BEGUN):
        raise WorkspaceExists(folder)
    keys, ledger = folder / "keys", folder / "ledger.db"
    there = {path.name.removeprefix(".writing-") for path in keys.iterdir()} if keys.is_dir() else set()
    made = not at_server and (not ledger.exists() or _used(ledger))
    if there and (there - set(_OWN_KEYS) or made):
        raise WorkspaceExists(keys, "the keys of another federation lie there, which the new one would destroy")


def _used(path: Path) -> bool:
    """Whether more was done with that ledger than to make it."""
    try:
        ledger = Ledger.open(f"sqlite:///{path}")
    except FedForgetError:
        return False  # its making was interrupted
    try:
        return bool(ledger.rounds() or ledger.requests())
    finally:
        ledger.close()


def check(clients: Iterable[str], passphrase: str | None) -> None:
    for client in clients:
        check_client_name(client)
    if passphrase is not None:
        check_passphrase(passphrase)


def clear(folder: Path) -> None:
    """An empty directory, whatever an interrupted `init` had begun; the ledger last: it tells whose keys these are."""
    for name in _OWN_KEYS:
        (folder / "keys" / name).unlink(missing_ok=True)
        (folder / "keys" / f".writing-{name}").unlink(missing_ok=True)
    for name in _LEDGER:
        (folder / name).unlink(missing_ok=True)


def address(folder: Path, settings: FederationSettings) -> str:
    """Where the ledger is: a file in the workspace, unless the settings name a server."""
    return settings.ledger or f"sqlite:///{folder / 'ledger.db'}"


def read_settings(folder: Path, disk: Disk) -> FederationSettings:
    text = disk.read(folder / "federation.toml")
    if text is None:
        raise NotAWorkspace(folder)
    try:
        settings = FederationSettings.from_toml(text.decode())
    except (ValueError, TypeError, SettingError) as fault:
        raise Damaged(folder / "federation.toml", "the settings it was made with", str(fault)) from fault
    if not settings.ledger and not (folder / "ledger.db").exists():
        raise NotAWorkspace(folder)
    return settings
