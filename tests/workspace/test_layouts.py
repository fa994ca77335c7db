"""What lies where: by shard, across shards as in the paper, or plainly at the server."""

from pathlib import Path

import pytest
from small import EVERY_KEEPING, KEEPS, assert_in_order, client, every_digest, make, opened, trained

from fedforget.coding import ReedSolomon, code_named
from fedforget.federation import Place
from fedforget.forgetting import Calibration
from fedforget.history.fetch import decode
from fedforget.manifest import Bundle, Keep, Layout
from fedforget.slices import ALL_SHARDS, HEAD, SERVER
from fedforget.workspace import Workspace

SHARD_0 = (client(1), client(2), client(4), client(7))
SHARD_1 = (client(0), client(3), client(5), client(6))


def lanes(space: Workspace, bundle: Bundle) -> dict[int, set[int]]:
    """Which shards lie in which block."""
    found: dict[int, set[int]] = {}
    for spot in bundle.spots:
        assert spot.lane is not None
        found.setdefault(spot.lane, set()).add(spot.label.shard)
    return found


def assert_encoded_afresh(space: Workspace, bundle: Bundle) -> None:
    """The slices that lie there are the code's of the blocks that come out, and nothing else is in the blocks."""
    state, code = space.state(), code_named(bundle.code)
    blocks = decode(bundle, space.store)
    assert [space.store.get(key) for key in bundle.keys] == code.encode(blocks)
    built = [bytearray() for _ in blocks]
    for label, body in state.archive.sealed(bundle, list(bundle.by_label)).items():
        lane = bundle.by_label[label].lane
        assert lane is not None
        assert bundle.by_label[label].offset == len(built[lane])
        built[lane] += body
    assert [bytes(b).ljust(bundle.width, b"\0") for b in built] == blocks


@pytest.mark.parametrize("method", ["exact", "clean", "calibrated"])
@pytest.mark.parametrize("keep", KEEPS)
def test_cross_slices_after_a_rebuild_are_those_of_a_fresh_encoding(room: Path, keep: Keep, method: str):
    with opened(trained(room / "w", "cross", keep)) as space:
        sealed = {x: r.digest for x, r in space.state().records.items() if x.shard == 1}
        space.forget([client(7)], method)
        state = space.state()
        for bundle in state.history:
            assert bundle.shard == ALL_SHARDS
            assert lanes(space, bundle) == {0: {0}, 1: {1}}
            assert_encoded_afresh(space, bundle)
        assert [b.generation for b in sorted(state.history, key=lambda b: b.round)] == [0, 1, 1]
        # The other shard's records travelled on as they were sealed.
        assert {x: r.digest for x, r in state.records.items() if x.shard == 1} == sealed


@pytest.mark.parametrize("keep", KEEPS)
def test_an_emptied_shard_leaves_the_cross_slices_and_the_others_keep_theirs(room: Path, keep: Keep):
    with opened(trained(room / "w", "cross", keep)) as space:
        before = {place: bits for place, bits in every_digest(space).items() if place[1] == 1}
        space.forget(SHARD_0)
        state = space.state()
        assert {spot.label.shard for bundle in state.bundles for spot in bundle.spots} == {1}
        for bundle in state.history:
            assert not set(bundle.holders) & set(SHARD_0)
            assert code_named(bundle.code).k == 1  # one shard is left to mix
            assert_encoded_afresh(space, bundle)
        assert every_digest(space) == before
        assert_in_order(space)
        uploads = {u.client for p in state.rows for u in (state.past.uploads(p) if keep == "full" else ())}
        assert uploads <= set(SHARD_1)


def test_fewer_clients_than_shards_are_left_and_still_hold_the_cross_slices_of_whom_there_are(room: Path):
    """Eight clients in four shards; after the sixth has gone the paper's k = S would ask for slices nobody can hold."""
    space = make(room / "w", "cross", "full", shards=4, holders=4)
    space.train()
    plan = space.state().plan
    one_a_shard = [plan.present(0, shard)[0] for shard in range(4)]
    others = [plan.present(0, shard)[1] for shard in range(4)]
    for leaver in [*others, *one_a_shard[:2]]:
        space.forget([leaver])
        assert_in_order(space)
    state = space.state()
    assert {code_named(b.code).description for b in state.history} == {ReedSolomon(2, 2).description}
    assert space.verify(never_joined=True).passed
    space.forget([one_a_shard[2]], "clean", Calibration(length=0.3))
    assert_in_order(space)
    space.close()


