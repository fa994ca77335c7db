"""Merkle tree over the ledger's events: RFC 9162 hashing, proofs of inclusion and of consistency.

Node (level, index) covers the leaves from index·2^level on, 2^level of them, and is kept once all of them are there.
So appending adds two nodes on average, and every proof reads O(log n) of them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

Node = Callable[[int, int], bytes]  # (level, index) → hash
EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def grown(size: int, leaf: bytes, node: Node) -> Iterator[tuple[int, int, bytes]]:
    """The nodes that come to be when a tree of `size` leaves gets one more."""
    level, index, found = 0, size, leaf
    yield level, index, found
    while index & 1:
        found = node_hash(node(level, index - 1), found)
        level, index = level + 1, index >> 1
        yield level, index, found


def root_hash(size: int, node: Node) -> bytes:
    return _over(0, size, node) if size else EMPTY


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root from the leaf hashes alone, in one pass."""
    peaks: list[tuple[int, bytes]] = []
    for leaf in leaves:
        level, found = 0, leaf
        while peaks and peaks[-1][0] == level:
            found = node_hash(peaks.pop()[1], found)
            level += 1
        peaks.append((level, found))
    if not peaks:
        return EMPTY
    found = peaks.pop()[1]
    while peaks:
        found = node_hash(peaks.pop()[1], found)
    return found


def inclusion_proof(index: int, size: int, node: Node) -> list[bytes]:
    """RFC 9162, 2.1.3.1: the siblings on the way from leaf `index` to the root of `size` leaves."""
    if not 0 <= index < size:
        raise IndexError(index)
    low, high, found = 0, size, []
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            found.append(_over(middle, high, node))
            high = middle
        else:
            found.append(_over(low, middle, node))
            low = middle
    return found[::-1]


def consistency_proof(first: int, second: int, node: Node) -> list[bytes]:
    """RFC 9162, 2.1.4.1: that the tree of `second` leaves begins with the tree of `first`."""
    if not 0 <= first <= second:
        raise IndexError(first)
    if first in (0, second):
        return []
    low, high, whole, found = 0, second, True, []
    while first != high:
        middle = low + _split(high - low)
        if first <= middle:
            found.append(_over(middle, high, node))
            high = middle
        else:
            found.append(_over(low, middle, node))
            low, whole = middle, False
    if not whole:
        found.append(_over(low, high, node))
    return found[::-1]


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """RFC 9162, 2.1.3.2."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if not last:
            return False
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return not last and found == root


def consistent(first: int, second: int, old: bytes, new: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162, 2.1.4.2."""
    if first == 0 or first == second:
        return not proof and old == (EMPTY if first == 0 else new)
    if not 0 < first < second:
        return False
    nodes = list(proof) if first & (first - 1) else [old, *proof]
    if not nodes:
        return False
    at, last = first - 1, second - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    was = now = nodes[0]
    for sibling in nodes[1:]:
        if not last:
            return False
        if at & 1 or at == last:
            was, now = node_hash(sibling, was), node_hash(sibling, now)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            now = node_hash(now, sibling)
        at, last = at >> 1, last >> 1
    return not last and was == old and now == new


def _split(count: int) -> int:
    """The largest power of two below the count."""
    return 1 << ((count - 1).bit_length() - 1)


def _over(low: int, high: int, node: Node) -> bytes:
    """The hash over leaves [low, high), where low is as aligned as the tree's recursion makes it."""
    count = high - low
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return node(level, low >> level)
    middle = low + _split(count)
    return node_hash(_over(low, middle, node), _over(middle, high, node))
