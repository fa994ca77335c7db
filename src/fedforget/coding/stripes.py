"""A record as k equal blocks, and back; buffers that kernels like; decoding past liars."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.protocol import Code, Readable
from fedforget.errors import SettingError, Unrecoverable

EVEN = 2  # the largest symbol of any code is two bytes


def view(data: Readable) -> NDArray[np.uint8]:
    """The bytes of any buffer, not copied; writable if the buffer is."""
    return np.frombuffer(data, np.uint8)


def block_length(size: int, k: int) -> int:
    """Bytes of each of the k blocks of a record of that size: equal, and even so that every code takes them."""
    return -(-size // (k * EVEN)) * EVEN


def stripe(record: Readable, k: int) -> list[NDArray[np.uint8]]:
    """The record as k equal blocks, the end padded with zeros. Blocks wholly inside the record are views."""
    if k < 1:
        raise SettingError("k", k, "at least 1")
    data = view(record)
    length = block_length(len(data), k)
    blocks = []
    for start in range(0, k * length, length) if length else [0] * k:
        part = data[start : start + length]
        if len(part) < length:
            part = np.concatenate([part, np.zeros(length - len(part), np.uint8)])
        blocks.append(part)
    return blocks


def join(blocks: Sequence[Readable], length: int) -> bytes:
    """The record of that many bytes whose stripes these are."""
    record = b"".join(view(block).tobytes() for block in blocks)
    if not 0 <= length <= len(record):
        raise Unrecoverable(f"a record of {length} bytes", length, len(record), "its blocks hold fewer bytes")
    return record[:length]


def buffers(count: int, length: int) -> NDArray[np.uint8]:
    """Rows to encode or decode into, contiguous; aligned to 64 bytes where the length is, which is fastest."""
    room = np.empty(count * length + 64, np.uint8)
    skip = -int(room.__array_interface__["data"][0]) % 64
    return room[skip : skip + count * length].reshape(count, length)


def recover(
    code: Code, slices: Mapping[int, Readable], *, length: int | None = None
) -> tuple[list[bytes], tuple[int, ...]]:
    """The blocks from slices of which some may lie, and who lied."""
    liars = code.locate_errors(slices, length=length)
    return code.decode({holder: s for holder, s in slices.items() if holder not in liars}), liars
