"""Begin: what has to hold before a directory becomes a workspace, so that a refused `init` leaves no trace; and where
the parts of one lie.
"""

from collections.abc import Iterable
from pathlib import Path

from ..errors import Damaged, NotAWorkspace, SettingError, WorkspaceExists
from ..sealing import check_passphrase
from ..storage.disk import Disk
from .settings import FederationSettings, check_client_name

# All that an `init` which did not come to its end can have written; the settings are written last.
_LEDGER = ("ledger.db-journal", "ledger.db-wal", "ledger.db-shm", "ledger.db")
_BEGUN = frozenset({"keys", *_LEDGER, ".writing-federation.toml"})


def refuse_occupied(folder: Path) -> None:
    """A new or empty directory will do, or one that an interrupted `init` left behind."""
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - _BEGUN):
        raise WorkspaceExists(folder)


def check(clients: Iterable[str], passphrase: str | None) -> None:
    for client in clients:
        check_client_name(client)
    if passphrase is not None:
        check_passphrase(passphrase)


def clear(folder: Path) -> None:
    """An empty directory, whatever an interrupted `init` had begun."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*_LEDGER, "keys/log.note", "keys/log.key"):
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
