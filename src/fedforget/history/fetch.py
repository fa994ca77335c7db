"""Fetch: slices → the good ones → decode → open. Any k good slices of n do; a wrong one is named, never used."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..coding import code_named, join
from ..coding.stripes import block_length, recover
from ..errors import Damaged, Unrecoverable
from ..manifest import Bundle, Cipher, Label, Record
from ..sealing import Vault, unseal
from ..slices import SliceKey, SliceStore


@dataclass(frozen=True)
class Finding:
    """A slice that is not what it should be."""

    key: SliceKey
    what: str  # "missing" | "altered"

    def __str__(self) -> str:
        return f"{self.key} is {self.what}"


@dataclass(frozen=True)
class Archive:
    """Reads records back: the manifests, where the slices lie, and the epoch key."""

    records: Mapping[Label, Record]
    bundles: Mapping[Label, Bundle]
    store: SliceStore
    vault: Vault
    cipher: Cipher

    def open(self, labels: Iterable[Label]) -> dict[Label, bytes]:
        """The records, opened. Those of one bundle are decoded together."""
        wanted = tuple(labels)
        opened: dict[Label, bytes] = {}
        for label in wanted:
            if label not in self.records or label not in self.bundles:
                raise Damaged("the ledger", f"a record and its slices for the {label}", "one of the two")
        for bundle in {id(self.bundles[w]): self.bundles[w] for w in wanted}.values():
            mine = [w for w in wanted if w in bundle.by_label]
            for label, body in self.sealed(bundle, mine).items():
                opened[label] = unseal(self.vault, self.cipher, label, body, self.records[label].wrapped)
        return opened

    def sealed(self, bundle: Bundle, labels: Iterable[Label]) -> dict[Label, bytes]:
        """The records as they were sealed, each checked against its own digest."""
        return self._checked(bundle, labels, decode(bundle, self.store))

    def repair(self, bundle: Bundle, seats: Mapping[int, str]) -> Bundle:
        """Make the slices of the given seats again, on the holders named, from k good ones of the others.

        Every record in it is checked before anything is written: where the hashes are lost, enough liars could
        have handed in the slices of another record.
        """
        code, blocks = code_named(bundle.code), decode(bundle, self.store)
        self._checked(bundle, bundle.by_label, blocks)
        pieces = code.encode(blocks)
        holders, hashes = list(bundle.holders), list(bundle.hashes)
        for index, holder in seats.items():
            holders[index], hashes[index] = holder, hashlib.sha256(pieces[index]).hexdigest()
        mended = replace(bundle, holders=tuple(holders), hashes=tuple(hashes))
        self.store.put({mended.keys[index]: pieces[index] for index in seats})
        return mended

    def _checked(self, bundle: Bundle, labels: Iterable[Label], blocks: Sequence[bytes]) -> dict[Label, bytes]:
        found: dict[Label, bytes] = {}
        for label in labels:
            spot, record = bundle.by_label[label], self.records[label]
            if spot.lane is not None:
                body = bytes(blocks[spot.lane][spot.offset : spot.offset + record.length])
            else:
                width = block_length(record.length, len(blocks))
                body = join([b[spot.offset : spot.offset + width] for b in blocks], record.length)
            digest = hashlib.sha256(body).hexdigest()
            if digest != record.digest:
                raise Damaged(label, record.digest[:12], digest[:12])
            found[label] = body
        return found


def decode(bundle: Bundle, store: SliceStore) -> list[bytes]:
    """The data blocks from the first k slices their hashes vouch for; where hashes are lost, liars are located."""
    code = code_named(bundle.code)
    good: dict[int, bytes] = {}
    unknown: dict[int, bytes] = {}
    for index, piece, finding in examine(bundle, store):
        if finding is None and piece is not None:
            (unknown if bundle.hashes[index] is None else good)[index] = piece
        if len(good) == code.k:
            return code.decode(good, length=bundle.width)
    if len(good) + len(unknown) < code.k or not unknown:
        raise Unrecoverable(str(bundle), code.k, len(good) + len(unknown))
    return recover(code, {**good, **unknown}, length=bundle.width)[0]


def examine(bundle: Bundle, store: SliceStore) -> Iterator[tuple[int, bytes | None, Finding | None]]:
    """Each slice with what is wrong with it."""
    for index, (key, expected) in enumerate(zip(bundle.keys, bundle.hashes, strict=True)):
        piece = store.get(key)
        if piece is None:
            yield index, None, Finding(key, "missing")
        elif expected is not None and hashlib.sha256(piece).hexdigest() != expected:
            yield index, piece, Finding(key, "altered")
        else:
            yield index, piece, None
