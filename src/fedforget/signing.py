"""Signing: Ed25519 keys as text, and signatures over bytes.

A public key travels as `ed25519:` and 64 hexadecimal digits; its id is the first 16 digits of the SHA-256 of its bytes.
"""

import hashlib
import re
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .errors import SettingError

_PUBLIC = re.compile(r"ed25519:([0-9a-f]{64})")
_SECRET = re.compile(r"ed25519-secret:([0-9a-f]{64})")


@dataclass(frozen=True)
class PublicKey:
    """Tells whether bytes were signed by the owner of the secret key."""

    raw: bytes

    @staticmethod
    def parse(text: str) -> "PublicKey":
        found = _PUBLIC.fullmatch(text.strip())
        if found is None:
            raise SettingError("public key", text[:20], "'ed25519:' and 64 hexadecimal digits")
        return PublicKey(bytes.fromhex(found[1]))

    def __str__(self) -> str:
        return f"ed25519:{self.raw.hex()}"

    @property
    def id(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()[:16]

    def signed(self, signature: bytes, message: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class SecretKey:
    """Signs; never shown."""

    raw: bytes = field(repr=False)

    @staticmethod
    def make() -> "SecretKey":
        return SecretKey(Ed25519PrivateKey.generate().private_bytes_raw())

    @staticmethod
    def parse(text: str) -> "SecretKey":
        found = _SECRET.fullmatch(text.strip())
        if found is None:
            raise SettingError("secret key", "…", "'ed25519-secret:' and 64 hexadecimal digits")
        return SecretKey(bytes.fromhex(found[1]))

    def to_text(self) -> str:
        """For a file of mode 0600, and nowhere else."""
        return f"ed25519-secret:{self.raw.hex()}\n"

    @property
    def public(self) -> PublicKey:
        own = Ed25519PrivateKey.from_private_bytes(self.raw).public_key()
        return PublicKey(own.public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, message: bytes) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.raw).sign(message)
