"""Begin: what has to hold before a directory becomes a workspace, so that a refused `init` leaves no trace."""

from collections.abc import Iterable
from pathlib import Path

from ..errors import WorkspaceExists
from ..sealing import check_passphrase
from .settings import check_client_name

# All that an `init` which did not come to its end can have written; the settings are written last.
_BEGUN = frozenset({"keys", "ledger.db", "ledger.db-journal", ".writing-federation.toml"})


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
    for name in ("ledger.db-journal", "ledger.db", "keys/log.note", "keys/log.key"):
        (folder / name).unlink(missing_ok=True)
