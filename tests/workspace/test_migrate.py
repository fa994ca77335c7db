"""A workspace of an earlier version opens after `migrate`, verified whole; up and down again it is what it was.

`earlier/v1.tar.gz` was made by FedForget at ledger version 1: eight clients in two shards with a free seat, trained,
one forgotten exactly, a second stage with a newcomer, another forgotten by calibration.
"""

import tarfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from asking import Clock, ask, desk, enrol, key, states
from small import assert_in_order, client, every_digest, opened

from fedforget.errors import Damaged, LedgerTooNew, LedgerTooOld, NotAWorkspace, SettingError
from fedforget.requests import Scope
from fedforget.storage import tables
from fedforget.storage.ledger import Ledger
from fedforget.storage.migrations import migrate as migrate_ledger
from fedforget.workspace.migrate import migrate


@pytest.fixture
def old(room: Path) -> Path:
    with tarfile.open(Path(__file__).parent / "earlier" / "v1.tar.gz") as archive:
        archive.extractall(room, filter="data")
    return room / "v1"


def url(path: Path) -> str:
    return f"sqlite:///{path / 'ledger.db'}"


def contents(address: str) -> dict[str, Any]:
    """Every row of every table there is, and each table's columns, keys and indexes, in no order."""
    engine = sa.create_engine(address)
    found: dict[str, Any] = {}
    with engine.connect() as db:
        looking = sa.inspect(db)
        for name in looking.get_table_names():
            rows = db.execute(sa.text(f'SELECT * FROM "{name}"')).all()
            found[name] = (shape(looking, name), sorted(map(repr, rows)))
    engine.dispose()
    return found


def shape(looking: sa.Inspector, table: str) -> dict[str, Any]:
    columns = {c["name"]: (str(c["type"]), c["nullable"]) for c in looking.get_columns(table)}
    indexes = {tuple(i["column_names"]) for i in looking.get_indexes(table)}
    unique = {tuple(u["column_names"]) for u in looking.get_unique_constraints(table)}
    foreign = {(tuple(f["constrained_columns"]), f["referred_table"]) for f in looking.get_foreign_keys(table)}
    return {
        "columns": columns,
        "key": looking.get_pk_constraint(table)["constrained_columns"],
        "indexes": indexes | unique,
        "foreign": foreign,
    }


def test_it_opens_after_migrating_and_goes_on_as_if_it_had_always_been_so(old: Path) -> None:
    with pytest.raises(LedgerTooOld, match="`fedforget migrate DIR`"), opened(old, seats=9):
        pass
    before = (old / "ledger.db").read_bytes()
    report = migrate(old, clock=Clock())
    assert (report.found, report.version) == (1, tables.VERSION)
    assert report.backup is not None
    assert Path(report.backup).read_bytes() == before
    again = migrate(old)
    assert (again.found, again.backup) == (tables.VERSION, None)
    Path(report.backup).unlink()
    with desk(old, clock := Clock(), seats=9) as space:
        assert_in_order(space)
        assert space.verify(never_joined=True).passed
        assert states(space) == {"by-hand-1": "executed", "by-hand-2": "executed"}
        lines = space.requests.list().requests
        assert [(one.scope, one.received, one.executed) for one in lines] == [
            ("client-003", "2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z"),
            ("client-001", "2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z"),
        ]
        enrol(space, [client(0)])
        ask(space, client(0))
        assert space.requests.run(now=True).executed == ("r-client-000",)
        assert_in_order(space)
        clock.pass_by(days=31)
        assert space.requests.run().final == ("by-hand-1", "by-hand-2", "r-client-000")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_migrated_ledger_has_the_tables_a_new_one_has(kind: str, old: Path, request: pytest.FixtureRequest) -> None:
    """Whatever table or column is added must be in a migration too."""
    if kind == "sqlite":
        new, address = url(old.parent), url(old)
    else:
        server = request.getfixturevalue("postgres")
        new, address = server.new(), copied_to(url(old), server.new())
    Ledger.create(new, {}).close()
    migrate_ledger(address)
    wanted, found = ({name: shape for name, (shape, _) in contents(a).items()} for a in (new, address))
    assert found == wanted


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_up_and_down_a_filled_ledger_is_what_it_was_but_for_two_events(
    kind: str, old: Path, request: pytest.FixtureRequest
) -> None:
    address = url(old) if kind == "sqlite" else copied_to(url(old), request.getfixturevalue("postgres").new())
    before = contents(address)
    assert migrate_ledger(address) == (1, tables.VERSION)
    up = contents(address)
    for name in before:
        if name not in ("meta", "events", "requests"):
            assert up[name] == before[name]
    assert migrate_ledger(address, 1) == (tables.VERSION, 1)
    down = contents(address)
    assert set(down) == set(before)
    (shape, events), (shape_before, events_before) = down.pop("events"), before.pop("events")
    assert shape == shape_before
    assert len(events) == len(events_before) + 2
    assert set(events_before) < set(events)
    assert down == before


