import errno
import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from fedforget.errors import Damaged, LedgerTooNew, StorageFull, WorkspaceBusy
from fedforget.federation import Cost, Place
from fedforget.manifest import Bundle, Entry, Label, Record, RoundRow, Spot
from fedforget.plan import Member, Stage
from fedforget.slices import ALL_SHARDS, HEAD, SliceKey
from fedforget.storage import tables
from fedforget.storage.ledger import Branch, Ledger

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CODE = "rs8/2/1/0"


class Died(Exception):
    pass


def address(folder: Path) -> str:
    return f"sqlite:///{folder / 'ledger.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind: what holds of one holds of the other."""
    return address(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres").new())


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    made = Ledger.create(url, {"digest": "d"}, clock=lambda: NOON)
    yield made
    made.close()


@pytest.fixture
def in_a_file(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(address(tmp_path), {"digest": "d"}, clock=lambda: NOON)
    yield made
    made.close()


def bundle(stage: int, shard: int, round: int, generation: int, spots: tuple[Spot, ...], *holders: str) -> Bundle:
    return Bundle(stage, shard, round, generation, CODE, 4, spots, holders, ("h",) * len(holders))


def entry(shard: int, round: int, generation: int = 0) -> Entry:
    """A round of one upload, striped over two holders, and its head."""
    place = Place(0, shard, round)
    row = RoundRow(place, generation, "plain", None, "start", f"model {round}", ("a",), (3,), (), Cost(1, 0.5, 0.5))
    upload, head = (Label("f", *place, generation, kind, who, CODE) for kind, who in (("upload", "a"), ("head", "")))
    records = tuple(Record(label, 4, 20, "digest", b"wrapped") for label in (upload, head))
    slices = bundle(*place, generation, (Spot(upload, 0),), "a", "b")
    served = bundle(*place, generation, (Spot(head, 0),), HEAD)
    return Entry((row,), records, (slices, served))


def contents(ledger: Ledger) -> dict[str, list[tuple]]:
    """Every row of every table."""
    with ledger.engine.connect() as db:
        return {t.name: [tuple(r) for r in db.execute(sa.select(t))] for t in tables.schema.sorted_tables}


# --- durable and discreet -----------------------------------------------------------------------------------


def test_every_connection_keeps_no_deleted_byte_and_syncs_to_the_last(in_a_file: Ledger):
    wanted = {"journal_mode": "delete", "synchronous": 3, "secure_delete": 1, "foreign_keys": 1, "mmap_size": 0}
    with in_a_file.engine.connect() as one, in_a_file.engine.connect() as two:
        for db in (one, two):
            assert {name: db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted} == wanted


def test_what_was_deleted_is_in_no_byte_of_the_file(in_a_file: Ledger, tmp_path: Path):
    in_a_file.put("secret", "a very secret value" * 400)
    assert b"a very secret value" in (tmp_path / "ledger.db").read_bytes()
    in_a_file.put("secret", "gone")
    assert b"a very secret value" not in (tmp_path / "ledger.db").read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.db"]


def test_a_ledger_opened_again_says_the_same(ledger: Ledger, url: str):
    ledger.open_stage(0, Stage(3), [Member("a", 0), Member("b", 1)])
    ledger.enter(entry(0, 0))
    again = Ledger.open(url)
    assert contents(again) == contents(ledger)
    assert again.stages() == (Stage(3),)
    assert [m for m, _ in again.members()] == [Member("a", 0), Member("b", 1)]
    again.close()


def test_rows_come_back_as_the_values_they_were(ledger: Ledger):
    made = entry(1, 2)
    ledger.enter(made)
    assert ledger.rounds() == {Place(0, 1, 2): made.rounds[0]}
    assert tuple(ledger.records("f").values()) == made.records
    assert ledger.bundles("f") == made.bundles


def test_every_change_is_one_transaction(url: str):
    """Whoever dies at a commit leaves every table as it was, whatever the change."""
    dead = False

    def probe(operation: str, target: str) -> None:
        if dead:
            raise Died(target)

    ledger = Ledger.create(url, {}, probe)
    ledger.open_stage(0, Stage(3), [Member("a", 0), Member("b", 1)])
    ledger.enter(entry(0, 0))
    request = ledger.open_request({"leave": ["a"]})
    ledger.enter(entry(0, 0, 1), request.id)
    label = next(iter(ledger.records("f", request.id)))
    key = SliceKey(0, 0, 0, 0, "a")
    changes = {
        "stage": lambda: ledger.open_stage(1, Stage(2), [Member("a", 0, left=1), Member("c", 2)]),
        "enter": lambda: ledger.enter(entry(0, 1)),
        "repair": lambda: ledger.replace_bundle(replace(entry(0, 0).bundles[0], holders=("a", "c")), [key]),
        "head": lambda: ledger.replace_head(
            Place(0, 0, 0), Entry((), entry(0, 0).records[1:], entry(0, 0).bundles[1:])
        ),
        "request": lambda: ledger.open_request({"leave": ["b"]}),
        "switch": lambda: ledger.switch(request, {(0, 0): 0}, {label: b"new"}, 1, {"x": 1}, "f"),
        "put": lambda: ledger.put("scrub", 4),
        "note": lambda: ledger.note("numerics", "n"),
        "pay": lambda: ledger.pay([key]),
        "restore": lambda: ledger.reset_after_restore(1, ["a"], Branch("restored", "", None)),
    }
    before = contents(ledger)
    dead = True
    for change in changes.values():
        with pytest.raises(Died):
            change()
        assert contents(ledger) == before
    dead = False
    for change in changes.values():
        change()
    assert ledger.broken_link() is None
    ledger.close()


# --- what is in force -------------------------------------------------------------------------------------


def test_a_new_head_makes_the_old_one_owed(ledger: Ledger):
    assert ledger.enter(entry(0, 0)) == ()
    owed = ledger.enter(entry(0, 1))
    assert owed == (SliceKey(0, 0, 0, 0, HEAD),) == ledger.debts()
    assert [label.round for label in ledger.records("f") if label.kind == "head"] == [1]
    ledger.enter(entry(1, 0), paid=owed)
    assert ledger.debts() == ()


def test_pending_rounds_are_seen_by_their_request_alone_until_the_switch(ledger: Ledger):
    ledger.open_stage(0, Stage(2), [Member("a", 0), Member("b", 1)])
    for round in range(2):
        ledger.pay(ledger.enter(entry(0, round)))
    request = ledger.open_request({"leave": ["b"]})
    ledger.enter(entry(0, 1, generation=1), request.id)
    assert [row.generation for row in ledger.rounds().values()] == [0, 0]
    assert [row.generation for row in ledger.rounds(request.id).values()] == [1]
    wrapped = dict.fromkeys([*ledger.records("f"), *ledger.records("f", request.id)], b"again")
    ledger.switch(request, {(0, 0): 1}, wrapped, 1, {}, "f")
    assert [(p.round, row.generation) for p, row in ledger.rounds().items()] == [(0, 0), (1, 1)]
    assert ledger.rounds(request.id) == {}
    assert {record.wrapped for record in ledger.records("f").values()} == {b"again"}
    assert dict(ledger.members())[Member("b", 1)] == request.id
    assert ledger.debts() == tuple(SliceKey(0, 0, 1, 0, holder) for holder in ("a", "b", HEAD))
    assert ledger.get("epoch") == 1
    assert [r.state for r in ledger.requests()] == ["executed"]


def test_bundles_over_several_shards_go_when_any_of_them_is_tainted(ledger: Ledger):
    """Whether they were made again without it or nothing of them is left."""
    ledger.open_stage(0, Stage(2), [Member("a", 0)])
    for round in range(2):
        label = Label("f", 0, 1, round, 0, "gram", "", CODE)
        mixed = bundle(0, ALL_SHARDS, round, 0, (Spot(label, 0, 0),), "a", "b")
        ledger.enter(Entry((), (Record(label, 4, 20, "digest", b"w"),), (mixed,)))
    request = ledger.open_request({"leave": ["a"]})
    ledger.switch(request, {(0, 1): 1}, {}, 1, {}, "f")
    assert [b.round for b in ledger.bundles("f")] == [0]
    assert ledger.debts() == tuple(SliceKey(0, ALL_SHARDS, 1, 0, holder) for holder in ("a", "b"))


def test_a_debt_is_kept_once_and_ends_when_its_slice_is_in_use_again(ledger: Ledger):
    """A holder that had left takes the same slice back: what it was to delete it is to keep."""
    (slices, _), key = entry(0, 0).bundles, SliceKey(0, 0, 0, 0, "b")
    ledger.enter(entry(0, 0))
    for _ in range(2):
        ledger.replace_bundle(replace(slices, holders=("a", "c")), [key])
        assert ledger.debts() == (key,)
    ledger.replace_bundle(slices)
    assert ledger.debts() == ()
    ledger.replace_bundle(replace(slices, holders=("a", "c")), [key])
    ledger.reset_after_restore(1, [], Branch("restored", "", None))
    assert key in ledger.debts()
    ledger.enter(entry(0, 0))
    assert key not in ledger.debts()


def test_an_old_database_is_emptied_of_its_history_and_of_the_forgotten(ledger: Ledger):
    ledger.open_stage(0, Stage(2), [Member("a", 0), Member("b", 1)])
    ledger.enter(entry(0, 0))
    request = ledger.open_request({"leave": ["a"]})
    owed = ledger.reset_after_restore(4, ["a"], Branch("restored", "", None))
    assert set(owed) == set(ledger.debts()) == {key for b in entry(0, 0).bundles for key in b.keys}
    assert (ledger.rounds(), ledger.records("f"), ledger.bundles("f")) == ({}, {}, ())
    assert [(m.client, gone is not None) for m, gone in ledger.members()] == [("a", True), ("b", False)]
    assert [(r.id, r.state) for r in ledger.requests()] == [(request.id, "overtaken")]
    assert ledger.get("epoch") == 4


def test_values_noted_are_kept_once_each_in_order(ledger: Ledger):
    for value in ("one", "two", "one"):
        ledger.note("numerics", value)
    assert ledger.noted("numerics") == ("one", "two")
    assert ledger.noted("nothing") == ()
    assert ledger.get("scrub", 0) == 0
    with pytest.raises(Damaged, match="'nothing'"):
        ledger.get("nothing")


# --- the chain ----------------------------------------------------------------------------------------------


def test_events_are_chained_and_tell_the_story(ledger: Ledger):
    ledger.open_stage(0, Stage(2), [Member("a", 0)])
    ledger.enter(entry(0, 0))
    events = list(ledger.events())
    assert [e.kind for e in events] == ["created", "stage", "round"]
    assert [e.seq for e in events] == [0, 1, 2]
    assert all(e.time == "2026-01-02T12:00:00+00:00" for e in events)
    assert [e.previous for e in events[1:]] == [e.hash for e in events[:-1]]
    assert events[2].body["model"] == "model 0"
    assert ledger.broken_link() is None


@pytest.mark.parametrize(
    ("tampering", "broken"),
    [
        ("UPDATE events SET body = replace(body, 'model 0', 'model 9') WHERE seq = 2", 2),
        ("UPDATE events SET time = '2025-01-01T00:00:00+00:00' WHERE seq = 1", 1),
        ("UPDATE events SET kind = 'created' WHERE seq = 1", 1),
        ("UPDATE events SET hash = previous WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 0", 0),
        ("DELETE FROM events WHERE seq = 1", 1),
        ("UPDATE events SET seq = 7 WHERE seq = 3", 3),
    ],
)
def test_an_altered_event_is_found(ledger: Ledger, tampering: str, broken: int):
    ledger.open_stage(0, Stage(2), [Member("a", 0)])
    for round in range(2):
        ledger.enter(entry(0, round))
    with ledger.engine.begin() as db:
        db.exec_driver_sql(tampering)
    assert ledger.broken_link() == broken


# --- what can be wrong with the file ------------------------------------------------------------------------


def test_a_later_version_is_refused_with_the_way_out(ledger: Ledger, url: str):
    ledger.put("version", tables.VERSION + 1)
    with pytest.raises(LedgerTooNew, match="pip install -U") as caught:
        Ledger.open(url)
    assert (caught.value.found, caught.value.known) == (tables.VERSION + 1, tables.VERSION)
    ledger.put("version", "seven")
    with pytest.raises(Damaged, match="version"):
        Ledger.open(url)


@pytest.mark.parametrize("length", [0, 1, 15, 100, 1000, 4096, 5000, 20_000])
def test_a_truncated_file_is_damaged_and_named(in_a_file: Ledger, tmp_path: Path, length: int):
    for round in range(8):
        in_a_file.enter(entry(0, round))
    in_a_file.close()
    whole = (tmp_path / "ledger.db").read_bytes()
    assert length < len(whole)
    (tmp_path / "ledger.db").write_bytes(whole[:length])
    with pytest.raises(Damaged) as caught:
        read_all(tmp_path)
    assert caught.value.path == str(tmp_path / "ledger.db")


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path):
    (tmp_path / "ledger.db").write_bytes(b"no database at all, but long enough to be read as one" * 100)
    with pytest.raises(Damaged, match="not a database"):
        read_all(tmp_path)


def read_all(folder: Path) -> None:
    ledger = Ledger.open(address(folder))
    try:
        ledger.members(), ledger.stages(), ledger.rounds(), ledger.records("f"), ledger.bundles("f")
        ledger.debts(), ledger.requests(), list(ledger.events()), ledger.broken_link(), ledger.noted("numerics")
        ledger.get("settings")
    finally:
        ledger.close()


def test_whatever_byte_is_wrong_it_is_damage_or_is_not_noticed_but_never_a_fault_of_the_program(tmp_path: Path):
    made = tmp_path / "made"
    made.mkdir()
    ledger = Ledger.create(address(made), {"digest": "d"}, clock=lambda: NOON)
    ledger.open_stage(0, Stage(3), [Member("a", 0), Member("b", 1)])
    ledger.note("numerics", "some")
    for round in range(3):
        ledger.enter(entry(0, round))
    ledger.open_request({"leave": ["a"]})
    ledger.close()
    whole = (made / "ledger.db").read_bytes()
    used = [at for at, byte in enumerate(whole) if byte]
    damaged = 0
    for step, at in enumerate(used[:: max(1, len(used) // 700)]):
        wrong = bytearray(whole)
        wrong[at] ^= (1, 2, 4, 8, 16, 32, 64, 128, 255)[step % 9]
        (made / "ledger.db").write_bytes(wrong)
        try:
            read_all(made)
        except (Damaged, LedgerTooNew):
            damaged += 1
    assert damaged > 50


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("rounds", "body", "{}"),
        ("rounds", "body", "not json"),
        ("bundles", "spots", '[{"stage": 0}]'),
        ("bundles", "holders", "7"),
        ("records", "wrapped", 7.5),
        ("members", "seat", "first"),
        ("stages", "rounds", "many"),
        ("events", "body", "{"),
        ("meta", "value", "{"),
    ],
)
def test_rows_that_cannot_be_read_are_damage(in_a_file: Ledger, tmp_path: Path, table: str, column: str, value: object):
    in_a_file.open_stage(0, Stage(2), [Member("a", 0)])
    in_a_file.enter(entry(0, 0))
    in_a_file.close()
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        db.execute(f"UPDATE {table} SET {column} = ?", [value])
    db.close()
    with pytest.raises(Damaged) as caught:
        read_all(tmp_path)
    assert caught.value.path == str(tmp_path / "ledger.db")


def test_a_full_disk_is_named_and_nothing_is_half_entered(in_a_file: Ledger, tmp_path: Path):
    """SQLite's own refusal, from a limit on the file's pages."""
    with in_a_file.engine.connect() as db:
        pages = db.exec_driver_sql("PRAGMA page_count").scalar()
        db.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    before = contents(in_a_file)
    with pytest.raises(StorageFull) as caught:
        in_a_file.put("big", "x" * 100_000)
    assert caught.value.path == str(tmp_path / "ledger.db")
    assert contents(in_a_file) == before
    with in_a_file.engine.connect() as db:
        db.exec_driver_sql("PRAGMA max_page_count = 100000")
    in_a_file.put("big", "x" * 100_000)
    assert len(in_a_file.get("big")) == 100_000


def test_other_faults_of_the_system_at_a_commit_pass_as_they_are(tmp_path: Path):
    def probe(operation: str, target: str) -> None:
        if target == "put":
            raise OSError(errno.EIO, "Input/output error")

    ledger = Ledger.create(address(tmp_path), {}, probe)
    with pytest.raises(OSError, match="Input/output"):
        ledger.put("a", 1)
    assert ledger.get("a", 0) == 0
    ledger.close()


def test_a_database_held_by_another_process_is_busy(tmp_path: Path):
    ledger = Ledger.create(f"{address(tmp_path)}?timeout=0.05", {})
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(WorkspaceBusy):
        ledger.put("a", 1)
    with pytest.raises(WorkspaceBusy):
        ledger.members()
    other.execute("ROLLBACK")
    other.close()
    ledger.put("a", 1)
    ledger.close()


def test_an_address_is_named_without_its_password():
    engine = sa.create_mock_engine("postgresql+psycopg://", lambda *_: None)
    url = sa.make_url("postgresql+psycopg://operator:hunter2@db.example/fedforget")
    object.__setattr__(engine, "url", url)
    assert Ledger(engine, str(url)).name == "postgresql+psycopg://operator:***@db.example/fedforget"  # type: ignore[arg-type]


def test_a_ledger_in_memory_is_one_database_for_all_its_connections(tmp_path: Path):
    ledger = Ledger.create("sqlite:///:memory:", {"digest": "d"})
    ledger.enter(entry(0, 0))
    assert len(ledger.rounds()) == 1
    assert ledger.get("settings") == {"digest": "d"}
    ledger.close()


def test_a_copied_file_is_a_backup(in_a_file: Ledger, tmp_path: Path):
    in_a_file.enter(entry(0, 0))
    backup = tmp_path / "backup"
    backup.mkdir()
    shutil.copy(tmp_path / "ledger.db", backup)
    in_a_file.enter(entry(0, 1))
    old = Ledger.open(address(backup))
    assert [p.round for p in old.rounds()] == [0]
    assert json.loads(json.dumps(old.get("settings"))) == {"digest": "d"}
    old.close()
