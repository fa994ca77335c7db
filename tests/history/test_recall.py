"""recall ∘ record = identity under any n − k losses or corruptions; beyond that a refusal, never a wrong answer."""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import Kept, small_kept, wide

from fedforget.coding import code_named
from fedforget.errors import Damaged, SealBroken, Unrecoverable
from fedforget.history.fetch import decode, examine
from fedforget.manifest import Bundle, Keeping, Label
from fedforget.sealing import unseal
from fedforget.slices import SliceKey
from fedforget.storage.memory import MemoryStore

KEEPINGS = {
    "shard (4, 2)": Keeping("shard", "full", 4, 2),
    "shard (4, 1)": Keeping("shard", "full", 4, 1),
    "shard, lean, compressed": Keeping("shard", "lean", 4, 2, compress=True),
    "cross (8, 2)": Keeping("cross", "full", 8, 2),
    "cross, lean (6, 2)": Keeping("cross", "lean", 6, 2, "chacha20-poly1305"),
}
WORLDS = {name: small_kept(keeping) for name, keeping in KEEPINGS.items()}
PLAIN = {name: world.plain() for name, world in WORLDS.items()}
DAMAGES = ("missing", "bit", "byte", "cut", "longer", "older", "elsewhere", "another", "empty")


@dataclass
class Spoiler:
    """Damages slices of one bundle in a copy of a world's store."""

    world: Kept
    bundle: Bundle

    def __post_init__(self) -> None:
        assert isinstance(self.world.store, MemoryStore)
        self.store = MemoryStore(dict(self.world.store.slices))
        rng = np.random.default_rng(5)
        code = code_named(self.bundle.code)
        # An older generation of the same place: another record, encoded by the same code. A valid codeword.
        self.older = code.encode([rng.bytes(self.bundle.width) for _ in range(code.k)])
        others = [b for b in self.world.history if b is not self.bundle]
        self.elsewhere = [self.world.store.get(key) for b in others for key in b.keys]

    def spoil(self, index: int, kind: str, at: int) -> None:
        key = self.bundle.keys[index]
        good = self.store.slices[key]
        at %= len(good)
        if kind == "missing":
            self.store.delete([key])
        elif kind == "bit":
            self._flip(key, at, 1 << at % 8)
        elif kind == "byte":
            self._flip(key, at, 255)
        elif kind == "another":
            self.store.put({key: self.world.store.get(self.bundle.keys[(index + 1) % len(self.bundle.keys)]) or b""})
        else:
            wrong = {
                "cut": good[:at],
                "longer": good + b"\0",
                "older": self.older[index],
                "elsewhere": self.elsewhere[at % len(self.elsewhere)] or b"",
                "empty": b"",
            }
            self.store.put({key: wrong[kind]})

    def _flip(self, key: SliceKey, at: int, mask: int) -> None:
        wrong = bytearray(self.store.slices[key])
        wrong[at] ^= mask
        self.store.put({key: bytes(wrong)})

    @property
    def recalled(self) -> Kept:
        return replace(self.world, store=self.store)

    @property
    def wrong(self) -> int:
        return sum(self.store.get(key) != self.world.store.get(key) for key in self.bundle.keys)


def assert_recalled(world: Kept, bundle: Bundle, plain: dict[Label, bytes]) -> None:
    opened = world.archive.open(bundle.by_label)
    assert set(opened) == set(bundle.by_label)
    for label, body in opened.items():
        if label.kind != "gram":
            assert body == plain[label]


@pytest.mark.parametrize("name", KEEPINGS)
def test_what_was_recorded_is_recalled(name: str):
    world = WORLDS[name]
    for bundle in world.bundles:
        assert_recalled(world, bundle, PLAIN[name])
    past = world.past()
    for made in world.rounds:
        assert past.roster(made.place) == made.roster
        assert np.array_equal(past.measures(made.place).gram, world_measures(made))
        if KEEPINGS[name].keep == "full":
            assert past.uploads(made.place) == made.uploads
            assert past.checkpoint(made.place) == made.start


def world_measures(made) -> np.ndarray:
    from fedforget.forgetting.past import Measures

    return Measures.of(made).gram


@settings(max_examples=400)
@given(st.data())
def test_any_damage_up_to_n_minus_k_changes_nothing_and_beyond_it_is_refused(data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(KEEPINGS)))
    world = WORLDS[name]
    bundle = data.draw(st.sampled_from(world.history))
    spoiler = Spoiler(world, bundle)
    order = data.draw(st.permutations(range(len(bundle.holders))))
    for index in order[: data.draw(st.integers(0, len(order)))]:
        spoiler.spoil(index, data.draw(st.sampled_from(DAMAGES)), data.draw(st.integers(0, 5000)))
    code = code_named(bundle.code)
    if spoiler.wrong <= code.n - code.k:
        assert_recalled(spoiler.recalled, bundle, PLAIN[name])
    else:
        with pytest.raises(Unrecoverable) as caught:
            spoiler.recalled.archive.open(bundle.by_label)
        assert caught.value.needed == code.k
        assert caught.value.good == code.n - spoiler.wrong


