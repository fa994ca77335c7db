"""Boxes: what travels through Flower is sealed to the public key of its reader, and to nobody else's.

Flower keeps messages in the SuperLink's database, and in its write-ahead log after they are gone from it. So nothing
travels that could be read there later: each box is sealed under a key agreed between a key pair made for this one box
and the reader's of this one run, whose secret the server never writes down and the node destroys at the run's end.
"""

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import SealBroken

KEY = 32
OVERHEAD = KEY + 16  # the box's own public key, and the seal's tag


@dataclass(frozen=True)
class BoxKey:
    """A reader's key pair."""

    secret: bytes = field(repr=False)

    @staticmethod
    def make() -> "BoxKey":
        return BoxKey(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> bytes:
        return X25519PrivateKey.from_private_bytes(self.secret).public_key().public_bytes_raw()

    def open(self, box: bytes, bound: bytes, what: str) -> bytes:
        """What is in the box, if it was sealed to this key and bound to these bytes."""
        try:
            shared = X25519PrivateKey.from_private_bytes(self.secret).exchange(
                X25519PublicKey.from_public_bytes(box[:KEY])
            )
            return AESGCM(_derive(shared, box[:KEY], self.public)).decrypt(bytes(12), box[KEY:], bound)
        except (InvalidTag, ValueError) as fault:  # ValueError: too short, or a point that agrees on nothing
            raise SealBroken(what, "it was altered, replayed, or sealed to another key") from fault


def seal(public: bytes, plain: bytes, bound: bytes) -> bytes:
    """A box only the owner of the public key can open. Its key is used once, so the nonce may be constant."""
    once = X25519PrivateKey.generate()
    own = once.public_key().public_bytes_raw()
    shared = once.exchange(X25519PublicKey.from_public_bytes(public))
    return own + AESGCM(_derive(shared, own, public)).encrypt(bytes(12), plain, bound)


def _derive(shared: bytes, sender: bytes, reader: bytes) -> bytes:
    return HKDF(SHA256(), KEY, salt=sender + reader, info=b"fedforget box 1").derive(shared)
