"""What is kept of a round, by whom, and under which code."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from kept import VAULT, Kept, small, small_kept

from fedforget.coding import code_named
from fedforget.errors import Unrecoverable
from fedforget.federation import Place, Round, Upload
from fedforget.history import Keeper
from fedforget.manifest import Keeping
from fedforget.plan import Plan, Stage
from fedforget.slices import ALL_SHARDS, HEAD, SERVER
from fedforget.storage.memory import MemoryStore
from strategies import SOFTMAX

FULL, LEAN = Keeping("shard", "full", 4, 2), Keeping("shard", "lean", 4, 2)


def kinds(kept: Kept, place: Place) -> Counter[str]:
    return Counter(label.kind for label in kept.records if label.place == place)


def test_full_keeps_every_upload_and_the_inner_products():
    kept = small_kept(FULL)
    for made in kept.rounds:
        assert kinds(kept, made.place) == {"upload": len(made.uploads), "gram": 1, "head": 1}


def test_lean_keeps_uploads_and_the_model_before_only_where_somebody_is_new():
    kept = small_kept(LEAN, rounds=6)
    seen: dict[int, set[str]] = {0: set(), 1: set()}
    for made in kept.rounds:
        new = set(made.roster) - seen[made.place.shard]
        seen[made.place.shard] |= set(made.roster)
        wanted = Counter({"gram": 1, "head": 1})
        if new:
            wanted["upload"] = len(made.uploads)
            wanted["start"] = int(made.place.round > 0)
        assert kinds(kept, made.place) == +wanted
    assert any(kinds(kept, r.place)["upload"] == 0 for r in kept.rounds)


def odd_round(kind: str = "plain") -> Round:
    """A round whose model is not the mean of its uploads."""
    start, one, two, end = (SOFTMAX.init(seed) for seed in range(4))
    return Round(Place(0, 0, 1), start, (Upload("a", one, 3), Upload("c", two, 1)), end, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("keeping", [FULL, LEAN])
def test_a_model_that_is_not_the_mean_of_its_uploads_is_kept_beside_them(keeping: Keeping):
    _, keeper = small(keeping)
    kept = Kept.of(keeper, [odd_round("calibrated")])
    assert kinds(kept, Place(0, 0, 1))["model"] == 1
    past = kept.past()
    assert past.final((0, 0)) == odd_round().model
    kept.store.delete([key for key in kept.store.keys() if key.holder == HEAD])  # noqa: SIM118
    assert past.final((0, 0)) == odd_round().model
    kept.store.delete(list(kept.store.keys()))
    with pytest.raises(Unrecoverable, match="needs 2 good slices"):  # rather than the mean it is not
        past.final((0, 0))


def test_a_round_of_nobody_is_kept_too():
    for keeping in (FULL, LEAN, Keeping("cross", "full", 8, 2), Keeping("server")):
        _, keeper = small(keeping)
        start = SOFTMAX.init(0)
        kept = Kept.of(keeper, [Round(Place(0, 0, 0), start, (), start, kind="skipped")])
        assert kept.past().uploads(Place(0, 0, 0)) == ()
        assert kept.past().measures(Place(0, 0, 0)).gram.shape == (0, 0, 0)
        assert kept.past().final((0, 0)) == start


def test_without_inner_products_they_are_measured_from_the_uploads():
    kept = small_kept(FULL)
    bare = replace(kept, records={x: r for x, r in kept.records.items() if x.kind != "gram"})
    for made in kept.rounds:
        measured, stored = bare.past().measures(made.place), kept.past().measures(made.place)
        assert np.array_equal(measured.gram, stored.gram)
        assert (measured.roster, measured.examples) == (stored.roster, stored.examples)


@pytest.mark.parametrize(
    ("keeping", "shard", "code"),
    [
        (Keeping("shard", "full", 4, 2), 0, "rs8/4/2/0"),
        (Keeping("shard", "full", 20, 10), 0, "rs8/4/2/0"),
        (Keeping("shard", "full", 20, 1), 0, "rs8/4/1/0"),
        (Keeping("shard", "full", 20, 20), 0, "rs8/4/4/0"),
        (Keeping("shard", "full", 3, 3), 1, "rs8/3/3/0"),
        (Keeping("cross", "full", 20, 10), ALL_SHARDS, "rs8/8/2/0"),
        (Keeping("cross", "full", 5, 1), ALL_SHARDS, "rs8/5/2/0"),
        (Keeping("server"), 0, "rs8/1/1/0"),
    ],
)
def test_the_code_follows_holders_and_threshold_and_never_asks_for_more_holders_than_there_are(keeping, shard, code):
    _, keeper = small(keeping)
    assert keeper.code_of(0, shard).description == code
    assert len(keeper.holders(0, shard)) == code_named(code).n


def test_holders_are_a_function_of_the_seed_and_move_only_where_one_leaves():
    plan = Plan.of([f"c{i:02d}" for i in range(30)], shards=2, rounds=2)
    keeper = Keeper("f", plan, Keeping("shard", "full", 5, 2), True, VAULT, MemoryStore())
    holders = keeper.holders(0, 0)
    assert holders == keeper.holders(0, 0)
    assert len(set(holders)) == 5
    assert set(holders) <= set(plan.present(0, 0))
    for leaver in plan.present(0, 0):
        after = replace(keeper, plan=plan.without([leaver])).holders(0, 0)
        assert set(holders) - {leaver} <= set(after)
    assert Keeper("f", plan, Keeping("server"), True, VAULT, MemoryStore()).holders(0, 1) == (SERVER,)


def test_only_those_present_in_a_stage_hold_its_slices():
    plan = Plan.of("abcdefgh", shards=2, rounds=1).next_stage(Stage(1), join={"i": 8}, leave=["a"])
    keeper = Keeper("f", plan, Keeping("cross", "full", 20, 2), True, VAULT, MemoryStore())
    assert set(keeper.holders(0, ALL_SHARDS)) == set("abcdefgh")
    assert set(keeper.holders(1, ALL_SHARDS)) == set("bcdefghi")


def test_a_step_is_placed_at_once():
    class Counting(MemoryStore):
        puts = 0

        def put(self, pieces) -> None:
            type(self).puts += 1
            super().put(pieces)

    federation, keeper = small(Keeping("cross", "full", 8, 2))
    keeper = replace(keeper, store=Counting())
    keeper.record([r for r in federation.past.by_place.values() if r.place.round == 0], 0)
    assert Counting.puts == 1


def test_shards_of_very_different_size_share_cross_slices_of_the_longest():
    """Padding is in no record: each lane comes back as long as it was."""
    _, keeper = small(Keeping("cross", "full", 8, 2))
    start = SOFTMAX.init(0)
    many = tuple(Upload(c, SOFTMAX.init(i + 1), 2) for i, c in enumerate("abcdef"))
    rounds = [
        Round(Place(0, 0, 0), start, many, SOFTMAX.init(50)),
        Round(Place(0, 1, 0), start, many[:1], many[0].params),
    ]
    kept = Kept.of(keeper, rounds)
    (bundle,) = kept.history
    assert bundle.width >= 6 * len(start.to_bytes())
    for made in rounds:
        assert kept.past().uploads(made.place) == made.uploads
