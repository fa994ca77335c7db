"""Database: SQLite or PostgreSQL behind one door, set so that what was committed is there after the power fails.

SQLite keeps a rollback journal synced to the last byte, for its write-ahead log could corrupt a database before 3.51.3;
from there on the log, synced at every commit. PostgreSQL must be 15 or later. One transaction writes at a time in both.
"""

import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from ..errors import LedgerUnreachable, MissingExtra, SettingError

WAL_SOUND = (3, 51, 3)
OLDEST_POSTGRESQL = 15
# Who waits longer than this for another's transaction is told so.
PATIENCE = 5.0
_WRITERS = 0x6665_6466  # the advisory lock that writers of one ledger queue at


def engine(url: str, password: str | None = None) -> sa.Engine:
    """`sqlite:///FILE` or `postgresql+psycopg://USER@HOST/NAME`; the password never travels in the address."""
    address = check(url)
    if address.get_backend_name() == "sqlite":
        found = sa.create_engine(address, poolclass=sa.pool.StaticPool if ":memory:" in url else None)
        sa.event.listen(found, "connect", _sqlite_settings)
    else:
        wait = {"connect_timeout": int(PATIENCE), "options": f"-c lock_timeout={int(PATIENCE * 1000)}"}
        found = sa.create_engine(address.set(password=password), pool_pre_ping=True, connect_args=wait)
        sa.event.listen(found, "connect", _postgresql_settings)
    sa.event.listen(found, "begin", _begin)
    return found


def check(url: str) -> sa.URL:
    """An address of a kind we know, without a password in it."""
    try:
        address = sa.make_url(url)
    except sa.exc.ArgumentError as fault:
        raise SettingError("ledger", url, "an address like postgresql://USER@HOST/NAME") from fault
    if address.password is not None:
        hidden = address.render_as_string(hide_password=True)
        raise SettingError("ledger", hidden, "without a password: give it in FEDFORGET_LEDGER_PASSWORD")
    if address.get_backend_name() == "sqlite":
        return address
    if address.drivername not in ("postgresql", "postgresql+psycopg"):
        raise SettingError("ledger", address.drivername, "sqlite or postgresql")
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra("a ledger in PostgreSQL", "postgres")
    return address.set(drivername="postgresql+psycopg")


def journal(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> tuple[str, str]:
    """SQLite's journal mode and how far it syncs."""
    return ("WAL", "FULL") if version >= WAL_SOUND else ("DELETE", "EXTRA")


def _sqlite_settings(connection: Any, _: Any) -> None:
    """Deleted content is overwritten, references are held, no memory map; transactions begin when we say so."""
    connection.isolation_level = None
    cursor = connection.cursor()
    mode, sync = journal()
    for pragma in (f"journal_mode={mode}", f"synchronous={sync}", "secure_delete=ON", "foreign_keys=ON", "mmap_size=0"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _postgresql_settings(connection: Any, _: Any) -> None:
    """A commit is acknowledged when it is on disk, whatever the server's own setting."""
    if connection.info.server_version < OLDEST_POSTGRESQL * 10_000:
        found = connection.info.parameter_status("server_version")
        raise SettingError("ledger", f"PostgreSQL {found}", f"PostgreSQL {OLDEST_POSTGRESQL} or later")
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        if cursor.fetchone()[0] in ("off", "local"):
            cursor.execute("SET synchronous_commit = on")
    connection.commit()


def _begin(db: sa.Connection) -> None:
    """Who will write says so from the start: two that read first and then both want to write would stop each other."""
    writes = db.get_execution_options().get("writes", False)
    if db.dialect.name == "sqlite":
        db.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    elif writes:
        db.execute(sa.text(f"SELECT pg_advisory_xact_lock({_WRITERS})"))


@contextmanager
def writing(found: sa.Engine) -> Iterator[sa.Connection]:
    """All of it or nothing."""
    with found.connect() as db:
        told = db.execution_options(writes=True)
        with told.begin():
            yield told


def settle(found: sa.Engine) -> None:
    """Nothing that was deleted lingers in SQLite's log."""
    if found.dialect.name == "sqlite" and journal()[0] == "WAL":
        raw = found.raw_connection()
        raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()


def unreachable(name: str, fault: sa.exc.DatabaseError) -> LedgerUnreachable | None:
    """Whether the server is away, rather than the database damaged."""
    state = getattr(fault.orig, "sqlstate", None)
    away = type(fault.orig).__module__.startswith("psycopg") and isinstance(fault, sa.exc.OperationalError)
    if away and (state is None or state.startswith(("08", "57P", "28", "3D"))):
        return LedgerUnreachable(name, " ".join(str(fault.orig).split()))
    return None
