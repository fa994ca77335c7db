"""Signed: a document, the key that signed it and the signature, in one spelling.

The one spelling matters: another document with the same meaning is another document, so nothing that differs by a bit
from what was signed is ever taken for it.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..canonical import canonical, read_canonical
from ..errors import RequestDenied, SettingError
from ..signing import PublicKey, SecretKey

MOST_BYTES = 4_000_000
_PREFIX = b"fedforget request, version 1\n"  # so that no signature for another purpose is one for this
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


@dataclass(frozen=True)
class Signed:
    document: Mapping[str, Any]
    key: PublicKey
    signature: bytes

    @staticmethod
    def sign(document: Mapping[str, Any], secret: SecretKey) -> "Signed":
        return Signed(document, secret.public, secret.sign(_PREFIX + canonical(document)))

    @property
    def digest(self) -> str:
        """What is signed, in short."""
        return digest(self.document)

    @property
    def genuine(self) -> bool:
        return self.key.signed(self.signature, _PREFIX + canonical(self.document))

    def to_bytes(self) -> bytes:
        parts = {"document": self.document, "key": str(self.key), "signature": self.signature.hex()}
        return canonical(parts)

    @staticmethod
    def read(blob: bytes) -> "Signed":
        """What `to_bytes` wrote, its signature checked; anything else is denied."""
        if len(blob) > MOST_BYTES:
            raise RequestDenied("malformed", f"it has {len(blob)} bytes, more than {MOST_BYTES}")
        try:
            parts = read_canonical(blob)
            if not isinstance(parts, dict) or set(parts) != {"document", "key", "signature"}:
                raise SettingError("request", "an object", "a document, a key and a signature")
            document, key, signature = parts["document"], parts["key"], parts["signature"]
            if not isinstance(document, dict) or not isinstance(key, str) or not isinstance(signature, str):
                raise SettingError("request", "parts", "an object and two texts")
            owner = PublicKey.parse(key)
            if str(owner) != key or _SIGNATURE.fullmatch(signature) is None:
                raise SettingError("signature", signature[:20], "128 hexadecimal digits")
        except SettingError as fault:
            raise RequestDenied("malformed", str(fault)) from fault
        found = Signed(document, owner, bytes.fromhex(signature))
        if not found.genuine:
            raise RequestDenied("forged", "its signature does not fit")
        return found


def digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()
