"""Log: the ledger's events as others can hold us to them: signed checkpoints, proofs, and what a backup undid.

The newest signed checkpoint lies beside the keys, apart from the ledger. A ledger that is shorter was put back from a
backup; one that differs was altered.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Literal

from ..errors import Damaged, SettingError, VerificationFailed
from ..evidence.note import Checkpoint, origin_of, read_note
from ..signing import PublicKey, SecretKey
from ..storage.ledger import Branch
from .reports import Check, LogReport, ProofReport

if TYPE_CHECKING:
    from .workspace import Workspace

_KEY = "log key"


@dataclass(frozen=True)
class Standing:
    """How the ledger stands to what was signed last."""

    kind: Literal["unsigned", "current", "branched", "put back"]
    height: int
    signed: Checkpoint | None = None
    note: str = ""

    @property
    def since(self) -> int:
        """Events nobody has signed yet."""
        return self.height - self.signed.size if self.signed and self.kind == "current" else self.height

    @property
    def lost(self) -> int | None:
        """Events that were signed and are not there, where one can tell."""
        return max(0, self.signed.size - self.height) if self.signed else None


def origin(space: "Workspace") -> str:
    return origin_of(space.settings.federation, str(space.ledger.branch()["name"]))


def signing_key(space: "Workspace") -> SecretKey:
    """The key, made and entered in the log where there never was one; a lost or exchanged one is named."""
    known, key = space.ledger.noted(_KEY), space.keys.log_key()
    if key is None:
        if known:
            raise Damaged(
                space.keys.log_path, f"the key {known[-1]}", "no file: `fedforget log key DIR --new` starts anew"
            )
        key = space.keys.make_log_key()
    if not known or str(key.public) not in known:
        if known and standing(space, key).kind != "put back":
            raise Damaged(space.keys.log_path, f"the key {known[-1]}", f"another: {key.public}")
        space.ledger.note(_KEY, str(key.public))
    return key


def new_key(space: "Workspace") -> PublicKey:
    """Another key from now on; the log itself says so, signed by the new one."""
    key = space.keys.make_log_key()
    space.ledger.note(_KEY, str(key.public))
    seal(space)
    return key.public


def standing(space: "Workspace", key: SecretKey | None = None) -> Standing:
    blob = space.disk.read(space.keys.note_path)
    height = space.ledger.height()
    if blob is None:
        return Standing("unsigned", height)
    note = blob.decode(errors="replace")
    signed = _read(space, note, key)
    branch = space.ledger.branch()
    if signed.origin != origin_of(space.settings.federation, str(branch["name"])):
        return Standing("branched" if branch["after"] == _hash(note) else "put back", height, signed, note)
    if height < signed.size:
        return Standing("put back", height, signed, note)
    if space.ledger.chain.root(signed.size) != signed.root:
        raise Damaged(space.ledger.name, f"the log of {signed.size} events that was signed", "another")
    return Standing("current", height, signed, note)


def _read(space: "Workspace", note: str, key: SecretKey | None) -> Checkpoint:
    """The note by whichever key of ours signed it, older ones too; the ledger may be too old to know."""
    own = key or space.keys.log_key()
    for ours in (*([own.public] if own else []), *public_keys(space)):
        try:
            return read_note(note, ours)
        except VerificationFailed:
            continue
    raise Damaged(space.keys.note_path, "a checkpoint that was signed here", "another")


def branch_of(found: Standing) -> Branch:
    """A new name for a log that contradicts what was signed."""
    return Branch(secrets.token_hex(4), _hash(found.note), found.lost)


def _hash(note: str) -> str:
    return hashlib.sha256(note.encode()).hexdigest()


def checkpoint(space: "Workspace") -> Checkpoint:
    """The log as it is now."""
    size = space.ledger.height()
    time = space.ledger.clock().astimezone(UTC).isoformat(timespec="seconds")
    return Checkpoint(origin(space), size, space.ledger.chain.root(size), time, space.ledger.inventory())


def seal(space: "Workspace") -> None:
    """Sign what is there, unless that was done."""
    key = signing_key(space)
    found = standing(space, key)
    if found.kind != "current" or found.since:
        space.disk.write(space.keys.note_path, checkpoint(space).signed(key).encode())


# --- looking ------------------------------------------------------------------------------------------------


def check(space: "Workspace") -> Check:
    """The file is sound, every event is what its hash says, and all is what was signed last."""
    unsound = space.ledger.unsound()
    if unsound:
        return Check("ledger", False, f"the database says: {unsound}")
    broken = space.ledger.broken_link()
    if broken is not None:
        return Check("ledger", False, f"event {broken} was altered")
    key, known = space.keys.log_key(), space.ledger.noted(_KEY)
    found = standing(space, key)
    if key is None and known:
        return Check("ledger", False, f"{space.keys.log_path} is missing; `fedforget log key DIR --new` starts anew")
    if key is None or found.signed is None:
        return Check("ledger", not known, f"{found.height} events, none signed yet; the next verb signs them")
    if str(key.public) not in known:
        return Check(
            "ledger", False, f"{space.keys.log_path} is not the key the log names, {', '.join(known) or 'none'}"
        )
    count = f"{found.height} events"
    if found.kind != "current" or found.since:
        return Check("ledger", True, f"{count}, {found.since} since the last signature; the next verb signs them")
    if found.signed.tables and found.signed.tables != space.ledger.inventory():
        return Check("ledger", False, "what is in force is not what was signed: a row was altered, added or lost")
    return Check("ledger", True, f"{count}, signed {found.signed.time}")


def report(space: "Workspace", since: int | None = None) -> LogReport:
    """The newest signed checkpoint; with `since`, the proof that it goes on from a shorter log."""
    found = standing(space)
    if found.signed is None or found.kind != "current":
        raise SettingError("log", space.path, "signed; `fedforget certificate issue DIR` signs what is there")
    size = found.signed.size
    if since is not None and not 0 <= since <= size:
        raise SettingError("since", since, f"from 0 to the {size} events of the newest checkpoint")
    proof = () if since is None else tuple(h.hex() for h in space.ledger.chain.consistency(since, size))
    return LogReport(found.signed.origin, size, found.signed.time, public_key(space), found.note, since, proof)


def public_keys(space: "Workspace") -> tuple[PublicKey, ...]:
    """Every key that ever signed here, the newest last."""
    return tuple(PublicKey.parse(text) for text in space.ledger.noted(_KEY))


def public_key(space: "Workspace") -> str:
    known = space.ledger.noted(_KEY)
    if not known:
        raise SettingError("log", space.path, "signed; `fedforget certificate issue DIR` makes its key")
    return known[-1]


def prove(space: "Workspace", seq: int) -> ProofReport:
    """That an event is in the log of the newest checkpoint."""
    newest = report(space)
    event = space.ledger.chain.event(seq)
    if seq >= newest.size:
        raise SettingError("event", seq, f"below {newest.size}, what was signed; the next verb signs the rest")
    proof = tuple(h.hex() for h in space.ledger.chain.inclusion(seq, newest.size))
    return ProofReport(event.opened, event.hash, proof, newest.checkpoint)


def verify_since(space: "Workspace", note: str, key: PublicKey) -> Checkpoint:
    """That the log here goes on from a checkpoint somebody kept."""
    then = read_note(note, key)
    if then.origin != origin(space):
        raise VerificationFailed([f"the log here is {origin(space)}, that checkpoint is of {then.origin}"])
    if then.size > space.ledger.height() or space.ledger.chain.root(then.size) != then.root:
        raise VerificationFailed([f"the log here does not begin with the {then.size} events of that checkpoint"])
    return then


def mentioning(space: "Workspace", client: str) -> list[int]:
    """The events whose bodies name a client."""

    def names(value: object) -> bool:
        if isinstance(value, dict):
            return any(names(item) for item in value.values())
        if isinstance(value, list):
            return any(names(item) for item in value)
        return isinstance(value, str) and client in value.replace(",", " ").split()

    return [e.seq for e in space.ledger.events() if e.kind not in ("certified", "redacted") and names(e.body)]
