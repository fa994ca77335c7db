import numpy as np
import pytest
import reference_field as slow
from hypothesis import given
from hypothesis import strategies as st

from fedforget.coding.field import field, invert, lagrange

every = np.arange(256, dtype=np.uint16)
elements = st.integers(0, 65535)


def test_gf256_is_a_field_checked_exhaustively():
    gf = field(8)
    table = gf.multiply(every[:, None], every[None, :])
    assert np.array_equal(table, table.T)
    assert np.array_equal(table[1], every)
    assert not table[0].any()
    assert (np.sort(table[1:, 1:], axis=1) == every[1:]).all(), "multiplying by a non-zero element permutes"
    for a in range(256):
        assert np.array_equal(table[table[a]][:, every], table[a][table]), "associative"
        assert np.array_equal(table[a][every[:, None] ^ every], table[a][:, None] ^ table[a][None, :]), "distributive"


def test_gf256_agrees_with_the_slow_one_exhaustively():
    table = field(8).multiply(every[:, None], every[None, :])
    assert table.tolist() == [[slow.multiply(a, b, 8) for b in range(256)] for a in range(256)]


@pytest.mark.parametrize("bits", [8, 16])
def test_every_inverse(bits: int):
    gf = field(bits)
    nonzero = np.arange(1, gf.order, dtype=np.uint16)
    assert (gf.multiply(nonzero, gf.inverse(nonzero)) == 1).all()
    assert (gf.divide(nonzero, nonzero) == 1).all()
    with pytest.raises(ZeroDivisionError):
        gf.inverse([3, 0])


@given(elements, elements, elements)
def test_gf65536_is_a_field(a: int, b: int, c: int):
    gf = field(16)
    times = gf.multiply
    assert times(a, b) == times(b, a) == slow.multiply(a, b, 16)
    assert times(times(a, b), c) == times(a, times(b, c))
    assert times(a, b ^ c) == times(a, b) ^ times(a, c)
    assert times(a, 1) == a
    assert times(a, 0) == 0
    if a:
        assert gf.inverse(a) == slow.inverse(a, 16)


@pytest.mark.parametrize("bits", [8, 16])
def test_x_generates_everything(bits: int):
    gf = field(bits)
    assert len(set(gf.exp[: gf.order - 1].tolist())) == gf.order - 1


@pytest.mark.parametrize("bits", [8, 16])
def test_inverse_of_a_matrix(bits: int):
    gf, rng = field(bits), np.random.default_rng(bits)
    square = rng.integers(0, gf.order, (7, 7)).astype(np.uint16)
    assert np.array_equal(gf.product(square, invert(gf, square)), np.eye(7))
    square[3] = square[5]
    with pytest.raises(ZeroDivisionError):
        invert(gf, square)


@given(st.sampled_from([8, 16]), st.integers(1, 9), st.integers(1, 9), st.data())
def test_lagrange_is_the_formula(bits: int, k: int, targets: int, data: st.DataObject):
    top = (1 << bits) - 1
    points = data.draw(st.lists(st.integers(0, top), min_size=k + targets, max_size=k + targets, unique=True))
    values = data.draw(st.lists(st.integers(0, top), min_size=k, max_size=k))
    matrix = lagrange(field(bits), np.array(points[:k], np.uint16), np.array(points[k:], np.uint16))
    got = field(bits).product(matrix, np.array(values, np.uint16)[:, None])[:, 0]
    known = dict(zip(points[:k], values, strict=True))
    assert got.tolist() == [slow.interpolate(known, t, bits) for t in points[k:]]


@given(st.sampled_from([8, 16]), st.data())
def test_images_are_multiplication_bit_by_bit(bits: int, data: st.DataObject):
    a, b = (data.draw(st.integers(0, (1 << bits) - 1)) for _ in range(2))
    images = field(bits).images(a)
    product = 0
    for bit in range(bits):
        product ^= int(images[bit]) if b >> bit & 1 else 0
    assert product == slow.multiply(a, b, bits)