@settings(max_examples=400)
@given(st.data())
def test_without_hashes_liars_are_located_up_to_the_bound_and_beyond_it_nothing_wrong_is_answered(data: st.DataObject):
    name = data.draw(st.sampled_from(["shard (4, 1)", "shard (4, 2)", "cross (8, 2)", "cross, lean (6, 2)"]))
    world, plain = WORLDS[name], PLAIN[name]
    bundle = data.draw(st.sampled_from(world.history))
    code = code_named(bundle.code)
    spoiler = Spoiler(world, bundle)
    order = data.draw(st.permutations(range(code.n)))
    missing = data.draw(st.integers(0, code.n - code.k))
    for index in order[:missing]:
        spoiler.spoil(index, "missing", 0)
    bound = (code.n - missing - code.k) // 2
    liars = data.draw(st.sampled_from([bound, min(bound + 1, code.n - missing), code.n - missing]))
    for index in order[missing : missing + liars]:
        spoiler.spoil(index, data.draw(st.sampled_from(DAMAGES[1:])), data.draw(st.integers(0, 5000)))
    blind = replace(bundle, hashes=(None,) * code.n)
    recalled = replace(spoiler.recalled, bundles=(blind,))
    if spoiler.wrong - missing <= bound:
        assert_recalled(recalled, blind, plain)
    else:
        with suppress(Unrecoverable, Damaged, SealBroken):
            assert_recalled(recalled, blind, plain)  # slices too long or too short give themselves away


def test_hashes_of_some_slices_are_worth_as_much_as_they_can_be():
    """n = 8, k = 2: six wrong are survived as long as the hashes of two good ones are known."""
    world = WORLDS["cross (8, 2)"]
    bundle = world.history[0]
    spoiler = Spoiler(world, bundle)
    for index in range(6):
        spoiler.spoil(index, "older", 0)
    known = replace(bundle, hashes=(None,) * 6 + bundle.hashes[6:])
    assert decode(known, spoiler.store) == decode(bundle, world.store)
    # One hash short: the one that is known rules its own slices in, the others are located where they can be.
    with pytest.raises((Unrecoverable, Damaged)):
        replace(spoiler.recalled, bundles=(replace(bundle, hashes=(None,) * 7 + bundle.hashes[7:]),)).archive.open(
            bundle.by_label
        )
    # Known to be wrong is as good as missing: with those left out the others are enough to locate one more.
    few = Spoiler(world, bundle)
    for index in range(4):
        few.spoil(index, "older", 0)
    half = replace(bundle, hashes=(*bundle.hashes[:3], *(None,) * 5))
    assert decode(half, few.store) == decode(bundle, world.store)


def test_every_pattern_of_losses_of_a_small_bundle():
    world = WORLDS["shard (4, 2)"]
    bundle = world.history[0]
    for count in range(5):
        for lost in combinations(range(4), count):
            spoiler = Spoiler(world, bundle)
            for index in lost:
                spoiler.spoil(index, "missing", 0)
            if count <= 2:
                assert decode(bundle, spoiler.store) == decode(bundle, world.store)
            else:
                with pytest.raises(Unrecoverable):
                    decode(bundle, spoiler.store)


@pytest.mark.parametrize("name", KEEPINGS)
def test_examine_names_each_slice_that_is_not_what_it_should_be(name: str):
    world = WORLDS[name]
    bundle = world.history[0]
    spoiler = Spoiler(world, bundle)
    spoiler.spoil(0, "missing", 0)
    spoiler.spoil(1, "bit", 7)
    told = [str(finding) for _, _, finding in examine(bundle, spoiler.store) if finding]
    assert told == [f"{bundle.keys[0]} is missing", f"{bundle.keys[1]} is altered"]


@pytest.mark.parametrize("name", KEEPINGS)
def test_repair_makes_the_very_bytes_again_also_for_somebody_new(name: str):
    world = WORLDS[name]
    bundle = world.history[0]
    spoiler = Spoiler(world, bundle)
    spoiler.spoil(0, "missing", 0)
    spoiler.spoil(1, "byte", 3)
    mended = spoiler.recalled.archive.repair(bundle, {0: "somebody new", 1: bundle.holders[1]})
    assert mended.holders == ("somebody new", *bundle.holders[1:])
    assert mended.hashes == bundle.hashes
    assert spoiler.store.get(mended.keys[0]) == world.store.get(bundle.keys[0])
    assert spoiler.store.get(mended.keys[1]) == world.store.get(bundle.keys[1])


# --- records moved, swapped, replayed ---------------------------------------------------------------------


