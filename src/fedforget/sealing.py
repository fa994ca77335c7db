"""Sealing: every record is encrypted under a key of its own before it is coded and leaves the server.

The record's key never leaves the server; it lies there wrapped under an *epoch key* that is kept outside the
database and its backups. So destroying one record's key forgets that record on every disk at once, and turning to
a new epoch key after a forget makes old copies of the database useless for what was destroyed.

Associated data binds what a record is and where it belongs: one that was moved, swapped or replayed from an older
generation does not open.
"""

import hashlib
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .errors import KeyDestroyed, SealBroken, SettingError
from .manifest import Cipher, Label

_AEAD: dict[Cipher, Callable[[bytes], AESGCM | ChaCha20Poly1305]] = {
    "aes-256-gcm": AESGCM,
    "chacha20-poly1305": ChaCha20Poly1305,
}
_KEY, _NONCE, TAG = 32, 12, 16


@dataclass(frozen=True)
class Vault:
    """An epoch key: wraps and unwraps the keys of records."""

    epoch: int
    key: bytes

    def __repr__(self) -> str:
        return f"Vault(epoch={self.epoch})"  # never the key

    def wrap(self, record_key: bytes, label: Label) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + AESGCM(self.key).encrypt(nonce, record_key, self._bound(label))

    def unwrap(self, wrapped: bytes | None, label: Label) -> bytes:
        if wrapped is None:
            raise KeyDestroyed(str(label))
        try:
            return AESGCM(self.key).decrypt(wrapped[:_NONCE], wrapped[_NONCE:], self._bound(label))
        except (InvalidTag, ValueError) as fault:  # ValueError: too short to hold even a nonce
            raise SealBroken(str(label), f"its key is not wrapped under epoch {self.epoch}") from fault

    def _bound(self, label: Label) -> bytes:
        return str(self.epoch).encode() + b"|" + label.bound

    def next(self, key: bytes | None = None) -> "Vault":
        """The key of the epoch after this one."""
        return Vault(self.epoch + 1, key or os.urandom(_KEY))


def new_vault() -> Vault:
    return Vault(0, os.urandom(_KEY))


@dataclass(frozen=True)
class Sealed:
    """A record as it may leave the server, and its key as it may lie in the database."""

    label: Label
    body: bytes
    wrapped: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


def seal(vault: Vault, cipher: Cipher, label: Label, record: bytes) -> Sealed:
    """Encrypt under a fresh key, used once; so the nonce may be constant."""
    key = os.urandom(_KEY)
    plain = zlib.compress(record, 6) if label.compressed else record
    body = _AEAD[cipher](key).encrypt(bytes(_NONCE), plain, label.bound)
    return Sealed(label, body, vault.wrap(key, label))


def unseal(vault: Vault, cipher: Cipher, label: Label, body: bytes, wrapped: bytes | None) -> bytes:
    """The record, or SealBroken."""
    key = vault.unwrap(wrapped, label)
    try:
        plain = _AEAD[cipher](key).decrypt(bytes(_NONCE), body, label.bound)
    except InvalidTag as fault:
        raise SealBroken(str(label)) from fault
    return zlib.decompress(plain) if label.compressed else plain


def check_passphrase(passphrase: str) -> None:
    if len(passphrase) < 12:
        raise SettingError("passphrase", "…", "12 characters or more")


def passphrase_key(passphrase: str, salt: bytes) -> bytes:
    """An epoch key from a passphrase; destroying the salt destroys the key."""
    check_passphrase(passphrase)
    return Scrypt(salt=salt, length=_KEY, n=1 << 15, r=8, p=1).derive(passphrase.encode())


def faster_cipher(size: int = 1 << 20) -> Cipher:
    """The one this machine seals faster with (AES where the CPU has instructions for it)."""
    sample, best = bytes(size), {}
    for name in get_args(Cipher):
        aead = _AEAD[name](bytes(_KEY))
        times = []
        for _ in range(3):
            began = time.perf_counter()
            aead.encrypt(bytes(_NONCE), sample, None)
            times.append(time.perf_counter() - began)
        best[name] = min(times)
    return "aes-256-gcm" if best["aes-256-gcm"] <= best["chacha20-poly1305"] else "chacha20-poly1305"
