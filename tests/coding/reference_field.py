"""An independent, slow implementation to compare with: polynomials over GF(2) as Python integers, no tables.

It shares no code and no algorithm with the package: products by carry-less multiplication and long division, inverses
by raising to a power, slices by evaluating Lagrange's formula term by term, symbol by symbol.
"""

POLYNOMIAL = {8: 0x11D, 16: 0x1100B}


def multiply(a: int, b: int, bits: int) -> int:
    product = 0
    for bit in range(bits):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(2 * bits - 2, bits - 1, -1):
        if product >> bit & 1:
            product ^= POLYNOMIAL[bits] << bit - bits
    return product


def inverse(a: int, bits: int) -> int:
    """a^(2^bits − 2), by squaring."""
    result, power, exponent = 1, a, (1 << bits) - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, power, bits)
        power = multiply(power, power, bits)
        exponent >>= 1
    return result


def interpolate(known: dict[int, int], at: int, bits: int) -> int:
    """The value at `at` of the polynomial through these points."""
    total = 0
    for x, y in known.items():
        term = y
        for other in known:
            if other != x:
                term = multiply(term, multiply(at ^ other, inverse(x ^ other, bits), bits), bits)
        total ^= term
    return total


def symbols(block: bytes, bits: int) -> list[int]:
    if bits == 8:
        return list(block)
    half = len(block) // 2
    return [low | high << 8 for low, high in zip(block[:half], block[half:], strict=True)]


def unsymbols(values: list[int], bits: int) -> bytes:
    if bits == 8:
        return bytes(values)
    return bytes(v & 255 for v in values) + bytes(v >> 8 for v in values)


def encode(blocks: list[bytes], n: int, bits: int) -> list[bytes]:
    """Blocks (masks included) at points 0, 1, …; slice i at point len(blocks) + i."""
    columns = list(zip(*(symbols(block, bits) for block in blocks), strict=True))
    return [
        unsymbols([interpolate(dict(enumerate(c)), len(blocks) + i, bits) for c in columns], bits) for i in range(n)
    ]
