"""Entry: an event as the log commits to it.

The leaf binds place, time, kind and the leaf before (the chain), and the body through a salted commitment: once salt
and body are deleted nobody can tell what stood there, and every hash stays as it was.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from ..canonical import canonical
from .merkle import leaf_hash

START = bytes(32)  # what the first event follows


def commitment(salt: bytes, body: bytes) -> bytes:
    """To a canonical body; the salt has a fixed length, so nothing can move between the two."""
    return hashlib.sha256(salt + body).digest()


def event_hash(seq: int, time: str, kind: str, committed: bytes, previous: bytes) -> bytes:
    """The Merkle leaf of an event, and its link in the chain."""
    entry = {"commitment": committed.hex(), "kind": kind, "previous": previous.hex(), "seq": seq, "time": time}
    return leaf_hash(canonical(entry))


def opened_hash(event: Mapping[str, Any]) -> bytes:
    """The leaf of an event whose salt and body are shown."""
    committed = commitment(bytes.fromhex(event["salt"]), canonical(event["body"]))
    return event_hash(event["seq"], event["time"], event["kind"], committed, bytes.fromhex(event["previous"]))
