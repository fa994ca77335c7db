"""Inventory: one hash over all that is in force, so that a signed checkpoint covers the tables beside the events."""

import hashlib
import json
from typing import Any

import sqlalchemy as sa

from . import tables

_PROVED_BY_THEMSELVES = ("events", "tree")
_PASSING = ("scrub", "begun")  # entries of `meta` that say where somebody is, not what is so


def inventory(db: sa.Connection) -> str:
    """SHA-256 over every row as the database keeps it, table by table in the order of their keys."""
    sha = hashlib.sha256()
    for table in sorted(tables.schema.tables.values(), key=lambda t: t.name):
        if table.name in _PROVED_BY_THEMSELVES:
            continue
        sha.update(f"{table.name}\n".encode())
        plain = [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.columns]
        query = sa.select(*plain).order_by(*table.primary_key.columns)
        if table is tables.meta:
            query = query.where(table.c.key.not_in(_PASSING))
        for row in db.execute(query):
            sha.update(json.dumps(list(row), sort_keys=True, default=_hex).encode() + b"\n")
    return sha.hexdigest()


def unsound(db: sa.Connection) -> str:
    """What the database itself finds wrong with its pages and indexes; PostgreSQL looks after its own."""
    if db.dialect.name != "sqlite":
        return ""
    found = [str(row[0]) for row in db.exec_driver_sql("PRAGMA integrity_check(1)")]
    return "" if found == ["ok"] else "; ".join(found)


def _hex(value: Any) -> str:
    return bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else str(value)
