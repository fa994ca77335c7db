"""Matrix times blocks over GF(2⁸) or GF(2¹⁶): what a kernel is, and one in plain NumPy.

How symbols lie in a block. GF(2⁸): each byte is one. GF(2¹⁶): byte j of the first half is the low byte and byte j
of the second half the high byte of symbol j. So a block is one or two *planes* of bytes, multiplication by a constant is an
8×8 matrix over GF(2) between planes, and one kernel serves both fields.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.field import Elements, Field

Plane = NDArray[np.uint8]
PARALLEL_FROM = 1 << 19  # below this many bytes of work starting a thread costs more than it saves


class Kernel(Protocol):
    """outputs = matrix · inputs, or outputs ^= matrix · inputs when accumulating.

    Inputs and outputs are contiguous arrays of bytes, all of one length, a multiple of the field's symbol.
    No output may overlap another or an input.
    """

    @property
    def name(self) -> str: ...

    def apply(
        self,
        gf: Field,
        matrix: Elements,
        inputs: Sequence[Plane],
        outputs: Sequence[Plane],
        *,
        accumulate: bool = False,
    ) -> None: ...


def planes(gf: Field, blocks: Sequence[Plane]) -> list[Plane]:
    """Each block cut into its `gf.bytes` planes."""
    if gf.bytes == 1:
        return list(blocks)
    half = len(blocks[0]) // 2 if blocks else 0
    return [plane for block in blocks for plane in (block[:half], block[half:])]


def workers() -> int:
    """Threads worth starting: memory is what runs out first, so more than a few gain nothing."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, 8)


def spread(work: Callable[[int, int], None], length: int, grain: int, threads: int) -> None:
    """Call work(start, stop) over parts of [0, length), cut at multiples of `grain`, in threads.

    Threads live for one call only: a pool would not survive a fork and starting one costs 50 µs.
    """
    grains = -(-length // grain)
    threads = max(1, min(threads, grains))
    cuts = [min(length, grains * part // threads * grain) for part in range(threads + 1)]
    failures: list[BaseException] = []

    def guarded(start: int, stop: int) -> None:
        try:
            work(start, stop)
        except BaseException as failure:
            failures.append(failure)

    others = [threading.Thread(target=guarded, args=cuts[part : part + 2]) for part in range(1, threads)]
    for thread in others:
        thread.start()
    guarded(cuts[0], cuts[1])
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]


class NumpyKernel:
    """Plain NumPy. c·b is the sum of b·xⁱ over the bits i of c: doubling once per input, then only XOR.

    With many outputs the sixteen sums of each four doublings are formed first, and every output takes one sum per
    four bits of its coefficient. NumPy releases the GIL on arrays of this size, so threads help.
    """

    name = "numpy"
    CHUNK = 1 << 15  # bytes of a plane at a time: larger spills the caches, smaller pays NumPy's call

    def apply(
        self,
        gf: Field,
        matrix: Elements,
        inputs: Sequence[Plane],
        outputs: Sequence[Plane],
        *,
        accumulate: bool = False,
    ) -> None:
        sources, targets = planes(gf, inputs), planes(gf, outputs)
        if not targets or not len(targets[0]):
            return
        length = len(targets[0])

        def work(start: int, stop: int) -> None:
            for left in range(start, stop, self.CHUNK):
                part = slice(left, min(left + self.CHUNK, stop))
                _chunk(gf, matrix, [s[part] for s in sources], [t[part] for t in targets], accumulate)

        busy = length * (len(sources) + len(targets)) >= PARALLEL_FROM
        spread(work, length, self.CHUNK, workers() if busy else 1)


def _chunk(
    gf: Field, matrix: Elements, sources: list[Plane], targets: list[Plane], accumulate: bool
) -> None:
    if not accumulate:
        for target in targets:
            target.fill(0)
    wide, size = gf.bytes, len(targets[0])
    many = len(matrix) > 11  # forming all sums of four costs 11 XORs and saves 2 of 4 per output
    doubled = np.empty((gf.bits, wide, size), np.uint8)
    sums = np.empty((gf.bits // 4, 16, wide, size), np.uint8) if many else None
    for column in range(matrix.shape[1]):
        for plane in range(wide):
            doubled[0, plane] = sources[column * wide + plane]
        for bit in range(1, gf.bits):
            _double(gf, doubled[bit - 1], doubled[bit])
        if sums is not None:
            _all_sums(doubled, sums)
        for row, factor in enumerate(matrix[:, column].tolist()):
            if sums is not None:
                terms = [sums[n, factor >> 4 * n & 15] for n in range(gf.bits // 4) if factor >> 4 * n & 15]
            else:
                terms = [doubled[bit] for bit in range(gf.bits) if factor >> bit & 1]
            for term in terms:
                for plane in range(wide):
                    target = targets[row * wide + plane]
                    np.bitwise_xor(target, term[plane], out=target)


def _double(gf: Field, source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    """Multiply by x: shift all bits up by one, and where one falls out, subtract the polynomial."""
    np.add(source, source, out=target)  # wraps: a shift by one, and faster than shifting bytes
    spilt = [source[plane].view(np.int8) >> 7 for plane in range(gf.bytes)]  # 0 or −1
    for plane in range(1, gf.bytes):
        target[plane] |= spilt[plane - 1].view(np.uint8) & 1
    for plane in range(gf.bytes):
        if low := gf.polynomial >> 8 * plane & 0xFF:
            target[plane] ^= spilt[-1].view(np.uint8) & low


def _all_sums(doubled: NDArray[np.uint8], sums: NDArray[np.uint8]) -> None:
    for nibble in range(len(sums)):
        for value in range(1, 16):
            top = value.bit_length() - 1
            rest = value ^ 1 << top
            term = doubled[4 * nibble + top]
            if rest:
                np.bitwise_xor(sums[nibble, rest], term, out=sums[nibble, value])
            else:
                sums[nibble, value] = term
