"""Scrub, repair, debts, and what verify has to say about what is wrong."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from small import assert_in_order, client, copied, every_digest, make, opened, reopen, trained

from fedforget.coding import code_named
from fedforget.errors import Damaged, UnknownClient, Unrecoverable
from fedforget.federation import Place
from fedforget.manifest import Keep, Layout
from fedforget.slices import HEAD, VACANT, SliceKey
from fedforget.storage import tables
from fedforget.workspace import Workspace

LEAVER = client(7)


@pytest.fixture(scope="module")
def bases(shared_room: Path) -> dict[tuple[str, str], Path]:
    kinds: list[tuple[Layout, Keep]] = [("shard", "full"), ("shard", "lean"), ("cross", "full")]
    return {(layout, keep): trained(shared_room / f"{layout} {keep}", layout, keep) for layout, keep in kinds}


@pytest.fixture
def space(room: Path, bases: dict[tuple[str, str], Path]) -> Iterator[Workspace]:
    with opened(copied(bases["shard", "full"], room / "w")) as found:
        yield found


def spoil(space: Workspace, key: SliceKey) -> None:
    blob = bytearray(space.store.get(key) or b"")
    blob[len(blob) // 2] ^= 1
    space.store.put({key: bytes(blob)})


def lose_hashes(space: Workspace) -> None:
    b = tables.bundles
    with space.ledger.engine.begin() as db:
        for row in db.execute(sa.select(b)).mappings().all():
            if not row["head"]:
                db.execute(sa.update(b).where(b.c.id == row["id"]).values(hashes=[None] * len(row["hashes"])))


def failed(space: Workspace) -> dict[str, str]:
    return {check.what: check.detail for check in space.verify().checks if not check.passed}


# --- scrub ------------------------------------------------------------------------------------------------


def test_scrub_in_portions_goes_on_where_it_stopped_and_sees_every_slice_once(space: Workspace):
    bundles = space.state().bundles
    spoil(space, bundles[1].keys[0])
    space.store.delete([bundles[-1].keys[0]])
    whole = space.scrub()
    assert whole.checked == whole.of == sum(len(b.holders) for b in bundles)
    assert whole.next == 0
    assert whole.findings == (f"{bundles[1].keys[0]} is altered", f"{bundles[-1].keys[0]} is missing")

    told: list[str] = []
    checked, portions = 0, 0
    while True:
        with opened(space.path) as later:  # another process, another day
            report = later.scrub(3)
        told += report.findings
        checked, portions = checked + report.checked, portions + 1
        if report.next == 0:
            break
        assert report.next == 3 * portions
    assert checked == whole.of
    assert tuple(told) == whole.findings
    assert portions == -(-len(bundles) // 3)


def test_a_scrub_whose_place_is_gone_begins_again(space: Workspace):
    space.ledger.put("scrub", 999)
    assert space.scrub(2).next == 2


def test_progress_is_told(space: Workspace):
    seen: list[tuple[str, int, int]] = []
    space.scrub(progress=lambda *now: seen.append(now))
    space.repair(progress=lambda *now: seen.append(now))
    count = len(space.state().bundles)
    assert [s for s in seen if s[0] == "scrubbing"] == [("scrubbing", i, count) for i in range(count)]
    assert [s for s in seen if s[0] == "repairing"] == [("repairing", i, count) for i in range(count)]


# --- repair -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [("shard", "full"), ("shard", "lean"), ("cross", "full")])
def test_a_holder_that_is_gone_is_replaced_and_no_record_changes(room: Path, bases, kind):
    with opened(copied(bases[kind], room / "w")) as space:
        before, records = every_digest(space), space.state().records
        gone = space.state().history[0].holders[0]
        shutil.rmtree(space.path / "holders" / gone)
        assert space.verify().passed  # enough are left
        assert all(gone in finding and "missing" in finding for finding in space.verify().findings)
        report = space.repair(gone=[gone])
        assert report.repaired
        assert (report.vacant, report.lost) == (0, ())
        assert not any(gone in bundle.holders for bundle in space.state().bundles)
        assert space.verify().findings == ()
        assert space.state().records == records
        assert every_digest(space) == before
        assert {key.holder for key in space.ledger.debts()} == {gone}
        for bundle in space.state().history:  # the new slices are worth as much as the old
            for kept in bundle.keys[: code_named(bundle.code).n - code_named(bundle.code).k]:
                space.store.delete([kept])
        assert space.verify().passed


def test_altered_and_missing_slices_are_made_again_where_they_were(space: Workspace):
    before = {key: space.store.get(key) for key in space.store.keys()}  # noqa: SIM118
    for at, bundle in enumerate(space.state().history):
        spoil(space, bundle.keys[0]) if at % 2 else space.store.delete([bundle.keys[0]])
    report = space.repair()
    assert len(report.repaired) == len(space.state().history)
    assert {key: space.store.get(key) for key in space.store.keys()} == before  # noqa: SIM118
    assert_in_order(space)
    assert space.repair().repaired == ()


def test_with_nobody_to_take_over_a_seat_stays_vacant_and_is_filled_once_somebody_can(room: Path):
    space = make(room / "w", holders=4, threshold=2)  # all four of a shard hold a slice
    space.train()
    gone = client(1)
    report = space.repair(gone=[gone])
    rounds = 3
    assert (report.repaired, report.vacant) == ((), rounds)
    assert not list(space.store.keys(gone))
    assert space.verify().passed
    assert len(space.verify().findings) == rounds
    assert {h for b in space.state().history if b.shard == 0 for h in b.holders} >= {VACANT}
    space.close()
    space = reopen(room / "w")
    report = space.repair()  # the holder is back, and takes its seats again
    assert len(report.repaired) == rounds
    assert report.vacant == 0
    assert_in_order(space)
    space.train()
    assert_in_order(space)
    space.close()


def test_repair_never_gives_up_a_slice_that_is_needed(room: Path):
    """The operator calls more holders gone than the records can spare, and they are not."""
    space = make(room / "w", holders=4, threshold=2)
    space.train()
    before = sorted(space.store.keys())
    report = space.repair(gone=[client(1), client(2), client(4)])
    assert len(report.lost) == 3
    assert "nobody is left" in report.lost[0]
    assert sorted(space.store.keys()) == before
    assert_in_order(space)
    space.close()


def test_a_holder_that_comes_back_to_its_seat_is_no_longer_asked_to_delete(space: Workspace):
    """It was away when it was given up, so its deletions are owed still; the seat came back to it meanwhile."""
    first = space.state().history[0]
    one, two = first.holders[:2]
    (space.path / "holders" / one).rename(space.path.parent / "away")
    space.repair(gone=[one])
    assert {key.holder for key in space.ledger.debts()} == {one}
    space.repair(gone=[two])
    assert any(one in bundle.holders for bundle in space.state().history)
    for _ in range(2):
        with opened(space.path) as later:
            later.train()
            assert later.verify().findings == ()
            assert_in_order(later)
    space.repair(gone=[one])  # and once more
    assert space.verify().findings == ()


def test_too_few_good_slices_are_named_and_everything_else_is_repaired(space: Workspace):
    history = space.state().history
    for key in history[0].keys[:2]:
        spoil(space, key)
    spoil(space, history[1].keys[0])
    report = space.repair()
    assert len(report.lost) == 1
    assert str(history[0]) in report.lost[0]
    assert len(report.repaired) == 1
    told = failed(space)
    assert str(history[0]) in told["slices"]
    assert "needs 2 good slices and has 1" in told["records"]


def test_a_served_model_that_was_lost_is_made_again_from_its_uploads(space: Workspace):
    models = {shard: model.digest for shard, model in space.state().served().items()}
    heads = list(space.store.keys(HEAD))
    space.store.delete(heads[:1])
    spoil(space, heads[1])
    assert {s: m.digest for s, m in space.state().served().items()} == models
    assert "slices" in failed(space)
    report = space.repair()
    assert len(report.repaired) == 2
    assert report.lost == ()
    assert_in_order(space)
    assert {s: m.digest for s, m in space.state().served().items()} == models
    space.forget([LEAVER])
    assert_in_order(space)


def test_a_lean_history_that_lost_its_served_model_trains_it_again(room: Path):
    with opened(trained(room / "w", "shard", "lean", rounds=6)) as space:
        space.store.delete(list(space.store.keys(HEAD)))
        with pytest.raises(Unrecoverable):
            space.state().served()
        assert {"slices", "records"} <= set(failed(space))
        assert space.repair().lost == ()
        assert_in_order(space)


def test_what_only_the_server_kept_nobody_can_make_again(room: Path):
    with opened(trained(room / "w", "server")) as space:
        spoil(space, space.state().history[0].keys[0])
        (said,) = space.repair().lost
        assert "needs 1 good slices and has 0" in said


def test_without_hashes_liars_are_located_and_repair_brings_the_hashes_back(room: Path):
    space = make(room / "w", "shard", "full", holders=4, threshold=1)
    space.train()
    before = {key: space.store.get(key) for key in space.store.keys()}  # noqa: SIM118
    lose_hashes(space)
    for bundle in space.state().history:
        spoil(space, bundle.keys[0])
    assert set(failed(space)) == {"ledger"}  # the log sees that the tables were altered; the records open all the same
    space.repair()
    assert not any(None in bundle.hashes for bundle in space.state().bundles)
    assert {key: space.store.get(key) for key in space.store.keys()} == before  # noqa: SIM118
    assert_in_order(space)
    space.close()


def test_repair_writes_nothing_that_was_not_checked_to_the_last_record(room: Path):
    """Hashes lost, and enough liars hand in the slices of one other record: the honest slices have to survive."""
    space = make(room / "w", "shard", "full", clients=8, shards=1, holders=8, threshold=2)
    space.train()
    known = {bundle.keys: bundle.hashes for bundle in space.state().history}
    lose_hashes(space)
    bundle = space.state().history[0]
    code = code_named(bundle.code)
    other = code.encode([bytes([7]) * bundle.width] * code.k)
    space.store.put({bundle.keys[i]: other[i] for i in range(6)})
    before = {key: space.store.get(key) for key in bundle.keys}
    report = space.repair()
    assert any("upload" in said or "gram" in said for said in report.lost)
    assert {key: space.store.get(key) for key in bundle.keys} == before
    whole = replace(bundle, hashes=known[bundle.keys])
    assert space.state().archive.sealed(whole, whole.by_label)  # with the hashes back, all is there
    space.close()


def test_a_holder_nobody_knows_is_not_gone(space: Workspace):
    with pytest.raises(UnknownClient, match="nobody"):
        space.repair(["nobody"])


# --- away and back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["shard", "cross"])
@pytest.mark.parametrize("who", ["the leaver", "another"])
def test_deletions_wait_for_a_holder_that_is_away_and_are_paid_when_it_returns(room: Path, layout: Layout, who: str):
    with opened(trained(room / "w", layout, holders=8, threshold=4)) as space:  # everybody holds a slice
        away = LEAVER if who == "the leaver" else client(4)
        old = list(space.store.keys(away))
        (space.path / "holders" / away).rename(room / "away")
        report = space.forget([LEAVER])
        ends = every_digest(space)
        assert space.verify().passed
        if who == "the leaver":
            assert report.slices_owed == len([k for k in old if k.round > 0])
            assert {key.holder for key in space.ledger.debts()} == {LEAVER}
            assert set(space.ledger.debts()) == set(old)
        space.train()  # asked again, still away
        assert who != "the leaver" or set(space.ledger.debts()) == set(old)

        shutil.copytree(room / "away", space.path / "holders" / away, dirs_exist_ok=True)
        stale = [key for key in space.store.keys(away) if key in old and key.round > 0]
        in_force = {key for bundle in space.state().bundles for key in bundle.keys}
        assert stale
        assert not set(stale) & in_force  # of the old generation: nobody reads them
        assert every_digest(space) == ends
        space.train()
        assert not set(space.store.keys(away)) & set(stale)
        assert_in_order(space)
        assert every_digest(space) == ends


def test_a_stale_slice_under_a_new_name_is_altered_and_never_used(space: Workspace):
    old = {key: space.store.get(key) for key in space.store.keys()}  # noqa: SIM118
    space.forget([LEAVER])
    fresh = next(b for b in space.state().history if b.generation == 1 and b.round == 2)
    key = next(k for k in fresh.keys if k._replace(generation=0) in old)
    space.store.put({key: old[key._replace(generation=0)]})
    (finding,) = space.verify().findings
    assert finding == f"{key} is altered"
    assert space.verify().passed
    space.repair()
    assert_in_order(space)


def test_a_record_beyond_recovery_keeps_no_forgotten_holder_and_stops_no_forget(room: Path):
    """Two of three slices of a round that nothing begins from are lost, and the leaver holds the third."""
    late = client(4)
    with opened(trained(room / "w")) as space:
        bundle = next(b for b in space.state().history if late in b.holders and b.round == 0)
        space.store.delete([key for key in bundle.keys if key.holder != late])
        space.forget([late])
        assert not list(space.store.keys(late))
        assert not any(late in b.holders for b in space.state().bundles)
        told = failed(space)
        assert str(bundle) in told["slices"]
        assert "forgotten" not in told


@pytest.mark.parametrize("method", ["exact", "clean", "calibrated"])
def test_a_forget_that_has_nothing_to_begin_from_is_refused_before_it_is_entered(room: Path, method: str):
    """And another way is still open: to train from the start, nobody's uploads are needed."""
    with opened(trained(room / "w")) as space:
        bundle = next(b for b in space.state().history if b.round == 0 and b.shard == 0)
        space.store.delete(bundle.keys)
        with pytest.raises(Unrecoverable):
            space.forget([LEAVER], method)  # its first round is 1
        assert space.ledger.requests() == ()
        space.forget([LEAVER], "FR")
        assert_in_order(space)
        assert space.verify(never_joined=True).passed