@pytest.mark.parametrize(("layout", "keep"), EVERY_KEEPING)
def test_everybody_leaves_and_nothing_is_left(room: Path, layout: Layout, keep: Keep):
    with opened(trained(room / "w", layout, keep)) as space:
        space.forget(SHARD_0)
        space.forget(SHARD_1)
        assert list(space.store.keys()) == []
        assert space.state().records == {}
        assert space.state().served() == {}
        assert_in_order(space)
        space.train()
        assert_in_order(space)


@pytest.mark.parametrize("layout", ["shard", "cross"])
def test_everybody_leaves_at_once(room: Path, layout: Layout):
    with opened(trained(room / "w", layout)) as space:
        report = space.forget(SHARD_0 + SHARD_1)
        assert report.ended == (0, 1)
        assert list(space.store.keys()) == []
        assert_in_order(space)


@pytest.mark.parametrize("layout", ["shard", "cross"])
def test_leavers_one_after_another_take_no_untouched_round_with_them(room: Path, layout: Layout):
    """Round 0 was trained by one client alone; when the other holders of its slices have gone, it is still there."""
    space = make(room / "w", layout, "full", participants=1, rounds=8, holders=8, threshold=6)
    space.train()
    plan = space.state().plan
    (alone,) = plan.cohort(0, 0, 0)
    others = [c for c in plan.present(0, 0) if c != alone and plan.first_round(0, 0, [c])]
    assert len(others) >= 2
    first = space.state().rows[Place(0, 0, 0)]
    for leaver in [*others, *plan.present(0, 1)]:
        space.forget([leaver])
        assert_in_order(space)
    assert space.state().rows[Place(0, 0, 0)] == first
    assert [u.client for u in space.state().past.uploads(Place(0, 0, 0))] == [alone]
    assert space.verify(never_joined=True).passed
    space.close()


def test_shard_slices_never_leave_their_shard_and_any_k_bring_the_record_back(room: Path):
    with opened(trained(room / "w", "shard")) as space:
        state = space.state()
        for bundle in state.history:
            assert set(bundle.holders) <= set(state.plan.present(bundle.stage, bundle.shard))
            assert bundle.code == "rs8/3/2/0"
            for lost in bundle.keys:
                kept = space.store.get(lost)
                space.store.delete([lost])
                assert set(state.archive.open(bundle.by_label)) == set(bundle.by_label)
                space.store.put({lost: kept})


def test_the_server_layout_keeps_each_record_once_and_at_the_server(room: Path):
    with opened(trained(room / "w", "server")) as space:
        state = space.state()
        assert {key.holder for key in space.store.keys()} == {SERVER, HEAD}  # noqa: SIM118
        kept = sum(len(space.store.get(k) or b"") for k in space.store.keys(SERVER))
        records = [r.length for label, r in state.records.items() if label.kind != "head"]
        assert sum(records) <= kept <= sum(length + 1 for length in records)


def test_a_shard_of_fewer_clients_than_holders_keeps_the_same_share_as_threshold(room: Path):
    space = make(room / "w", "shard", "full", holders=8, threshold=5)
    space.train()
    assert {b.code for b in space.state().history} == {"rs8/4/3/0"}
    space.forget(SHARD_0[:3])
    assert {b.code for b in space.state().history if b.shard == 0} == {"rs8/1/1/0"}
    assert space.state().past.roster(Place(0, 0, 0)) == (SHARD_0[3],)
    assert_in_order(space)
    space.close()


@pytest.mark.parametrize("layout", ["shard", "cross", "server"])
def test_compression_changes_the_slices_and_nothing_else(room: Path, layout: Layout):
    from small import small_settings, small_task

    ends = []
    for compress in (False, True):
        plain = small_settings(layout, "full")
        keeping = {"layout": layout, "keep": "full", "holders": 3, "threshold": 2, "compress": compress}
        settings = type(plain).of(
            {
                "clients": 8,
                "shards": 2,
                "participants": 2,
                "rounds": 3,
                "epochs": 2,
                "seed": 1,
                "federation": "small",
                "keeping": keeping,
            }
        )
        space = Workspace.init(room / str(compress), settings, task=small_task())
        space.train()
        space.forget([client(7)], "calibrated")
        assert_in_order(space)
        ends.append(every_digest(space))
        space.close()
    assert ends[0] == ends[1]
