import itertools
import random

import numpy as np
import pytest
import reference_field as slow
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.coding import ReedSolomon, code_named, join, stripe
from fedforget.coding.field import field, invert
from fedforget.errors import SettingError, Unrecoverable


@pytest.mark.parametrize(("n", "k", "masks", "bits"), [(6, 3, 0, 8), (6, 3, 0, 16), (9, 2, 2, 8), (9, 2, 2, 16)])
def test_golden_vectors_of_the_slow_implementation(n: int, k: int, masks: int, bits: int):
    source = random.Random(bits * n)
    blocks = [source.randbytes(8) for _ in range(k + masks)]
    fresh = iter(blocks[k:])
    code = ReedSolomon(n, k, masks, bits)
    assert code.encode(blocks[:k], entropy=lambda size: next(fresh)) == slow.encode(blocks, n, bits)


def test_golden_vectors_written_down():
    """Slices on disk outlive the program: these bytes may never change."""
    blocks = [bytes(range(4)), b"\x10\x20\x30\x40", b"\xff\x00\xff\x00"]
    got8 = [s.hex() for s in ReedSolomon(4, 3).encode(blocks)]
    got16 = [s.hex() for s in ReedSolomon(4, 3, bits=16).encode(blocks)]
    assert got8 == [s.hex() for s in slow.encode(blocks, 4, 8)]
    assert got8 == GOLDEN8
    assert got16 == GOLDEN16


GOLDEN8 = ["ef21cd43", "b812bb2b", "a8338968", "47134628"]
GOLDEN16 = ["ef21cd43", "9f19ae30", "8f389c73", "60185333"]


@pytest.mark.parametrize("bits", [8, 16])
def test_every_small_code_and_every_erasure_pattern(bits: int):
    rng = np.random.default_rng(bits)
    patterns = 0
    for n in range(1, 11):
        for k in range(1, n + 1):
            code = ReedSolomon(n, k, bits=bits)
            blocks = rng.integers(0, 256, (k, 2), dtype=np.uint8)
            original = [b.tobytes() for b in blocks]
            slices = code.encode(original)
            for kept in range(n + 1):
                for holders in itertools.combinations(range(n), kept):
                    have = {h: slices[h] for h in holders}
                    patterns += 1
                    if kept >= k:
                        assert code.decode(have) == original
                    else:
                        with pytest.raises(Unrecoverable) as caught:
                            code.decode(have)
                        assert (caught.value.needed, caught.value.good) == (k, kept)
    assert patterns == sum(n * 2**n for n in range(1, 11))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 5), st.binary(max_size=300), st.data())
def test_any_k_slices_give_a_record_back(k: int, more: int, masks: int, record: bytes, data: st.DataObject):
    code = ReedSolomon(k + masks + more, k, masks)
    slices = code.encode(stripe(record, k))
    kept = data.draw(st.permutations(range(code.n)))[: k + masks]
    assert join(code.decode({h: slices[h] for h in kept}), len(record)) == record


def test_field_follows_from_the_number_of_points():
    assert ReedSolomon(236, 20).bits == 8
    assert ReedSolomon(237, 20).bits == 16
    assert ReedSolomon(226, 20, 10).bits == 8
    assert ReedSolomon(227, 20, 10).bits == 16
    assert ReedSolomon(65535, 1).bits == 16


def test_not_systematic():
    code = ReedSolomon(20, 4)
    blocks = [bytes([i] * 4) for i in (1, 2, 3, 4)]
    assert not set(blocks) & set(code.encode(blocks))
    assert (np.count_nonzero(code.generator, axis=1) == 4).all(), "every slice depends on every block"


@pytest.mark.parametrize("bits", [8, 16])
def test_any_masks_holders_learn_nothing(bits: int):
    """For every T holders the T×T matrix of masks is invertible: whatever the data, all slices are equally likely."""
    for n, k, masks in ((8, 2, 1), (8, 2, 3), (9, 3, 4), (7, 1, 5)):
        code = ReedSolomon(n, k, masks, bits)
        for holders in itertools.combinations(range(n), masks):
            part = code.generator[list(holders)][:, k:]
            invert(field(bits), part)


def test_masked_slices_of_one_symbol_take_every_value_equally_often():
    code = ReedSolomon(5, 1, 1)
    for secret in (b"\x00", b"\xa5"):
        for holder in range(5):
            views = {code.encode([secret], entropy=lambda _, m=m: bytes([m]))[holder] for m in range(256)}
            assert len(views) == 256


def test_masks_are_fresh_every_time():
    code = ReedSolomon(8, 2, 2)
    blocks = [b"same", b"data"]
    first, second = code.encode(blocks), code.encode(blocks)
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert code.decode({5: first[5], 1: first[1], 2: first[2], 7: first[7]}) == blocks


def test_slices_of_another_length_are_left_out():
    code = ReedSolomon(6, 2)
    blocks = [b"abcd", b"efgh"]
    slices = dict(enumerate(code.encode(blocks)))
    slices[0] = slices[0][:3]
    slices[1] += b"!"
    assert code.decode(slices) == blocks
    assert code.decode(slices, length=4) == blocks
    with pytest.raises(Unrecoverable, match="more have another length"):
        code.decode({0: slices[0], 1: slices[1], 2: slices[2]})
    with pytest.raises(Unrecoverable, match="more than one length"):
        code.decode({0: b"ab", 1: b"cd", 2: slices[2], 3: slices[3]})
    assert code.decode({0: b"ab", 1: b"cd", 2: slices[2], 3: slices[3]}, length=4) == blocks
    with pytest.raises(Unrecoverable):
        code.decode({})


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReedSolomon(3, 0),
        lambda: ReedSolomon(3, 4),
        lambda: ReedSolomon(4, 3, 2),
        lambda: ReedSolomon(4, 3, -1),
        lambda: ReedSolomon(65535, 2),
        lambda: ReedSolomon(300, 20, bits=8),
        lambda: ReedSolomon(10, 2, bits=32),
        lambda: ReedSolomon(5, 2).encode([b"a"]),
        lambda: ReedSolomon(5, 2).encode([b"a", b"bc"]),
        lambda: ReedSolomon(5, 2, bits=16).encode([b"abc", b"abc"]),
        lambda: ReedSolomon(5, 2).encode_into([b"a", b"b"], [bytearray(1)] * 4),
        lambda: ReedSolomon(5, 2).encode_into([b"a", b"b"], [memoryview(bytes(1)) for _ in range(5)]),
        lambda: ReedSolomon(5, 2).decode({0: b"a", 5: b"b"}),
        lambda: ReedSolomon(5, 2).decode({-1: b"a", 3: b"b"}),
        lambda: ReedSolomon(5, 2).update(b"a", 0, 2, b"b"),
        lambda: ReedSolomon(5, 2).update(b"a", 5, 0, b"b"),
        lambda: ReedSolomon(5, 2).update(b"ab", 0, 0, b"b"),
        lambda: code_named("rs8/300/20/0"),
        lambda: code_named("rs8/20/4"),
        lambda: code_named("rs8/20/04/0"),
        lambda: code_named("rs32/20/4/0"),
        lambda: code_named("rs8/20/4/0\n"),
    ],
)
def test_settings_that_cannot_be(make):
    with pytest.raises(SettingError):
        make()


@pytest.mark.parametrize("code", [ReedSolomon(20, 10), ReedSolomon(300, 20, 7), ReedSolomon(20, 4, 1, 16)])
def test_description_names_the_code(code: ReedSolomon):
    again = code_named(code.description)
    assert again == code
    assert (again.name, again.n, again.k, again.masks) == (code.name, code.n, code.k, code.masks)