# --- what verify names ------------------------------------------------------------------------------------


def test_an_unknown_slice_is_a_stray_and_the_next_work_sweeps_it(space: Workspace):
    stray = SliceKey(0, 0, 9, 9, client(1))
    space.store.put({stray: b"?"})
    assert str(stray) in failed(space)["strays"]
    space.train()
    assert failed(space) == {}


def test_an_altered_event_a_second_key_and_a_name_that_should_be_gone(space: Workspace):
    space.forget([LEAVER])
    space.keys.make(9)
    assert "epoch 9" in failed(space)["forgotten"]
    space.disk.delete(space.keys.path(9))
    e, m = tables.events, tables.members
    with space.ledger.engine.begin() as db:
        db.execute(sa.update(e).where(e.c.seq == 3).values(time="2020-01-01T00:00:00+00:00"))
        db.execute(sa.update(m).where(m.c.client == client(1)).values(forgotten=1))
    told = failed(space)
    assert "event 3" in told["ledger"]
    assert "forgotten" in told


@pytest.mark.parametrize("field", ["start", "model"])
def test_a_round_that_does_not_follow_from_the_others(space: Workspace, field: str):
    r = tables.rounds
    with space.ledger.engine.begin() as db:
        row = db.execute(sa.select(r).where(r.c.shard == 0, r.c.round == 1)).mappings().one()
        db.execute(sa.update(r).where(r.c.id == row["id"]).values(body={**row["body"], field: "0" * 64}))
    assert str(Place(0, 0, 1)) in failed(space)["lineage"] or str(Place(0, 0, 2)) in failed(space)["lineage"]


