"""Which slices are wrong, without any stored hash.

A random linear projection shrinks every slice to one symbol. Projecting commutes with the code, so the symbols of
honest holders are a codeword of length n, and a liar's symbol is off unless its whole error vanishes in the
projection: once in 2⁸ (2¹⁶). The coefficients are drawn after the slices are in, so nobody can aim at that. The
classic decoder (syndromes, Berlekamp–Massey, roots) finds the wrong symbols of one projection; the next projections
find who was missed.

Projections only ever *propose* liars. What is answered was checked on every byte: the codeword through k supposedly
honest slices agrees with all but ⌊(n−k)/2⌋ slices, and two different codewords cannot both do that. With at most
that many liars a wrong answer is therefore impossible, not merely improbable; an unlucky draw can only cost a
refusal. A long slice is folded up to four times on the way, each fold a chance for an error to vanish, so that is at
most n/2 · 5 · 2^(−8·10) in GF(2⁸) and n/2 · 5 · 2^(−16·6) in GF(2¹⁶): under 2⁻⁶⁴.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.field import Elements, Field, lagrange
from fedforget.coding.kernels import PARALLEL_FROM, Kernel, Plane, planes, spread
from fedforget.coding.protocol import Entropy

PROJECTIONS = {8: 10, 16: 6}
FOLDS = 128  # segments a slice is folded from at once
SHORT = 1024  # symbols up to which tables do the rest; more than a fold of the shortest segments leaves
COMPARED = 1 << 22  # bytes of re-encoded slices a thread holds at once


def locate(
    gf: Field, kernel: Kernel, points: Elements, k: int, slices: Sequence[Plane], entropy: Entropy
) -> NDArray[np.intp] | None:
    """Indices of the wrong slices, or None when no codeword is near enough. Slice i belongs to points[i]."""
    count = len(slices)
    words = project(gf, kernel, slices, PROJECTIONS[gf.bits], entropy)
    honest = np.arange(count)
    for column in range(words.shape[1]):
        if _consistent(gf, points[honest], words[honest], k):
            break
        wrong = wrong_symbols(gf, points[honest], words[honest, column], k)
        if wrong is None:
            return None
        honest = np.delete(honest, wrong)
    liars = _disagreeing(gf, kernel, points, honest[:k], slices)
    return liars if len(liars) <= (count - k) // 2 else None


def project(gf: Field, kernel: Kernel, slices: Sequence[Plane], times: int, entropy: Entropy) -> Elements:
    """[slice, projection]: independent random linear maps of each slice to one symbol.

    A long slice is folded first: segments times random coefficients, summed. A fold keeps a non-zero slice non-zero
    except with probability order^(−times), as does the last step; all slices share the coefficients.
    """
    symbols = len(slices[0]) // gf.bytes
    current = [planes(gf, [s]) for s in slices]
    while symbols > SHORT:
        segment = max(64, -(-symbols // FOLDS))
        full, rest = divmod(symbols, segment)
        factors = _random(gf, (times, full + (rest > 0)), entropy)
        current = _fold_all(gf, kernel, current, factors, segment)
        symbols = times * segment
    low = np.array([s[0] for s in current], np.uint16).reshape(len(slices), symbols)
    if gf.bytes == 2:
        low |= np.array([s[1] for s in current], np.uint16) << 8
    return gf.product(low, _random(gf, (symbols, times), entropy))


def _fold_all(
    gf: Field, kernel: Kernel, sources: list[list[Plane]], factors: Elements, segment: int
) -> list[list[Plane]]:
    folded = list(sources)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            folded[i] = _fold(gf, kernel, sources[i], factors, segment)

    spread(work, len(sources), 1, kernel.threads if len(sources[0][0]) >= PARALLEL_FROM >> 3 else 1)
    return folded


def _fold(gf: Field, kernel: Kernel, source: list[Plane], factors: Elements, segment: int) -> list[Plane]:
    """`times` sums of the segments, one after the other in each plane."""
    times, size = len(factors), len(source[0])
    full = size // segment
    result = [np.empty(times * segment, np.uint8) for _ in source]
    outputs = [r[segment * t : segment * (t + 1)] for t in range(times) for r in result]
    inputs = [s[segment * n : segment * (n + 1)] for n in range(full) for s in source]
    kernel.apply(gf, factors[:, :full], inputs, outputs, threads=1)
    if rest := size - full * segment:
        kernel.apply(
            gf, factors[:, full:], [s[-rest:] for s in source], [o[:rest] for o in outputs], accumulate=True, threads=1
        )
    return result


def _random(gf: Field, shape: tuple[int, int], entropy: Entropy) -> Elements:
    raw = np.frombuffer(entropy(shape[0] * shape[1] * gf.bytes), np.uint8 if gf.bytes == 1 else "<u2")
    return raw.reshape(shape).astype(np.uint16)


def _consistent(gf: Field, points: Elements, words: Elements, k: int) -> bool:
    """Is each column a codeword?"""
    if len(points) == k:
        return True
    expected = gf.product(lagrange(gf, points[:k], points[k:]), words[:k])
    return bool(np.array_equal(expected, words[k:]))


def wrong_symbols(gf: Field, points: Elements, word: Elements, k: int) -> NDArray[np.intp] | None:
    """Positions of up to ⌊(n−k)/2⌋ wrong symbols of a codeword of degree < k at these points; None if more."""
    count, period = len(points), gf.order - 1
    between = gf.log[points[:, None] ^ points[None, :]]
    np.fill_diagonal(between, 0)
    # Σ u_i x_i^j y_i with u_i = 1/∏(x_i − x_m) vanishes for j < n−k on codewords: it is a divided difference.
    weighted = gf.multiply(gf.exp[-between.sum(axis=1) % period], word)
    powers = gf.log[points][:, None] * np.arange(count - k) % period
    syndromes = np.bitwise_xor.reduce(gf.exp[gf.log[weighted][:, None] + powers], axis=0)
    locator = _berlekamp_massey(gf, syndromes)
    degree = len(locator) - 1
    if degree > (count - k) // 2:
        return None
    inverse = -gf.log[points][:, None] * np.arange(degree + 1) % period
    values = np.bitwise_xor.reduce(gf.exp[gf.log[locator] + inverse], axis=1)
    roots = np.flatnonzero(values == 0)
    return roots if len(roots) == degree else None


def _berlekamp_massey(gf: Field, sequence: Elements) -> Elements:
    """The shortest linear recurrence: coefficients 1, c₁, … of its connection polynomial."""
    size = len(sequence) + 1
    current, previous = np.zeros(size, np.uint16), np.zeros(size, np.uint16)
    current[0] = previous[0] = 1
    length, shift, scale = 0, 1, 1
    logs = gf.log[sequence]
    for at in range(len(sequence)):
        terms = gf.exp[gf.log[current[: length + 1]] + logs[at - length : at + 1][::-1]]
        gap = int(np.bitwise_xor.reduce(terms))
        if gap == 0:
            shift += 1
            continue
        changed = current.copy()
        changed[shift:] ^= gf.multiply(gf.divide(gap, scale), previous[: size - shift])
        if 2 * length <= at:
            length, previous, scale, shift = at + 1 - length, current, gap, 1
        else:
            shift += 1
        current = changed
    return current[: length + 1]


def _disagreeing(
    gf: Field, kernel: Kernel, points: Elements, basis: NDArray[np.intp], slices: Sequence[Plane]
) -> NDArray[np.intp]:
    """The slices that are not on the polynomial through the basis, compared byte by byte."""
    others = np.setdiff1d(np.arange(len(slices)), basis)
    if not len(others):
        return others
    matrix = lagrange(gf, points[basis], points[others])
    known = planes(gf, [slices[i] for i in basis])
    claimed = planes(gf, [slices[i] for i in others])
    size = len(claimed[0])
    step = max(4096, COMPARED // len(claimed) // 4096 * 4096)
    agrees = np.ones(len(claimed), bool)

    def work(begin: int, end: int) -> None:
        room = np.empty((len(claimed), min(step, end - begin)), np.uint8)
        for start in range(begin, end, step):
            stop = min(start + step, end)
            expected = [row[: stop - start] for row in room]
            kernel.apply(gf, matrix, [s[start:stop] for s in known], expected, threads=1)
            for i in np.flatnonzero(agrees):
                if not np.array_equal(expected[i], claimed[i][start:stop]):
                    agrees[i] = False

    spread(work, size, step, kernel.threads)
    return others[~agrees.reshape(len(others), gf.bytes).all(axis=1)]
