"""Verify a FedForget certificate: this one file, Python 3.11 and the `cryptography` package.

    python verify_certificate.py FILE --key ed25519:…            the operator's public key, had from elsewhere
    python verify_certificate.py FILE --key … --later CHECKPOINT the log of then is the beginning of the log of now
    python verify_certificate.py FILE --key … --replay 3 DIR     train three random rounds again, compare digests

Checked: the DSSE envelope's signature, the in-toto statement against its schema, that the log's event commits to this
very statement, the event's inclusion in the log, the checkpoint's signature. Replaying needs what training needed: the
installed fedforget, the workspace with its keys, enough holders and the clients' data. Everything else needs this
file alone. Exit code 0: verified. 12: not.
"""

import argparse
import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
HEX, DECIMAL, TEXT = "[0-9a-f]{64}", r"[0-9]{1,15}(\.[0-9]{1,6})?", "[^\\x00-\\x1f]{0,4000}"
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00"
MODELS = [{"name": "shard-[0-9]{1,9}", "digest": {"sha256": HEX}}]
WORDS = dict.fromkeys(("name", "meaning", "reason", "not_better"), TEXT)
BODY = {"request": int, "state": "executed|final", "statement": HEX}
EVENT = {"seq": int, "time": TIME, "kind": "certified", "previous": HEX, "salt": HEX, "body": BODY}
# A string: a pattern of the whole text. int: 0 or more. bool. [x]: a list of x. (x,): x or null. {…}: exactly these.
SHAPE: dict[str, Any] = {
    "_type": r"https://in-toto\.io/Statement/v1",
    "predicateType": "urn:fedforget:certificate:v1",
    "subject": MODELS,
    "predicate": {
        "state": "executed|final",
        "federation": TEXT,
        "request": {"id": int, "requested": TIME, "executed": TIME, "scope": {"change": [HEX], "leave": [HEX]}},
        "guarantee": {"class": "X0|X1|X2|X3|A|Q", "conditions": [TEXT], **WORDS},
        "touched": [{"stage": int, "shard": int, "from_round": int, "rounds": int, "inherited": bool}],
        "method": {"name": TEXT, "ratio": DECIMAL, "interval": int, "compat": TEXT, "length": (DECIMAL,)},
        "training": {"task": TEXT, "learner": TEXT, "epochs": int, "seed": TEXT, "settings": HEX, "numerics": [TEXT]},
        "code": {"package": TEXT, "version": TEXT, "sources": HEX},
        "before": MODELS,
        "destroyed": {"epoch": int, "record_keys": int, "slices_deleted": int, "slices_pending": int},
        "replayed": {"clients": int, "rounds": int, "client_epochs": int},
        "measures": {"client_seconds": DECIMAL, "wall_seconds": DECIMAL},
        "backups": {"window_days": int, "over": TIME},
        "limits": [TEXT],
        "previous": (HEX,),
        "log": {"event": EVENT, "proof": [HEX], "checkpoint": r"[^\x00-\x09\x0b-\x1f]{0,4000}"},
    },
}
NOTE = re.compile(
    r"(?P<text>(?P<origin>[A-Za-z0-9._/-]{1,200})\n(?P<size>0|[1-9][0-9]{0,15})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"time [0-9T:+-]{25}\n(tables [0-9a-f]{64}\n)?)\n— (?P<name>[A-Za-z0-9._/-]{1,200}) (?P<sig>[A-Za-z0-9+/]{91}=)\n"
)


class Refused(Exception):
    """The certificate does not hold, and why."""


