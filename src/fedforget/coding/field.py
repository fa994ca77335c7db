"""The finite fields GF(2⁸) and GF(2¹⁶): tables, element-wise arithmetic, and Lagrange coefficients.

Adding is XOR. Multiplying goes through logarithms to the generator x, which is primitive for both polynomials.
An element of GF(2¹⁶) is two bytes; where its bytes lie in a block is the business of `kernels`.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Elements = NDArray[np.uint16]

POLYNOMIALS = {8: 0x11D, 16: 0x1100B}


@dataclass(frozen=True, eq=False)
class Field:
    """GF(2^bits). `log[0]` is so large that any product with zero reads a zero from `exp`."""

    bits: int
    polynomial: int
    exp: Elements
    log: NDArray[np.int64]

    @property
    def order(self) -> int:
        return 1 << self.bits

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def multiply(self, a: ArrayLike, b: ArrayLike) -> Elements:
        result: Elements = self.exp[self.log[np.asarray(a)] + self.log[np.asarray(b)]]
        return result

    def inverse(self, a: ArrayLike) -> Elements:
        elements = np.asarray(a)
        if np.any(elements == 0):
            raise ZeroDivisionError("zero has no inverse")
        result: Elements = self.exp[self.order - 1 - self.log[elements]]
        return result

    def divide(self, a: ArrayLike, b: ArrayLike) -> Elements:
        return self.multiply(a, self.inverse(b))

    def product(self, a: Elements, b: Elements) -> Elements:
        """The matrix product, one inner index at a time: memory stays at the size of the result."""
        logs_a, logs_b = self.log[a], self.log[b]
        result = np.zeros((a.shape[0], b.shape[1]), np.uint16)
        for inner in range(a.shape[1]):
            result ^= self.exp[logs_a[:, inner, None] + logs_b[None, inner, :]]
        return result

    def images(self, elements: ArrayLike) -> Elements:
        """Last axis: the element times x⁰ … x^(bits−1), that is, multiplication as a matrix over GF(2)."""
        powers = np.left_shift(1, np.arange(self.bits))
        return self.multiply(np.asarray(elements)[..., None], powers)


@lru_cache(maxsize=2)
def field(bits: int) -> Field:
    """The field of 2^bits elements; its tables are built once."""
    polynomial = POLYNOMIALS[bits]
    order = 1 << bits
    period = order - 1
    zero = 2 * period  # as a logarithm: any sum with it lies in the part of exp that holds zeros
    exp = np.zeros(2 * zero + 1, np.uint16)
    log = np.empty(order, np.int64)
    log[0] = zero
    element = 1
    for power in range(period):
        exp[power] = exp[power + period] = element
        log[element] = power
        element <<= 1
        if element & order:
            element ^= polynomial
    exp.setflags(write=False)
    log.setflags(write=False)
    return Field(bits, polynomial, exp, log)


def lagrange(gf: Field, nodes: Elements, targets: Elements) -> Elements:
    """Row t, column m: the Lagrange coefficient ∏_{j≠m} (t − x_j)/(x_m − x_j), the paper's eq. *encode*.

    Times the values at `nodes` it gives the values at `targets`, which must not be nodes. O(N·T) by logarithms:
    the numerator is the whole product divided by its one factor (t − x_m), never a product a coefficient.
    """
    period = gf.order - 1
    apart = gf.log[targets[:, None] ^ nodes[None, :]]
    between = gf.log[nodes[:, None] ^ nodes[None, :]]
    np.fill_diagonal(between, 0)
    logs = apart.sum(axis=1)[:, None] - apart - between.sum(axis=1)[None, :]
    result: Elements = gf.exp[logs % period]
    return result


def invert(gf: Field, matrix: Elements) -> Elements:
    """Gauss–Jordan; raises ZeroDivisionError for a singular matrix."""
    size = matrix.shape[0]
    work = np.concatenate([matrix.astype(np.uint16), np.eye(size, dtype=np.uint16)], axis=1)
    for column in range(size):
        rows = np.flatnonzero(work[column:, column])
        if rows.size == 0:
            raise ZeroDivisionError("the matrix is singular")
        pivot = column + int(rows[0])
        work[[column, pivot]] = work[[pivot, column]]
        work[column] = gf.divide(work[column], work[column, column])
        factors = work[:, column].copy()
        factors[column] = 0
        work ^= gf.multiply(factors[:, None], work[column][None, :])
    return work[:, size:]
