"""The tree against RFC 6962's vectors and an implementation too slow to be wrong."""

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.evidence import merkle

# The leaves and roots of RFC 6962's reference implementations; RFC 9162 hashes the same.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def slow(leaves: Sequence[bytes]) -> bytes:
    """RFC 9162, 2.1.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + slow(leaves[:k]) + slow(leaves[k:])).digest()


class Tree:
    """Nodes in a dict, and how often they were asked for."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.asked = 0
        for size, leaf in enumerate(leaves):
            for level, index, found in merkle.grown(size, merkle.leaf_hash(leaf), self.node):
                assert (level, index) not in self.nodes
                self.nodes[level, index] = found

    def node(self, level: int, index: int) -> bytes:
        self.asked += 1
        return self.nodes[level, index]


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_the_vectors_of_rfc_6962(size: int) -> None:
    leaves = [bytes.fromhex(leaf) for leaf in LEAVES[:size]]
    assert merkle.root_hash(size, Tree(leaves).node).hex() == ROOTS[size]
    assert slow(leaves).hex() == ROOTS[size]


FORTY = [bytes([at]) for at in range(40)]


def test_roots_and_proofs_of_every_size() -> None:
    tree = Tree(FORTY)
    for size in range(1, len(FORTY) + 1):
        root = merkle.root_hash(size, tree.node)
        assert root == slow(FORTY[:size]) == merkle.root_of(map(merkle.leaf_hash, FORTY[:size]))
        for index in range(size):
            leaf, proof = merkle.leaf_hash(FORTY[index]), merkle.inclusion_proof(index, size, tree.node)
            assert merkle.included(leaf, index, size, proof, root)
            assert not merkle.included(leaf, index + 1, size, proof, root)
            assert not merkle.included(leaf, index, size, [*proof, root], root)
            assert not (proof and merkle.included(leaf, index, size, proof[:-1], root))
        for first in range(size + 1):
            old, proof = slow(FORTY[:first]), merkle.consistency_proof(first, size, tree.node)
            assert merkle.consistent(first, size, old, root, proof)
            assert not merkle.consistent(first, size, root if first < size else old[::-1], root, proof)
            assert not merkle.consistent(first, size, old, root, [*proof, root])
    assert merkle.root_of([]) == merkle.root_hash(0, tree.node) == merkle.EMPTY


def test_what_cannot_be_proved_is_refused() -> None:
    tree = Tree(FORTY)
    for index, size in ((3, 3), (-1, 3)):
        with pytest.raises(IndexError):
            merkle.inclusion_proof(index, size, tree.node)
        assert not merkle.included(merkle.leaf_hash(b""), index, size, [], merkle.EMPTY)
    with pytest.raises(IndexError):
        merkle.consistency_proof(5, 4, tree.node)
    assert not merkle.consistent(5, 4, b"", b"", [])
    assert not merkle.consistent(3, 5, b"", b"", [])
    assert not merkle.consistent(3, 4, slow(FORTY[:3]), slow(FORTY[:4]), [b"", b"", b"", b"", b""])


@given(st.integers(1, 40), st.integers(0, 39), st.data())
def test_a_proof_with_any_bit_changed_proves_nothing(size: int, index: int, data: st.DataObject) -> None:
    tree, index = Tree(FORTY[:size]), index % size
    root = merkle.root_hash(size, tree.node)
    proof = merkle.inclusion_proof(index, size, tree.node)
    if proof:
        at, bit = data.draw(st.integers(0, len(proof) - 1)), data.draw(st.integers(0, 255))
        proof[at] = (int.from_bytes(proof[at]) ^ 1 << bit).to_bytes(32)
        assert not merkle.included(merkle.leaf_hash(FORTY[index]), index, size, proof, root)


@pytest.mark.parametrize("size", [1000, 4097])
def test_appending_and_proving_read_no_more_than_the_height_of_the_tree(size: int) -> None:
    tree, height = Tree([b""] * size), size.bit_length()
    assert len(tree.nodes) < 2 * size
    for work in (
        lambda: list(merkle.grown(size, merkle.EMPTY, tree.node)),
        lambda: merkle.root_hash(size, tree.node),
        lambda: merkle.inclusion_proof(size // 3, size, tree.node),
        lambda: merkle.consistency_proof(size // 3, size, tree.node),
    ):
        tree.asked = 0
        work()
        assert tree.asked <= 2 * height
