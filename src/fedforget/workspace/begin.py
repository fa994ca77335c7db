"""Begin: what has to hold before a directory becomes a workspace, so that a refused `init` leaves no trace."""

from collections.abc import Iterable
from pathlib import Path

from ..errors import FedForgetError, WorkspaceExists
from ..sealing import check_passphrase
from ..storage.ledger import Ledger
from .settings import check_client_name

# All that an `init` which did not come to its end can have written; the settings are written last.
_BEGUN = frozenset({"keys", "ledger.db", "ledger.db-journal", ".writing-federation.toml", "lock"})
_OWN_KEYS = ("epoch-0.key", "log.key", "log.note")


def refuse_occupied(folder: Path) -> None:
    """A new or empty directory will do, or one that an interrupted `init` left behind."""
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - _BEGUN):
        raise WorkspaceExists(folder)
    keys, ledger = folder / "keys", folder / "ledger.db"
    there = {path.name.removeprefix(".writing-") for path in keys.iterdir()} if keys.is_dir() else set()
    if there and (there - set(_OWN_KEYS) or not ledger.exists() or _used(ledger)):
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
    for name in ("ledger.db-journal", "ledger.db"):
        (folder / name).unlink(missing_ok=True)
