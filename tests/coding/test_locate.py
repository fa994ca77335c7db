import random

import numpy as np
import pytest
from patterns import SHAPES, World

from fedforget.coding import NumpyKernel, ReedSolomon, fastest_kernel, recover
from fedforget.coding.field import field
from fedforget.coding.locate import PROJECTIONS, project, wrong_symbols
from fedforget.errors import SettingError, TooManyErrors, Unrecoverable


def run(shape: tuple[int, int], worlds: int, each: int) -> None:
    source = random.Random(repr(shape))
    outcomes = [world.check() for world in (World(*shape, source) for _ in range(worlds)) for _ in range(each)]
    assert {"exact", "refused"} == set(outcomes)


@pytest.mark.parametrize("shape", SHAPES)
def test_random_damage(shape: tuple[int, int]):
    run(shape, 5, 30)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_random_damage_at_length(shape: tuple[int, int]):
    """5,500 patterns a shape, 22,000 together: exact up to the bound, refused beyond, no wrong answer."""
    run(shape, 55, 100)


@pytest.mark.parametrize("bits", [8, 16])
def test_every_pattern_of_liars_in_a_small_code(bits: int):
    code = ReedSolomon(7, 3, bits=bits)
    blocks = [b"ab", b"cd", b"ef"]
    slices = code.encode(blocks)
    for liars in range(1 << 7):
        have = {h: bytes(b ^ 1 + h for b in s) if liars >> h & 1 else s for h, s in enumerate(slices)}
        names = tuple(h for h in range(7) if liars >> h & 1)
        if len(names) <= 2:
            assert recover(code, have) == (blocks, names)