def test_a_record_put_in_the_place_of_another_does_not_open():
    """Whoever can write the manifest, digest and all, still lacks the key."""
    world = WORLDS["shard (4, 2)"]
    one, two = (b for b in world.history if b.shard == 0 and b.round < 2)
    label = next(x for x in one.by_label if x.kind == "upload")
    other = next(x for x in two.by_label if x.kind == "upload")
    bodies = world.archive.sealed(two, [other])
    swapped = replace(world.records[label], digest=world.records[other].digest)
    for wrapped in (world.records[label].wrapped, world.records[other].wrapped):
        with pytest.raises(SealBroken):
            unseal(world.keeper.vault, world.keeper.keeping.cipher, label, bodies[other], wrapped)
    lying = replace(two, spots=tuple(replace(s, label=label) if s.label == other else s for s in two.spots))
    archive = replace(world.archive, records={label: swapped}, bundles={label: lying})
    with pytest.raises(SealBroken):
        archive.open([label])


def test_a_whole_bundle_of_an_older_generation_does_not_open_in_place_of_the_newer():
    keeping = KEEPINGS["shard (4, 2)"]
    old = small_kept(keeping)
    new = Kept.of(old.keeper, old.rounds, generation=1)
    for before, after in zip(old.history, new.history, strict=True):
        for label in after.by_label:
            stale = replace(label, generation=0)
            archive = replace(
                new.archive,
                records={label: old.records[stale]},
                bundles={
                    label: replace(
                        before, spots=tuple(replace(s, label=replace(s.label, generation=1)) for s in before.spots)
                    )
                },
            )
            with pytest.raises(SealBroken):
                archive.open([label])


# --- a coalition of 52 of 100 -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hundred() -> Kept:
    return wide(100, 4)


def coalition(world: Kept, size: int) -> tuple[Bundle, MemoryStore]:
    """The last `size` holders hand in slices of one other codeword."""
    (bundle,) = world.history
    assert bundle.code == "rs8/100/4/0"
    rng = np.random.default_rng(1)
    other = code_named(bundle.code).encode([rng.bytes(bundle.width) for _ in range(4)])
    assert isinstance(world.store, MemoryStore)
    store = MemoryStore(dict(world.store.slices))
    store.put({bundle.keys[i]: other[i] for i in range(100 - size, 100)})
    return bundle, store


@pytest.mark.parametrize("size", [48, 52, 96])
def test_a_coalition_with_another_valid_codeword_is_seen_through_by_the_hashes(hundred: Kept, size: int):
    bundle, store = coalition(hundred, size)
    altered = [f for _, _, f in examine(bundle, store) if f]
    assert [f.key for f in altered] == list(bundle.keys[100 - size :])
    assert_recalled(replace(hundred, store=store), bundle, hundred.plain())


def test_beyond_n_minus_k_the_hashes_refuse(hundred: Kept):
    bundle, store = coalition(hundred, 97)
    with pytest.raises(Unrecoverable) as caught:
        replace(hundred, store=store).archive.open(bundle.by_label)
    assert caught.value.good == 3


def test_without_hashes_48_are_located_and_52_are_stopped_by_the_seal(hundred: Kept):
    bundle, store = coalition(hundred, 48)
    blind = replace(bundle, hashes=(None,) * 100)
    assert_recalled(replace(hundred, store=store, bundles=(blind,)), blind, hundred.plain())

    bundle, store = coalition(hundred, 52)
    world = replace(hundred, store=store, bundles=(blind,))
    with pytest.raises(Damaged):  # the record's own digest does not fit
        world.archive.open(blind.by_label)
    # If that is lost too: what the majority's codeword decodes to is refused by the seal of every record.
    blocks = decode(blind, store)
    rows = code_named(blind.code).encode(blocks)
    assert [rows[i] == store.get(key) for i, key in enumerate(blind.keys)] == [False] * 48 + [True] * 52
    for label in blind.by_label:
        body = forged_body(world, blind, label, blocks)
        with pytest.raises(SealBroken):
            unseal(world.keeper.vault, world.keeper.keeping.cipher, label, body, world.records[label].wrapped)


def forged_body(world: Kept, bundle: Bundle, label: Label, blocks: list[bytes]) -> bytes:
    from fedforget.coding import block_length, join

    spot, length = bundle.by_label[label], world.records[label].length
    width = block_length(length, len(blocks))
    return join([b[spot.offset : spot.offset + width] for b in blocks], length)


def test_without_hashes_any_number_of_liars_between_is_refused_or_stopped(hundred: Kept):
    for size in (49, 50, 51):
        bundle, store = coalition(hundred, size)
        blind = replace(bundle, hashes=(None,) * 100)
        with pytest.raises((Unrecoverable, Damaged)):
            replace(hundred, store=store, bundles=(blind,)).archive.open(blind.by_label)
