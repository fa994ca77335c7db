import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.coding import ReedSolomon, block_length, buffers, join, recover, stripe
from fedforget.errors import SettingError, Unrecoverable


@given(st.binary(max_size=500), st.integers(1, 40))
def test_join_undoes_stripe(record: bytes, k: int):
    blocks = stripe(record, k)
    assert len(blocks) == k
    assert {len(b) for b in blocks} == {block_length(len(record), k)}
    assert join(blocks, len(record)) == record


@given(st.integers(0, 10**9), st.integers(1, 1000))
def test_padding_is_less_than_two_bytes_a_block(size: int, k: int):
    assert 0 <= k * block_length(size, k) - size < 2 * k


def test_a_record_longer_than_its_blocks_is_refused():
    with pytest.raises(Unrecoverable):
        join([b"abc"], 4)
    with pytest.raises(SettingError):
        stripe(b"abc", 0)


def test_whole_blocks_are_not_copied():
    record = np.arange(64, dtype=np.uint8)
    assert all(np.shares_memory(block, record) for block in stripe(record, 4))


def test_buffers_are_aligned():
    rows = buffers(5, 128)
    assert rows.shape == (5, 128)
    assert rows.ctypes.data % 64 == 0
    assert rows.flags.c_contiguous


def test_recover_names_the_liars():
    code = ReedSolomon(9, 3)
    record = b"the quick brown fox"
    slices = dict(enumerate(code.encode(stripe(record, 3))))
    slices[4] = bytes(len(slices[4]))
    slices[7] = b""
    blocks, liars = recover(code, slices)
    assert (join(blocks, len(record)), liars) == (record, (4, 7))
