"""Note: a log's checkpoint as signed text, in the format of C2SP tlog-checkpoint and signed-note.

fedforget/2f6c…                 origin: which log, and which branch of it after a restore
42                              how many events
q3xh…=                          the Merkle root over them, base64
time 2026-01-02T12:00:00+00:00
tables 9f…                      SHA-256 over all rows of the ledger, where one was taken

— fedforget/2f6c… ucWq…=        four bytes of key hash and the Ed25519 signature over all above the empty line
"""

import base64
import hashlib
import re
from dataclasses import dataclass

from ..errors import VerificationFailed
from ..signing import PublicKey, SecretKey

_NOTE = re.compile(
    r"(?P<text>(?P<origin>[A-Za-z0-9._/-]{1,200})\n(?P<size>0|[1-9][0-9]{0,15})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"time (?P<time>[0-9T:+-]{25})\n(?:tables (?P<tables>[0-9a-f]{64})\n)?)"
    r"\n— (?P<name>[A-Za-z0-9._/-]{1,200}) (?P<signature>[A-Za-z0-9+/]{91}=)\n"
)


@dataclass(frozen=True)
class Checkpoint:
    """A log's state at one moment."""

    origin: str
    size: int
    root: bytes
    time: str
    tables: str = ""

    @property
    def text(self) -> str:
        root = base64.b64encode(self.root).decode()
        tables = f"tables {self.tables}\n" if self.tables else ""
        return f"{self.origin}\n{self.size}\n{root}\ntime {self.time}\n{tables}"

    def signed(self, key: SecretKey) -> str:
        body = key_hash(self.origin, key.public) + key.sign(self.text.encode())
        return f"{self.text}\n— {self.origin} {base64.b64encode(body).decode()}\n"


def key_hash(name: str, key: PublicKey) -> bytes:
    return hashlib.sha256(name.encode() + b"\n\x01" + key.raw).digest()[:4]


def read_note(note: str, key: PublicKey) -> Checkpoint:
    """The checkpoint, if the note is spelled as we spell it and the key signed it."""
    found = _NOTE.fullmatch(note)
    if found is None:
        raise VerificationFailed(["the checkpoint is not a signed note"])
    body = _strict_base64(found["signature"])
    same_name = found["name"] == found["origin"]
    if not same_name or body[:4] != key_hash(found["origin"], key) or not key.signed(body[4:], found["text"].encode()):
        raise VerificationFailed([f"the checkpoint of {found['origin']} is not signed by {key}"])
    root = _strict_base64(found["root"])
    return Checkpoint(found["origin"], int(found["size"]), root, found["time"], found["tables"] or "")


def _strict_base64(text: str) -> bytes:
    """Bytes of their one spelling: the bits after the last byte are zero."""
    blob = base64.b64decode(text)
    if base64.b64encode(blob).decode() != text:
        raise VerificationFailed(["the checkpoint has base64 in two spellings"])
    return blob


def origin_of(federation: str, branch: str = "") -> str:
    """The log's name; a ledger put back from a backup goes on as a branch, for it contradicts what was signed."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", federation)[:64]
    return f"fedforget/{name}/{branch}" if branch else f"fedforget/{name}"
