"""All randomness is a pure function of (seed, purpose, where): a keyed hash, no state anywhere.

Exact forgetting rests on this one rule. A client's draws depend on its own name and place and on
nobody else's, so taking a client away changes its own place and nothing else.
"""

import hashlib

import numpy as np


def derive(seed: int, purpose: str, *where: int | str) -> int:
    """A 64-bit seed for one purpose at one place; fields are length-prefixed so that no two places collide."""
    mac = hashlib.blake2b(digest_size=8, key=int(seed).to_bytes(16, "little", signed=True))
    for field in (purpose, *where):
        tag, text = (b"s", field.encode()) if isinstance(field, str) else (b"i", str(int(field)).encode())
        mac.update(tag + len(text).to_bytes(4, "little") + text)
    return int.from_bytes(mac.digest(), "little")


def generator(seed: int, purpose: str, *where: int | str) -> np.random.Generator:
    """NumPy's PCG64 seeded by `derive`."""
    return np.random.Generator(np.random.PCG64(derive(seed, purpose, *where)))