@pytest.mark.parametrize("kernel", [NumpyKernel(), fastest_kernel()])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("size", [2, 1024, 5000, 200_002])
def test_one_wrong_bit_anywhere_in_a_long_slice(kernel, bits: int, size: int):
    code = ReedSolomon(7, 3, bits=bits, kernel=kernel)
    rng = np.random.default_rng(size)
    slices = {h: bytearray(s) for h, s in enumerate(code.encode([rng.bytes(size) for _ in range(3)]))}
    slices[2][size - 1] ^= 128
    slices[5][0] ^= 1
    assert code.locate_errors(slices) == (2, 5)
    slices[0][size // 2] ^= 1
    with pytest.raises(TooManyErrors):
        code.locate_errors(slices)


@pytest.mark.parametrize("bits", [8, 16])
def test_projecting_commutes_with_the_code(bits: int):
    gf, rng = field(bits), np.random.default_rng(1)
    draws = rng.bytes(1 << 20)
    rows = [rng.integers(0, 256, 5000, dtype=np.uint8) for _ in range(2)]
    factor = np.array([[3, 7]], np.uint16)
    mixed = np.zeros(5000, np.uint8)
    split = [half for row in rows for half in ([row] if bits == 8 else [row[:2500], row[2500:]])]
    outs = [mixed] if bits == 8 else [mixed[:2500], mixed[2500:]]
    NumpyKernel().apply(gf, factor, split, outs)
    words = project(gf, fastest_kernel(), [*rows, mixed], PROJECTIONS[bits], lambda size: draws[:size])
    assert np.array_equal(gf.product(factor, words[:2])[0], words[2])


@pytest.mark.parametrize("bits", [8, 16])
def test_a_projection_that_hides_a_liar_costs_nothing_but_another(bits: int):
    """The first draws are zeros, in which every error vanishes; later ones are not."""
    code = ReedSolomon(9, 3, bits=bits)
    rng = np.random.default_rng(0)
    blocks = [rng.bytes(4) for _ in range(3)]
    slices = dict(enumerate(code.encode(blocks)))
    slices[0] = rng.bytes(4)
    times, symbols = PROJECTIONS[bits], 4 // code.symbol

    def blind(size: int) -> bytes:
        draws = np.frombuffer(rng.bytes(size), np.uint8 if bits == 8 else np.uint16).reshape(symbols, times).copy()
        draws[:, 0] = 0
        return draws.tobytes()

    assert code.locate_errors(slices, entropy=blind) == (0,)


def test_draws_that_hide_everything_end_in_a_refusal_or_the_truth():
    code = ReedSolomon(9, 3)
    slices = dict(enumerate(code.encode([b"abcd", b"efgh", b"ijkl"])))
    slices[8] = b"lies"
    assert code.locate_errors(slices, entropy=bytes) == (8,), "not among the first k: seen when comparing"
    slices[0] = b"liar"
    with pytest.raises(TooManyErrors):
        code.locate_errors(slices, entropy=bytes)


def test_lengths():
    code = ReedSolomon(10, 4)
    good = dict(enumerate(code.encode([b"abcd", b"efgh", b"ijkl", b"mnop"])))
    have = {**good, 1: b"abc", 2: b"abcde", 3: b""}
    assert code.locate_errors(have) == (1, 2, 3)
    assert code.locate_errors(have, length=4) == (1, 2, 3)
    have[4] = b"lies"
    with pytest.raises(TooManyErrors):
        code.locate_errors(have)
    assert code.locate_errors(have, length=4) == (1, 2, 3, 4), "of known length: missing, not wrong"
    with pytest.raises(Unrecoverable):
        code.locate_errors(have, length=5)
    wide = ReedSolomon(10, 4, bits=16)
    with pytest.raises(SettingError):
        wide.locate_errors(dict.fromkeys(range(10), b"odd"))


def test_a_coalition_with_another_codeword_up_to_the_bound_is_named():
    code = ReedSolomon(100, 4)
    source = random.Random(4)
    true, other = ([source.randbytes(8) for _ in range(4)] for _ in range(2))
    honest, lying = code.encode(true), code.encode(other)
    coalition = sorted(source.sample(range(100), 48))
    have = {h: lying[h] if h in coalition else honest[h] for h in range(100)}
    assert recover(code, have) == (true, tuple(coalition))


@pytest.mark.parametrize("size", [49, 50, 51])
def test_a_coalition_just_beyond_the_bound_is_refused(size: int):
    code = ReedSolomon(100, 4)
    source = random.Random(size)
    honest, lying = (code.encode([source.randbytes(8) for _ in range(4)]) for _ in range(2))
    coalition = source.sample(range(100), size)
    have = {h: lying[h] if h in coalition else honest[h] for h in range(100)}
    with pytest.raises(TooManyErrors):
        code.locate_errors(have)


def test_a_coalition_of_52_of_100_wins_without_hashes_and_only_the_seal_can_tell():
    """The limit of any decoder: this word is within the bound of the coalition's codeword. See docs/coding.md."""
    code = ReedSolomon(100, 4)
    source = random.Random(52)
    true, other = ([source.randbytes(8) for _ in range(4)] for _ in range(2))
    honest, lying = code.encode(true), code.encode(other)
    coalition = source.sample(range(100), 52)
    have = {h: lying[h] if h in coalition else honest[h] for h in range(100)}
    blocks, accused = recover(code, have)
    assert blocks == other
    assert set(accused) == set(range(100)) - set(coalition)
    kept_by_hash = {h: have[h] for h in range(100) if have[h] == honest[h]}
    assert code.decode(kept_by_hash) == true, "with hashes the honest 48 are more than enough"


def test_without_a_slice_to_spare_nothing_can_be_seen():
    code = ReedSolomon(6, 4)
    slices = dict(list(enumerate(code.encode([b"abcd", b"efgh", b"ijkl", b"mnop"])))[:4])
    slices[0] = b"lies"
    assert code.locate_errors(slices) == ()


@pytest.mark.parametrize("bits", [8, 16])
def test_decoder_of_one_word(bits: int):
    gf, rng = field(bits), np.random.default_rng(bits)
    code = ReedSolomon(30, 6, bits=bits)
    for wrong in range(16):
        message = rng.integers(0, gf.order, (6, 1)).astype(np.uint16)
        word = gf.product(code.generator, message)[:, 0]
        at = np.sort(rng.choice(30, wrong, replace=False))
        word[at] ^= rng.integers(1, gf.order, wrong).astype(np.uint16)
        found = wrong_symbols(gf, code.points, word, 6)
        if wrong <= 12:
            assert found is not None
            assert np.array_equal(found, at)
        else:
            assert found is None
