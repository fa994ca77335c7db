"""Signer: keys in files, and documents freshly signed. What a client does at home, without any workspace."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..errors import Damaged, SettingError
from ..requests import Scope
from ..requests.lifecycle import Role
from ..requests.signed import Signed
from ..requests.wish import Said, Wish
from ..signing import PublicKey, SecretKey
from ..storage.disk import Disk
from .request_reports import KeyPairReport, WishReport


def make_keys(path: Path, disk: Disk | None = None) -> KeyPairReport:
    """A new key pair: the secret half in PATH for its owner's eyes alone, the public half in PATH.pub."""
    public = path.with_name(path.name + ".pub")
    for file in (path, public):
        if file.exists():
            raise SettingError("file", str(file), "a new one: this one is there already")
    disk, secret = disk or Disk(), SecretKey.make()
    disk.write(path, secret.to_text().encode(), mode=0o600)
    disk.write(public, f"{secret.public}\n".encode())
    return KeyPairReport(str(path), str(public), str(secret.public), secret.public.id)


def read_secret(path: Path) -> SecretKey:
    return SecretKey.parse(_text(path))


def read_public(text: str) -> PublicKey:
    """The key itself, or a file that has it."""
    return PublicKey.parse(text if text.startswith("ed25519:") else _text(Path(text)))


def _text(path: Path) -> str:
    blob = Disk().read(path)
    if blob is None:
        raise SettingError("key", str(path), "a file of `fedforget keygen`")
    try:
        return blob.decode("ascii")
    except UnicodeDecodeError as fault:
        raise Damaged(path, "a key as text", "other bytes") from fault


def fresh(federation: str, role: str, name: str, now: datetime, lasts: timedelta, request: str = "") -> Said:
    """With an id (unless one is given) and a nonce nobody used before."""
    at = now.astimezone(UTC).replace(microsecond=0)
    who: Role = role  # type: ignore[assignment]
    return Said(federation, request or secrets.token_hex(8), who, name, secrets.token_hex(16), at, at + lasts)


def write_wish(
    out: Path, federation: str, scope: Scope, role: str, name: str, key: SecretKey, now: datetime,
    reason: str = "", basis: str = "", request: str = "", days: int = 31,
) -> WishReport:  # fmt: skip
    """A signed wish in a file, to be delivered by whatever way: `fedforget request DIR --file OUT`."""
    if out.exists():
        raise SettingError("file", str(out), "a new one: this one is there already")
    wish = Wish(fresh(federation, role, name, now, timedelta(days=days), request), scope, reason, basis)
    document = wish.to_document()
    Disk().write(out, Signed.sign(document, key).to_bytes())
    return WishReport(str(out), wish.id, str(scope), str(document["expires"]))
