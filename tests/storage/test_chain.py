"""The events: bound to one another and under one root, deletable in what they say, never in that they were."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from fedforget.errors import Damaged, SettingError
from fedforget.evidence import merkle
from fedforget.evidence.entry import opened_hash
from fedforget.storage import chain, tables
from fedforget.storage.certified import certified, certify
from fedforget.storage.ledger import Ledger

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(f"sqlite:///{tmp_path / 'ledger.db'}", {}, clock=lambda: NOON)
    with made.transaction("fill") as db:
        for at in range(1, 12):
            chain.append(db, made.clock, "said", {"client": f"client-{at:03d}"})
    yield made
    made.close()


def alter(ledger: Ledger, statement: str) -> None:
    with ledger.engine.begin() as db:
        db.exec_driver_sql(statement)


def test_the_root_is_that_of_the_events_hashes(ledger: Ledger) -> None:
    leaves = [bytes.fromhex(e.hash) for e in ledger.events()]
    assert [opened_hash(e.opened) for e in ledger.events()] == leaves
    for size in range(len(leaves) + 1):
        assert ledger.chain.root(size) == merkle.root_of(leaves[:size])
    root = ledger.chain.root(12)
    assert merkle.included(leaves[3], 3, 12, ledger.chain.inclusion(3, 12), root)
    assert merkle.consistent(5, 12, ledger.chain.root(5), root, ledger.chain.consistency(5, 12))


def test_the_same_body_twice_has_two_commitments(ledger: Ledger) -> None:
    with ledger.transaction("twice") as db:
        one, two = (chain.append(db, ledger.clock, "said", {"a": 1}) for _ in range(2))
    with ledger.engine.connect() as db:
        e = tables.events.c
        assert len(set(db.scalars(sa.select(e.commitment).where(e.seq.in_([one, two]))))) == 2


def test_redacting_deletes_what_was_said_and_changes_no_hash_and_no_proof(ledger: Ledger, tmp_path: Path) -> None:
    before = [e.hash for e in ledger.events()]
    root, proof = ledger.chain.root(12), ledger.chain.inclusion(4, 12)
    ledger.redact([4, 7, 4], "article 17")
    assert [e.hash for e in ledger.events()][:12] == before
    assert (ledger.chain.root(12), ledger.chain.inclusion(4, 12)) == (root, proof)
    assert ledger.chain.event(4).body is None
    assert list(ledger.events())[-1].body == {"events": [4, 7], "why": "article 17"}
    assert ledger.broken_link() is None
    assert b"client-004" not in (tmp_path / "ledger.db").read_bytes()


def test_only_what_says_something_of_somebody_can_be_redacted(ledger: Ledger) -> None:
    certify(ledger, 1, "executed", "fedforget/f", {"a": 1})
    ledger.redact([4], "why")
    for seq, why in ((4, "says something"), (99, "says something"), (12, "'certified'"), (13, "'redacted'")):
        with pytest.raises(SettingError, match=why):
            ledger.redact([2, seq], "why")
    assert ledger.chain.event(2).body is not None  # all or nothing


def test_what_is_certified_is_kept_with_its_event(ledger: Ledger) -> None:
    certify(ledger, 1, "executed", "fedforget/f", {"a": 1})
    (row,) = certified(ledger)
    assert (row.seq, row.request, row.state, row.origin, row.account) == (12, 1, "executed", "fedforget/f", {"a": 1})
    assert ledger.chain.event(12).body["request"] == 1


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("UPDATE events SET body = NULL, salt = NULL WHERE seq = 3", 3),  # deleted without a word
        ("UPDATE events SET body = NULL WHERE seq = 3", 3),
        ("UPDATE events SET salt = NULL WHERE seq = 3", 3),
        ("UPDATE events SET salt = hash WHERE seq = 3", 3),
        ("UPDATE events SET commitment = hash WHERE seq = 3", 3),
        ("UPDATE events SET body = 7 WHERE seq = 3", 3),
        ("UPDATE tree SET hash = 'ab' WHERE level = 1 AND \"index\" = 2", 5),
        ('DELETE FROM tree WHERE level = 0 AND "index" = 6', 6),
        ("INSERT INTO tree VALUES (9, 0, 'ab')", 12),
        ("DELETE FROM events WHERE seq = 11", 11),
        ("DELETE FROM events; DELETE FROM tree", None),
    ],
)
def test_whatever_is_altered_is_found(ledger: Ledger, statement: str, broken: int | None) -> None:
    for part in statement.split(";"):
        alter(ledger, part)
    assert ledger.broken_link() == broken


def test_an_event_or_a_node_that_is_not_there_is_named(ledger: Ledger) -> None:
    with pytest.raises(SettingError, match="12 there are"):
        ledger.chain.event(12)
    alter(ledger, "DELETE FROM tree")
    with pytest.raises(Damaged, match="hash over events"):
        ledger.chain.root(12)


def test_events_of_version_1_are_entered_anew(ledger: Ledger) -> None:
    """They were chained without salts and may hold decimal numbers no more than today's."""
    told = [(e.seq, e.time, e.kind, e.body) for e in ledger.events()]
    old = [(seq, time, kind, json.dumps(body)) for seq, time, kind, body in told]
    with ledger.engine.begin() as db:
        db.execute(sa.delete(tables.events))
        db.execute(sa.delete(tables.tree))
        chain.convert(db, old)
    assert ledger.broken_link() is None
    assert [(e.seq, e.time, e.kind, e.body) for e in ledger.events()] == told


def reads(ledger: Ledger, work: Any) -> int:
    """How many statements it takes."""
    count = 0

    def counted(*_: Any) -> None:
        nonlocal count
        count += 1

    sa.event.listen(ledger.engine, "before_cursor_execute", counted)
    work()
    sa.event.remove(ledger.engine, "before_cursor_execute", counted)
    return count


def test_appending_and_proving_take_as_many_statements_as_the_tree_is_high(ledger: Ledger) -> None:
    def fill(until: int) -> None:
        with ledger.transaction("fill") as db:
            for _ in range(until - ledger.height()):
                chain.append(db, ledger.clock, "said", {})

    for size, height in ((64, 7), (1024, 11)):
        fill(size - 1)
        assert reads(ledger, lambda: ledger.note("x", str(ledger.height()))) <= height + 12
        assert reads(ledger, lambda: ledger.chain.inclusion(5, ledger.height())) <= 2 * height + 2
        assert reads(ledger, lambda: ledger.chain.consistency(5, ledger.height())) <= 2 * height + 2


def test_the_inventory_changes_with_every_row_of_what_is_in_force_and_with_nothing_else(ledger: Ledger) -> None:
    before = ledger.inventory()
    ledger.put("scrub", 4)
    assert ledger.inventory() == before
    for statement in (
        "INSERT INTO members VALUES ('a', 0, 0, NULL, NULL)",
        "UPDATE members SET seat = 1",
        'UPDATE members SET "left" = 1',
        "INSERT INTO meta VALUES ('more', '1')",
        "UPDATE meta SET value = '2' WHERE key = 'more'",
        "DELETE FROM members",
    ):
        alter(ledger, statement)
        assert ledger.inventory() != before
        before = ledger.inventory()
    assert ledger.unsound() == ""


def test_binary_columns_count_too(ledger: Ledger) -> None:
    row = "0, 0, 0, 0, NULL, 'head', '', 'c', 0, 1, 1, 'd'"
    alter(ledger, f"INSERT INTO records VALUES (1, {row}, x'0102')")
    before = ledger.inventory()
    alter(ledger, "UPDATE records SET wrapped = x'0103'")
    assert ledger.inventory() != before
