"""Migrations: a ledger of an earlier version brought up to this one's, or back, in one transaction.

One module a version, with `up` to it from the one before and `down` again, written with Alembic's operations and frozen
once released. The version itself stands in the ledger, so there is no second place that says how far it got. That it
was done is an event, entered by the step as its version enters events.
"""

from types import ModuleType

from alembic.migration import MigrationContext
from alembic.operations import Operations

from ...errors import LedgerTooNew, SettingError
from .. import database, tables
from ..disk import Probe, _quiet
from ..ledger import Clock, Ledger, _now, _set
from . import v2

STEPS: dict[int, ModuleType] = {2: v2}
OLDEST = 1


def migrate(
    url: str,
    to: int = tables.VERSION,
    probe: Probe = _quiet,
    clock: Clock = _now,
    password: str | None = None,
) -> tuple[int, int]:
    """From which version to which it went; nothing is changed where it is there already."""
    if not OLDEST <= to <= tables.VERSION:
        raise SettingError("version", to, f"from {OLDEST} to {tables.VERSION}")
    ledger = Ledger(database.engine(url, password), url, probe, clock)
    try:
        found = ledger.get("version")
        if found not in range(OLDEST, tables.VERSION + 1):
            raise LedgerTooNew(ledger.name, found, tables.VERSION)
        if found == to:
            return found, to
        with ledger.transaction("migrate") as db:
            op = Operations(MigrationContext.configure(db))
            for step in range(found, to):
                STEPS[step + 1].up(op, clock)
            for step in range(found, to, -1):
                STEPS[step].down(op, clock)
            _set(db, "version", to)
        return found, to
    finally:
        ledger.close()
