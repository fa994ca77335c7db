"""Certificate: the in-toto statement of a forget, bound to its place in the log, in a DSSE envelope.

The *account* is the statement without its log section. The log's event commits to the account's hash, so the log cannot
hold another story than the certificate, and a certificate lost is made again from account, log and key, bit for bit.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..canonical import canonical, read_canonical
from ..errors import SettingError, VerificationFailed
from ..signing import PublicKey, SecretKey
from . import dsse, merkle
from .entry import opened_hash
from .note import Checkpoint, read_note
from .schema import unfit

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:fedforget:certificate:v1"
SCHEMA: Mapping[str, Any] = json.loads(files(__package__).joinpath("certificate.schema.json").read_text())


@dataclass(frozen=True)
class Certificate:
    """A certificate that holds."""

    statement: Mapping[str, Any]
    checkpoint: Checkpoint
    digest: str  # SHA-256 of its payload: what a later certificate links to

    @property
    def predicate(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.statement["predicate"]
        return found


def account(models: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """The statement but for its place in the log."""
    return {
        "_type": STATEMENT_TYPE,
        "predicateType": PREDICATE_TYPE,
        "subject": subjects(models),
        "predicate": dict(predicate),
    }


def subjects(models: Mapping[str, str]) -> list[dict[str, Any]]:
    """Shard models as in-toto names artefacts: the digest is that of the model's safetensors file."""
    return [
        {"name": f"shard-{shard}", "digest": {"sha256": digest}}
        for shard, digest in sorted(models.items(), key=lambda item: int(item[0]))
    ]


def account_digest(statement: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(account_of(statement))).hexdigest()


def account_of(statement: Mapping[str, Any]) -> dict[str, Any]:
    predicate = {name: value for name, value in statement["predicate"].items() if name != "log"}
    return {**statement, "predicate": predicate}


def issue(
    told: Mapping[str, Any], event: Mapping[str, Any], proof: Sequence[bytes], checkpoint: Checkpoint, key: SecretKey
) -> bytes:
    """The file: the account with its event, opened, and the way from it to a signed checkpoint."""
    log = {"event": dict(event), "proof": [part.hex() for part in proof], "checkpoint": checkpoint.signed(key)}
    return dsse.wrap(canonical({**told, "predicate": {**told["predicate"], "log": log}}), key)


def read(blob: bytes, key: PublicKey) -> Certificate:
    """The certificate, if everything about it holds."""
    payload = dsse.unwrap(blob, key)
    statement = parse(payload)
    wrong = unfit(statement, SCHEMA)
    if wrong:
        raise VerificationFailed([f"the statement does not fit the schema: {wrong}"])
    predicate = statement["predicate"]
    log = predicate["log"]
    event = log["event"]
    told = {"request": predicate["request"]["id"], "state": predicate["state"], "statement": account_digest(statement)}
    if event["body"] != told:
        raise VerificationFailed(["the log's event is about another statement"])
    checkpoint = read_note(log["checkpoint"], key)
    proof = [bytes.fromhex(part) for part in log["proof"]]
    if not merkle.included(opened_hash(event), event["seq"], checkpoint.size, proof, checkpoint.root):
        raise VerificationFailed([f"event {event['seq']} is not in the log of {checkpoint.size} events"])
    return Certificate(statement, checkpoint, hashlib.sha256(payload).hexdigest())


def parse(payload: bytes) -> Mapping[str, Any]:
    try:
        statement = read_canonical(payload)
    except SettingError as fault:
        raise VerificationFailed(["the payload is not canonical JSON"]) from fault
    if not isinstance(statement, dict):
        raise VerificationFailed(["the payload is no statement"])
    return statement


def check_later(found: Certificate, later: Mapping[str, Any], key: PublicKey) -> Checkpoint:
    """That the log the certificate stands in is the beginning of a later one."""
    try:
        note, proof = str(later["checkpoint"]), [bytes.fromhex(part) for part in later["proof"]]
    except (KeyError, TypeError, ValueError) as fault:
        raise VerificationFailed(["no checkpoint and proof, as `fedforget log checkpoint --json` gives"]) from fault
    then, now = found.checkpoint, read_note(note, key)
    if now.origin != then.origin:
        raise VerificationFailed([f"the later checkpoint is of another log, {now.origin}"])
    if not merkle.consistent(then.size, now.size, then.root, now.root, proof):
        raise VerificationFailed([f"the log of {now.size} events does not begin with that of {then.size}"])
    return now