def test_a_record_whose_digest_or_key_is_another(space: Workspace):
    r = tables.records
    for values, said in (({"digest": "0" * 64}, "expected 000000000000"), ({"wrapped": None}, "destroyed")):
        with opened(copied(space.path, space.path.parent / said.split()[0])) as other:
            with other.ledger.engine.begin() as db:
                db.execute(sa.update(r).where(r.c.round == 1, r.c.kind == "upload").values(**values))
            assert said in failed(other)["records"]


def test_settings_that_were_changed_are_damage(space: Workspace):
    path = space.path / "federation.toml"
    path.write_text(path.read_text().replace("seed = 1", "seed = 2"))
    with pytest.raises(Damaged, match=r"federation\.toml"):
        reopen(space.path)
    path.write_bytes(b"\xff\xfe not toml")
    with pytest.raises(Damaged, match=r"federation\.toml"):
        reopen(space.path)


def test_a_damaged_key_file_is_named(space: Workspace):
    key = space.keys.path(0)
    whole = key.read_bytes()
    key.write_bytes(whole[:-1])
    with pytest.raises(Damaged, match=r"epoch-0\.key"):
        space.train()
    key.write_bytes(bytes(len(whole)))
    with pytest.raises(Damaged, match=r"epoch-0\.key"):
        space.train()
    key.write_bytes(whole[:-20] + bytes(20))
    with pytest.raises(Damaged, match="do not fit"):
        space.train()
    key.unlink()
    with pytest.raises(Damaged, match=r"epoch-0\.key.*no file"):
        space.status()


def test_another_key_opens_nothing_and_says_so(space: Workspace):
    space.disk.delete(space.keys.path(0))
    space.keys.make(0)
    assert "not wrapped under epoch 0" in failed(space)["records"]
