"""Certified: what was said of each request, and the event that commits to it. Its file is made from both."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..canonical import canonical
from . import chain, tables
from .ledger import Ledger


@dataclass(frozen=True)
class Certified:
    """What was certified of a request, and where in which log."""

    seq: int
    request: int
    state: str
    origin: str
    account: Mapping[str, Any]


def certify(ledger: Ledger, request: int, state: str, origin: str, account: Mapping[str, Any]) -> None:
    text = canonical(account)
    with ledger.transaction("certify") as db:
        body = {"request": request, "state": state, "statement": hashlib.sha256(text).hexdigest()}
        seq = chain.append(db, ledger.clock, "certified", body)
        row = {"seq": seq, "request": request, "state": state, "origin": origin, "account": text.decode()}
        db.execute(sa.insert(tables.certificates).values(**row))


def certified(ledger: Ledger) -> tuple[Certified, ...]:
    """In the order of the log."""

    def read(row: Mapping[str, Any]) -> Certified:
        return Certified(**{**row, "account": json.loads(row["account"])})

    return tuple(ledger._each(sa.select(tables.certificates).order_by(tables.certificates.c.seq), read))
