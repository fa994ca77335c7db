"""Keys: the epoch key in a folder of its own, outside the database and its backups.

    KEYS/epoch-3.key        32 random bytes, or a salt if a passphrase makes the key, and a check; mode 0600
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
        secret = os.urandom(_SECRET)
        mark = _SALTED if self.passphrase else _RAW
        vault = self._vault(epoch, mark, secret)
        self.disk.write(self.path(epoch), mark + secret + _check(vault), mode=0o600)
        return vault

    def load(self, epoch: int) -> Vault:
        path = self.path(epoch)
        blob = self.disk.read(path)
        if blob is None:
            newest = max(self.epochs(), default=epoch)
            older = f"only that of epoch {newest}: the ledger is from before a forget, `fedforget train` mends it"
            raise Damaged(path, f"the key of epoch {epoch}", older if newest > epoch else "no file")
        for mark in (_RAW, _SALTED):
            if blob.startswith(mark) and len(blob) == len(mark) + _SECRET + _CHECK:
                vault = self._vault(epoch, mark, blob[len(mark) : -_CHECK])
                if _check(vault) == blob[-_CHECK:]:
                    return vault
                if mark == _SALTED:
                    raise SealBroken(str(path), "FEDFORGET_PASSPHRASE is not the one it was made with")
                raise Damaged(path, "a key and its check", "bytes that do not fit one another")
        raise Damaged(path, f"{_SECRET} bytes of key or salt and their check", f"{len(blob)} bytes")

    def _vault(self, epoch: int, mark: bytes, secret: bytes) -> Vault:
        if mark == _RAW:
            return Vault(epoch, secret)
        if self.passphrase is None:
            raise SettingError(
                "passphrase", None, "given in FEDFORGET_PASSPHRASE, for this workspace was made with one"
            )
        return Vault(epoch, passphrase_key(self.passphrase, secret))

    def destroy_all_but(self, epoch: int) -> None:
        """Erase the other epochs' keys."""
        for other in self.epochs():
            if other != epoch:
                self.disk.erase(self.path(other))

    def usable(self, epoch: int) -> bool:
        """Whether the epoch's key is there, and not half erased."""
        blob = self.disk.read(self.path(epoch))
        return blob is not None and blob.startswith((_RAW, _SALTED))

    # --- tombstones ---------------------------------------------------------------------------------------

    def tombstones(self) -> frozenset[str]:
        path = self.root / "tombstones.json"
        blob = self.disk.read(path)
        if blob is None:
            return frozenset()
        try:
            return frozenset(json.loads(blob))
        except (ValueError, TypeError) as fault:
            raise Damaged(path, "a list of keyed hashes", str(fault)) from fault

    def bury(self, federation: str, clients: Iterable[str]) -> None:
        self.keep(tombstone(federation, c) for c in clients)

    def keep(self, stones: Iterable[str]) -> None:
        known = self.tombstones() | frozenset(stones)
        self.disk.write(self.root / "tombstones.json", json.dumps(sorted(known)).encode(), mode=0o600)


def _check(vault: Vault) -> bytes:
    """Tells a wrong passphrase or a damaged key from the right one, and nothing else."""
    return hashlib.blake2b(b"fedforget", key=vault.key, digest_size=_CHECK).digest()


def tombstone(federation: str, name: str) -> str:
    """A name as the tombstones keep it: told only by who knows it."""
    return hashlib.blake2b(name.encode(), key=federation.encode()[:64], digest_size=16).hexdigest()
