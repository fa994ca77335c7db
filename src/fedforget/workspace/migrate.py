"""Migrate: a workspace of an earlier FedForget, brought up to date. A ledger in a file is copied first."""

from pathlib import Path

from ..storage import tables
from ..storage.disk import Disk
from ..storage.ledger import Clock, Ledger, _now
from .begin import address, read_settings
from .lock import locked
from .request_reports import MigrationReport


def migrate(
    path: str | Path, *, disk: Disk | None = None, clock: Clock = _now, ledger_password: str | None = None
) -> MigrationReport:
    from ..storage.migrations import migrate as migrate_ledger  # only here: few ever need it

    folder, disk = Path(path), disk or Disk()
    settings = read_settings(folder, disk)
    with locked(folder):
        url = address(folder, settings)
        found = Ledger.version(url, ledger_password)
        backup = None
        if found < tables.VERSION and not settings.ledger:
            backup = folder / f"ledger-{found}.db"
            disk.write(backup, (folder / "ledger.db").read_bytes())
        _, version = migrate_ledger(url, probe=disk.probe, clock=clock, password=ledger_password)
    return MigrationReport(str(folder), found, version, str(backup) if backup else None)