def need(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def parse(blob: bytes, what: str) -> Any:
    """JSON in its one spelling."""
    try:
        value = json.loads(blob)
        need(canonical(value) == blob, f"{what} is JSON in another spelling")
    except (ValueError, RecursionError):
        raise Refused(f"{what} is not JSON") from None
    return value


def decode(text: str, what: str) -> bytes:
    """Base64 in its one spelling."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise Refused(f"{what} is not base64") from None
    need(base64.b64encode(blob).decode() == text, f"{what} is base64 in two spellings")
    return blob


def check_signature(key: bytes, signature: bytes, message: bytes, what: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Refused(f"{what} is not signed by that key") from None


def check_shape(value: Any, shape: Any, where: str = "statement") -> None:
    if isinstance(shape, tuple):
        if value is not None:
            check_shape(value, shape[0], where)
    elif isinstance(shape, dict):
        need(isinstance(value, dict) and set(value) == set(shape), f"{where} has not the fields of the schema")
        for name in shape:
            check_shape(value[name], shape[name], f"{where}.{name}")
    elif isinstance(shape, list):
        need(isinstance(value, list), f"{where} is no list")
        for at, item in enumerate(value):
            check_shape(item, shape[0], f"{where}[{at}]")
    elif isinstance(shape, str):
        need(isinstance(value, str) and re.fullmatch(shape, value), f"{where} is not {shape}")
    else:
        need(type(value) is shape and (shape is bool or 0 <= value < 1 << 53), f"{where} is no {shape.__name__}")


def open_envelope(blob: bytes, key: bytes) -> bytes:
    need(blob.endswith(b"\n"), "the file does not end as it should")
    envelope = parse(blob[:-1], "the file")
    check_shape(
        envelope, {"payload": ".*", "payloadType": ".*", "signatures": [{"keyid": ".*", "sig": ".*"}]}, "envelope"
    )
    need(len(envelope["signatures"]) == 1, "the envelope has not exactly one signature")
    need(envelope["payloadType"] == PAYLOAD_TYPE, "the envelope holds no in-toto statement")
    need(envelope["signatures"][0]["keyid"] == hashlib.sha256(key).hexdigest()[:16], "the envelope names another key")
    payload = decode(envelope["payload"], "the payload")
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    check_signature(key, decode(envelope["signatures"][0]["sig"], "the signature"), signed, "the envelope")
    return payload


def read_checkpoint(note: str, key: bytes) -> tuple[str, int, bytes]:
    """Origin, size and root of a signed note."""
    found = NOTE.fullmatch(note)
    if found is None or found["name"] != found["origin"]:
        raise Refused("the checkpoint is not a signed note")
    body = decode(found["sig"], "the checkpoint's signature")
    need(body[:4] == sha256(found["name"].encode(), b"\n\x01", key)[:4], "the checkpoint names another key")
    check_signature(key, body[4:], found["text"].encode(), "the checkpoint")
    return found["origin"], int(found["size"]), decode(found["root"], "the checkpoint's root")


def climb(at: int, last: int, proof: list[bytes], was: bytes, now: bytes) -> tuple[bytes, bytes]:
    """The two roots a proof leads to (RFC 9162, 2.1.3.2 and 2.1.4.2); inclusion needs only the second."""
    for sibling in proof:
        need(last, "the proof is too long")
        if at & 1 or at == last:
            was, now = sha256(b"\x01", sibling, was), sha256(b"\x01", sibling, now)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            now = sha256(b"\x01", now, sibling)
        at, last = at >> 1, last >> 1
    need(not last, "the proof is too short")
    return was, now


def check_consistency(first: int, second: int, old: bytes, new: bytes, proof: list[bytes]) -> None:
    need(0 < first <= second, "the later log is shorter")
    if first == second:
        need(not proof and old == new, "two logs of one size differ")
        return
    nodes = proof if first & (first - 1) else [old, *proof]
    need(nodes, "the proof is too short")
    at, last = first - 1, second - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    need(climb(at, last, nodes[1:], nodes[0], nodes[0]) == (old, new), "the later log does not begin with the earlier")


def verify(blob: bytes, key: bytes, later: Any = None) -> Any:
    """The statement, if everything about it holds. `later`: a checkpoint of now and the proof that leads to it."""
    statement = parse(open_envelope(blob, key), "the payload")
    check_shape(statement, SHAPE)
    predicate = statement["predicate"]
    log, body = predicate["log"], predicate["log"]["event"]["body"]
    account = {**statement, "predicate": {name: value for name, value in predicate.items() if name != "log"}}
    need(body["statement"] == sha256(canonical(account)).hex(), "the log's event is about another statement")
    same = (body["request"], body["state"]) == (predicate["request"]["id"], predicate["state"])
    need(same, "the log's event is about another request or state")
    event = dict(log["event"])
    committed = sha256(bytes.fromhex(event.pop("salt")), canonical(event.pop("body")))
    leaf = sha256(b"\x00", canonical({**event, "commitment": committed.hex()}))
    origin, size, root = read_checkpoint(log["checkpoint"], key)
    proof = [bytes.fromhex(part) for part in log["proof"]]
    need(event["seq"] < size, "the event is later than the checkpoint")
    need(climb(event["seq"], size - 1, proof, leaf, leaf)[1] == root, "the event is not in the checkpoint's log")
    if later is not None:
        now, length, top = read_checkpoint(later["checkpoint"], key)
        need(now == origin, f"the later checkpoint is of another log, {now}")
        check_consistency(size, length, root, top, [bytes.fromhex(part) for part in later["proof"]])
    return statement


def replay(statement: Any, count: int, folder: str) -> str:
    """Train rounds again, and see that the models of the certificate are those the workspace's rounds end in."""

    def ask(*words: str) -> Any:
        run = [sys.executable, "-m", "fedforget", *words, "--json"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        need(done.returncode == 0, f"`fedforget {' '.join(words)}` failed: {done.stderr or done.stdout}".strip())
        return json.loads(done.stdout)

    checks = ask("verify", folder, "--replay", str(count))["checks"]
    shards = ask("status", folder)["shards"]
    now = {f"shard-{shard['shard']}": shard["digest"] for shard in shards}
    moved = [m["name"] for m in statement["subject"] if now.get(m["name"]) != m["digest"]["sha256"]]
    check = next(str(check["detail"]) for check in checks if check["what"] == "replay")
    return f"{check}; {'moved on since: ' + ', '.join(moved) if moved else 'the models are those served'}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify a FedForget certificate.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", required=True, help="ed25519: and 64 hexadecimal digits, or a file with that")
    parser.add_argument("--later", type=Path, help="what `fedforget log checkpoint DIR --since SIZE --json` printed")
    parser.add_argument("--replay", nargs=2, metavar=("Q", "DIR"), help="train Q random rounds of a workspace again")
    given = parser.parse_args()
    try:
        text = given.key if given.key.startswith("ed25519:") else Path(given.key).read_text()
        need(re.fullmatch(f"ed25519:{HEX}", text.strip()), "the key is not ed25519: and 64 hexadecimal digits")
        later = json.loads(given.later.read_bytes()) if given.later else None
        statement = verify(given.file.read_bytes(), bytes.fromhex(text.strip()[8:]), later)
        said = replay(statement, int(given.replay[0]), given.replay[1]) if given.replay else ""
    except (Refused, OSError, ValueError, KeyError, TypeError) as fault:
        sys.stdout.write(f"REFUSED {given.file}: {fault}\n")
        sys.exit(12)
    told = statement["predicate"]
    grade = told["guarantee"]["class"]
    sys.stdout.write(f"verified: request {told['request']['id']} is {told['state']}, class {grade}\n")
    sys.stdout.write(f"signed by {text.strip()}; {said or 'nothing was replayed'}\n")


if __name__ == "__main__":
    main()
