"""Keys: the epoch key in a folder of its own, outside the database and its backups.

    KEYS/epoch-3.key        32 random bytes, or a salt if a passphrase makes the key, and a check; mode 0600
    KEYS/log.key            likewise, the key that signs the log and the certificates
    KEYS/log.note           the newest checkpoint that was signed: an older ledger is told by it
    KEYS/tombstones.json    who was forgotten, as keyed hashes: replayed when an old database is restored;
                            of whom only examples or stages were, their numbers after a colon

Destroying an epoch's file destroys every wrapped key of that epoch, wherever copies of the database lie.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Damaged, SealBroken, SettingError
from ..sealing import Vault, passphrase_key
from ..signing import SecretKey
from ..storage.disk import Disk

_NAME = re.compile(r"epoch-(\d+)\.key")
_RAW, _SALTED = b"fedforget-key-1\n", b"fedforget-salt-1\n"
_SECRET, _CHECK = 32, 16


@dataclass(frozen=True)
class KeyFolder:
    root: Path
    passphrase: str | None = field(default=None, repr=False)
    disk: Disk = field(default_factory=Disk)

    def path(self, epoch: int) -> Path:
        return self.root / f"epoch-{epoch}.key"

    def epochs(self) -> tuple[int, ...]:
        names = [found for p in self.disk.files(self.root) if (found := _NAME.fullmatch(p.name))]
        return tuple(sorted(int(found[1]) for found in names))

    def make(self, epoch: int) -> Vault:
        """A new epoch's key, on disk before anybody uses it."""
        return Vault(epoch, self._make(self.path(epoch)))

    def load(self, epoch: int) -> Vault:
        path = self.path(epoch)
        blob = self.disk.read(path)
        if blob is None:
            newest = max(self.epochs(), default=epoch)
            older = f"only that of epoch {newest}: the ledger is from before a forget, `fedforget train` mends it"
            raise Damaged(path, f"the key of epoch {epoch}", older if newest > epoch else "no file")
        return Vault(epoch, self._open(path, blob))

    def _make(self, path: Path) -> bytes:
        """A new secret in a file of its own."""
        secret = os.urandom(_SECRET)
        mark = _SALTED if self.passphrase else _RAW
        key = self._key(mark, secret)
        self.disk.write(path, mark + secret + _check(key), mode=0o600)
        return key

    def _open(self, path: Path, blob: bytes) -> bytes:
        for mark in (_RAW, _SALTED):
            if blob.startswith(mark) and len(blob) == len(mark) + _SECRET + _CHECK:
                key = self._key(mark, blob[len(mark) : -_CHECK])
                if _check(key) == blob[-_CHECK:]:
                    return key
                if mark == _SALTED:
                    raise SealBroken(str(path), "FEDFORGET_PASSPHRASE is not the one it was made with")
                raise Damaged(path, "a key and its check", "bytes that do not fit one another")
        raise Damaged(path, f"{_SECRET} bytes of key or salt and their check", f"{len(blob)} bytes")

    def _key(self, mark: bytes, secret: bytes) -> bytes:
        if mark == _RAW:
            return secret
        if self.passphrase is None:
            raise SettingError(
                "passphrase", None, "given in FEDFORGET_PASSPHRASE, for this workspace was made with one"
            )
        return passphrase_key(self.passphrase, secret)

    def destroy_all_but(self, epoch: int) -> None:
        """Erase the other epochs' keys."""
        for other in self.epochs():
            if other != epoch:
                self.disk.erase(self.path(other))

    def usable(self, epoch: int) -> bool:
        """Whether the epoch's key is there, and not half erased."""
        blob = self.disk.read(self.path(epoch))
        return blob is not None and blob.startswith((_RAW, _SALTED))

    # --- the log's key --------------------------------------------------------------------------------------

    @property
    def log_path(self) -> Path:
        return self.root / "log.key"

    @property
    def note_path(self) -> Path:
        """The newest checkpoint of the log that was signed."""
        return self.root / "log.note"

    def log_key(self) -> SecretKey | None:
        """What checkpoints and certificates are signed with; None where there is none yet."""
        blob = self.disk.read(self.log_path)
        return None if blob is None else SecretKey(self._open(self.log_path, blob))

    def make_log_key(self) -> SecretKey:
        return SecretKey(self._make(self.log_path))

    # --- tombstones ---------------------------------------------------------------------------------------

    def tombstones(self) -> frozenset[str]:
        path = self.root / "tombstones.json"
        blob = self.disk.read(path)
        if blob is None:
            return frozenset()
        try:
            found = json.loads(blob)
            stones = frozenset[str](found if isinstance(found, list) else found["tombstones"])
        except (ValueError, TypeError, LookupError) as fault:
            raise Damaged(path, "a list of keyed hashes", str(fault)) from fault
        if blob not in (_grave(stones), json.dumps(sorted(stones)).encode()):  # the latter: as version 0.1.0 wrote it
            raise Damaged(path, "keyed hashes and their check", "others")
        return stones

    def bury(self, federation: str, clients: Iterable[str]) -> None:
        self.keep(tombstone(federation, c) for c in clients)

    def keep(self, stones: Iterable[str]) -> None:
        known = self.tombstones() | frozenset(stones)
        self.disk.write(self.root / "tombstones.json", _grave(known), mode=0o600)


def _grave(stones: Iterable[str]) -> bytes:
    """Tombstones as their file has them, with a check: a tombstone altered would let somebody come back."""
    known = sorted(stones)
    check = hashlib.blake2b("\n".join(known).encode(), digest_size=_CHECK).hexdigest()
    return json.dumps({"check": check, "tombstones": known}).encode()


def _check(key: bytes) -> bytes:
    """Tells a wrong passphrase or a damaged key from the right one, and nothing else."""
    return hashlib.blake2b(b"fedforget", key=key, digest_size=_CHECK).digest()


def tombstone(federation: str, name: str) -> str:
    """A name as the tombstones keep it: told only by who knows it."""
    return hashlib.blake2b(name.encode(), key=federation.encode()[:64], digest_size=16).hexdigest()
