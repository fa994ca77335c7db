"""Matrix times blocks over GF(2⁸) or GF(2¹⁶): what a kernel is, and one in plain NumPy.

How symbols lie in a block. GF(2⁸): each byte is one. GF(2¹⁶): byte j of the first half is the low byte and byte j
of the second half the high byte of symbol j. So a block is one or two *planes* of bytes, multiplication by a constant
is an 8×8 matrix over GF(2) between each two planes, and one kernel serves both fields.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.field import Elements, Field

Plane = NDArray[np.uint8]
CHUNK = 1 << 16  # bytes of a plane at a time: larger spills the caches, smaller pays NumPy's call
PARALLEL_FROM = 1 << 19  # below this many bytes of work starting a thread costs more than it saves


class Kernel(Protocol):
    """outputs = matrix · inputs, or outputs ^= matrix · inputs when accumulating.

    Inputs and outputs are contiguous planes, all of one length: `gf.bytes` of them for each column and each row of the
    matrix, low bytes first. No output may overlap another or an input.
    """

    @property
    def name(self) -> str: ...

    @property
    def threads(self) -> int:
        """How many threads at once make it faster."""
        ...

    def apply(
        self,
        gf: Field,
        matrix: Elements,
        inputs: Sequence[Plane],
        outputs: Sequence[Plane],
        *,
        accumulate: bool = False,
        threads: int | None = None,
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
    four bits of its coefficient. One thread: calls this short spend their gain on handing over the GIL.
    """

    name = "numpy"
    threads = 1

    def apply(
        self,
        gf: Field,
        matrix: Elements,
        inputs: Sequence[Plane],
        outputs: Sequence[Plane],
        *,
        accumulate: bool = False,
        threads: int | None = None,
    ) -> None:
        for left in range(0, len(outputs[0]) if outputs else 0, CHUNK):
            part = slice(left, left + CHUNK)
            _chunk(gf, matrix, [i[part] for i in inputs], [o[part] for o in outputs], accumulate)


def _chunk(gf: Field, matrix: Elements, sources: list[Plane], targets: list[Plane], accumulate: bool) -> None:
    wide, size = gf.bytes, len(targets[0])
    together = 4 // wide**2  # inputs whose multiples are at hand at once: what the caches hold
    many = len(matrix) > 11  # forming all sums of four costs 11 XORs and saves 2 of 4 per output
    step, shape = (4, 16) if many else (1, 2)
    sums = np.empty((together, gf.bits // step, shape, wide, size), np.uint8)
    for first in range(0, matrix.shape[1], together):
        group = matrix[:, first : first + together]
        for n in range(group.shape[1]):
            _multiples(gf, sources[(first + n) * wide : (first + n + 1) * wide], sums[n])
        for row, factors in enumerate(group.tolist()):
            terms = [
                sums[n, place, value]
                for n, factor in enumerate(factors)
                for place in range(gf.bits // step)
                if (value := factor >> step * place & shape - 1)
            ]
            for plane in range(wide):
                fresh = first == 0 and not accumulate
                _add(targets[row * wide + plane], [term[plane] for term in terms], fresh)


def _add(target: Plane, terms: list[Plane], fresh: bool) -> None:
    """The sum of the terms, plus what the target holds unless it is fresh."""
    if fresh and len(terms) > 1:
        np.bitwise_xor(terms[0], terms[1], out=target)
        terms = terms[2:]
    elif fresh:
        target.fill(0)
    for term in terms:
        np.bitwise_xor(target, term, out=target)


def _multiples(gf: Field, source: list[Plane], sums: NDArray[np.uint8]) -> None:
    """[place, value]: the source times value · 2^(step·place), for every value of `step` bits but zero."""
    step = 4 if sums.shape[1] == 16 else 1
    for plane, data in enumerate(source):
        sums[0, 1, plane] = data
    for bit in range(1, gf.bits):
        _double(gf, sums[(bit - 1) // step, 1 << (bit - 1) % step], sums[bit // step, 1 << bit % step])
    for value in range(3, sums.shape[1]):
        top = 1 << value.bit_length() - 1
        if value != top:
            np.bitwise_xor(sums[:, value ^ top], sums[:, top], out=sums[:, value])


def _double(gf: Field, source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    """Multiply by x: shift all bits up by one, and where one falls out, subtract the polynomial."""
    np.add(source, source, out=target)  # wraps: a shift by one, and faster than shifting bytes
    spilt = [source[plane].view(np.int8) >> 7 for plane in range(gf.bytes)]  # 0 or −1
    for plane in range(1, gf.bytes):
        target[plane] |= spilt[plane - 1].view(np.uint8) & 1
    for plane in range(gf.bytes):
        if low := gf.polynomial >> 8 * plane & 0xFF:
            target[plane] ^= spilt[-1].view(np.uint8) & low