def test_down_is_refused_while_requests_wait(old: Path) -> None:
    migrate(old)
    with desk(old, Clock(), seats=9) as space:
        enrol(space, [client(0)])
        ask(space, client(0))
        filled = contents(url(old))
    with pytest.raises(SettingError, match="r-client-000"):
        migrate_ledger(url(old), 1)
    assert contents(url(old)) == filled


def test_a_migration_that_dies_has_done_nothing(old: Path) -> None:
    before = contents(url(old))

    def dies(operation: str, target: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate_ledger(url(old), probe=dies)
    assert contents(url(old)) == before


def test_versions_nobody_knows_are_refused(old: Path) -> None:
    with pytest.raises(SettingError):
        migrate_ledger(url(old), 0)
    with pytest.raises(NotAWorkspace):
        migrate(old.parent)
    engine = sa.create_engine(url(old))
    for value, error in (("99", LedgerTooNew), ('"x"', Damaged)):
        with engine.begin() as db:
            db.execute(sa.text("UPDATE meta SET value = :value WHERE key = 'version'"), {"value": value})
        with pytest.raises(error):
            migrate(old)
    engine.dispose()


def test_a_rebuild_under_way_goes_on_after_migrating(old: Path) -> None:
    """What version 1 began, this version ends: here of a request that had made nothing yet."""
    engine = sa.create_engine(url(old))
    body = '{"leave": ["client-002"], "edit": [], "method": "exact", "calibration": {"ratio": 2.0, "interval": 1,'
    body += ' "compat": "paper", "length": null}, "before": {}}'
    with engine.begin() as db:
        db.execute(sa.text("INSERT INTO requests (id, state, body) VALUES (3, 'rebuilding', :body)"), {"body": body})
        text = '{"request":3}'
        last = db.execute(sa.text("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1")).one()
        row = {"seq": last.seq + 1, "time": "2026-01-03T12:00:00+00:00", "body": text, "previous": last.hash}
        insert = "INSERT INTO events (seq, time, kind, body, previous, hash)"
        db.execute(sa.text(f"{insert} VALUES (:seq, :time, 'requested', :body, :previous, '')"), row)
    engine.dispose()
    migrate(old)
    with desk(old, Clock(), seats=9) as space:
        assert states(space)["by-hand-3"] == "rebuilding"
        before = every_digest(space)
        assert space.requests.run().executed == ("by-hand-3",)
        assert every_digest(space) != before
        assert client(2) in space.status().forgotten


def copied_to(source: str, target: str) -> str:
    """A version 1 ledger, table by table, in another database."""
    one, other = sa.create_engine(source), sa.create_engine(target)
    old = sa.MetaData()
    for name in ("meta", "members", "stages", "rounds", "records", "bundles", "debts", "requests"):
        tables.schema.tables[name].to_metadata(old)
    texts = {
        "time": sa.String(40),
        "kind": sa.String(32),
        "body": sa.Text,
        "previous": sa.String(64),
        "hash": sa.String(64),
    }
    columns = [sa.Column(name, kind, nullable=False) for name, kind in texts.items()]
    sa.Table("events", old, sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False), *columns)
    with one.connect() as reading, other.begin() as writing:
        old.create_all(writing)
        for table in old.sorted_tables:
            rows = [dict(row) for row in reading.execute(sa.select(table)).mappings()]
            if rows:
                writing.execute(sa.insert(table), rows)
    one.dispose()
    other.dispose()
    return target


def test_wishes_can_be_signed_as_soon_as_it_is_migrated(old: Path) -> None:
    migrate(old)
    with desk(old, Clock(), seats=9) as space:
        enrol(space, [client(4)])
        signed = space.requests.wish(Scope.of_clients([client(4)]), key(client(4)))
        assert space.requests.ask(signed.to_bytes()).receipts[0].state == "quarantined"
