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

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
HEX, DECIMAL, TEXT = "[0-9a-f]{64}", r"[0-9]{1,15}(\.[0-9]{1,6})?", "[^\\x00-\\x1f]{0,4000}"
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00"
MODEL = {"name": "shard-[0-9]{1,9}", "digest": {"sha256": HEX}}
# A string: a pattern of the whole text. int: 0 or more. bool. [x]: a list of x. (x,): x or null. {…}: exactly these.
SHAPE = {
    "_type": r"https://in-toto\.io/Statement/v1",
    "predicateType": "urn:fedforget:certificate:v1",
    "subject": [MODEL],
    "predicate": {
        "state": "executed|final",
        "federation": TEXT,
        "request": {"id": int, "requested": TIME, "executed": TIME, "scope": {"change": [HEX], "leave": [HEX]}},
        "guarantee": {
            "class": "X0|X1|X2|X3|A|Q",
            "name": TEXT,
            "meaning": TEXT,
            "reason": TEXT,
            "conditions": [TEXT],
            "not_better": TEXT,
        },
        "touched": [{"stage": int, "shard": int, "from_round": int, "rounds": int, "inherited": bool}],
        "method": {"name": TEXT, "ratio": DECIMAL, "interval": int, "compat": TEXT, "length": (DECIMAL,)},
        "training": {"task": TEXT, "learner": TEXT, "epochs": int, "seed": TEXT, "settings": HEX, "numerics": [TEXT]},
        "code": {"package": TEXT, "version": TEXT, "sources": HEX},
        "before": [MODEL],
        "destroyed": {"epoch": int, "record_keys": int, "slices_deleted": int, "slices_pending": int},
        "replayed": {"clients": int, "rounds": int, "client_epochs": int},
        "measures": {"client_seconds": DECIMAL, "wall_seconds": DECIMAL},
        "backups": {"window_days": int, "over": TIME},
        "limits": [TEXT],
        "previous": (HEX,),
        "log": {
            "event": {
                "seq": int,
                "time": TIME,
                "kind": "certified",
                "previous": HEX,
                "salt": HEX,
                "body": {"request": int, "state": "executed|final", "statement": HEX},
            },
            "proof": [HEX],
            "checkpoint": r"[^\x00-\x09\x0b-\x1f]{0,4000}",
        },
    },
}
NOTE = re.compile(
    r"(?P<text>(?P<origin>[A-Za-z0-9._/-]{1,200})\n(?P<size>0|[1-9][0-9]{0,15})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"time [0-9T:+-]{25}\n(tables [0-9a-f]{64}\n)?)\n— (?P<name>[A-Za-z0-9._/-]{1,200}) (?P<sig>[A-Za-z0-9+/]{91}=)\n"
)


class Refused(Exception):
    """The certificate does not hold, and why."""


def need(holds, why):
    if not holds:
        raise Refused(why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def parse(blob, what):
    """JSON in its one spelling."""
    try:
        value = json.loads(blob)
        same = canonical(value) == blob
    except (ValueError, RecursionError):
        same = False
    need(same, f"{what} is not canonical JSON")
    return value


def decode(text, what):
    """Base64 in its one spelling."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        blob = None
    need(blob is not None and base64.b64encode(blob).decode() == text, f"{what} is not base64")
    return blob


def check_signature(key, signature, message, what):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Refused(f"{what} is not signed by that key") from None


def check_shape(value, shape, where="statement"):
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


def open_envelope(blob, key):
    envelope = parse(blob[:-1], "the file") if blob.endswith(b"\n") else None
    fields = isinstance(envelope, dict) and set(envelope) == {"payload", "payloadType", "signatures"}
    signatures = envelope["signatures"] if fields else None
    need(isinstance(signatures, list) and len(signatures) == 1, "the file is not an envelope with one signature")
    need(isinstance(signatures[0], dict) and set(signatures[0]) == {"keyid", "sig"}, "its signature has other fields")
    need(envelope["payloadType"] == PAYLOAD_TYPE, "the envelope holds no in-toto statement")
    need(signatures[0]["keyid"] == hashlib.sha256(key).hexdigest()[:16], "the envelope names another key")
    payload = decode(envelope["payload"], "the payload")
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    check_signature(key, decode(signatures[0]["sig"], "the signature"), signed, "the envelope")
    return payload


def read_checkpoint(note, key):
    """Origin, size and root of a signed note."""
    found = NOTE.fullmatch(note) if isinstance(note, str) else None
    need(found and found["name"] == found["origin"], "the checkpoint is not a signed note")
    body = decode(found["sig"], "the checkpoint's signature")
    need(body[:4] == sha256(found["name"].encode(), b"\n\x01", key)[:4], "the checkpoint names another key")
    check_signature(key, body[4:], found["text"].encode(), "the checkpoint")
    return found["origin"], int(found["size"]), decode(found["root"], "the checkpoint's root")


def node(left, right):
    return sha256(b"\x01", left, right)


def root_from(leaf, index, size, proof):
    """The root an inclusion proof leads to (RFC 9162, 2.1.3.2)."""
    need(0 <= index < size, "the event is not in the log")
    last, found = size - 1, leaf
    for sibling in proof:
        need(last, "the inclusion proof is too long")
        if index & 1 or index == last:
            found = node(sibling, found)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            found = node(found, sibling)
        index, last = index >> 1, last >> 1
    need(not last, "the inclusion proof is too short")
    return found


def check_consistency(first, second, old, new, proof):
    """RFC 9162, 2.1.4.2."""
    need(0 < first <= second, "the later log is shorter")
    if first == second:
        return need(not proof and old == new, "two logs of one size differ")
    nodes = proof if first & (first - 1) else [old, *proof]
    need(nodes, "the consistency proof is too short")
    at, last, was, now = first - 1, second - 1, nodes[0], nodes[0]
    while at & 1:
        at, last = at >> 1, last >> 1
    for sibling in nodes[1:]:
        need(last, "the consistency proof is too long")
        if at & 1 or at == last:
            was, now = node(sibling, was), node(sibling, now)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            now = node(now, sibling)
        at, last = at >> 1, last >> 1
    return need(not last and was == old and now == new, "the later log does not begin with the earlier")


def verify(blob, key, later=None):
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
    need(root_from(leaf, event["seq"], size, proof) == root, "the event is not in the log the checkpoint is of")
    if later is not None:
        now, length, top = read_checkpoint(later["checkpoint"], key)
        need(now == origin, f"the later checkpoint is of another log, {now}")
        check_consistency(size, length, root, top, [bytes.fromhex(part) for part in later["proof"]])
    return statement


def replay(statement, count, folder):
    """Train rounds again, and see that the models of the certificate are those the workspace's rounds end in."""
    run = [sys.executable, "-m", "fedforget", "verify", folder, "--replay", str(count), "--json"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"replaying failed: {done.stdout or done.stderr}".strip())
    status = [sys.executable, "-m", "fedforget", "status", folder, "--json"]
    shards = json.loads(subprocess.run(status, capture_output=True, text=True, check=True).stdout)["shards"]
    now = {f"shard-{shard['shard']}": shard["digest"] for shard in shards}
    moved = [m["name"] for m in statement["subject"] if now.get(m["name"]) != m["digest"]["sha256"]]
    (check,) = [check["detail"] for check in json.loads(done.stdout)["checks"] if check["what"] == "replay"]
    return check + (
        f"; trained on or forgotten from since: {', '.join(moved)}" if moved else "; models are those served"
    )


def main():
    parser = argparse.ArgumentParser(description="Verify a FedForget certificate.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", required=True, help="ed25519: and 64 hexadecimal digits, or a file with that")
    parser.add_argument("--later", type=Path, help="what `fedforget log checkpoint DIR --since SIZE --json` printed")
    parser.add_argument("--replay", nargs=2, metavar=("Q", "DIR"), help="train Q random rounds of a workspace again")
    given = parser.parse_args()
    try:
        text = given.key if ":" in given.key else Path(given.key).read_text()
        found = re.fullmatch(f"ed25519:({HEX})", text.strip())
        need(found, "the key is not ed25519: and 64 hexadecimal digits")
        later = json.loads(given.later.read_bytes()) if given.later else None
        statement = verify(given.file.read_bytes(), bytes.fromhex(found[1]), later)
        said = replay(statement, int(given.replay[0]), given.replay[1]) if given.replay else ""
    except (Refused, OSError, ValueError, KeyError, TypeError) as fault:
        print(f"REFUSED {given.file}: {fault}")
        sys.exit(12)
    predicate = statement["predicate"]
    print(
        f"verified: request {predicate['request']['id']} is {predicate['state']}, class {predicate['guarantee']['class']}"
    )
    print(f"signed by {text.strip()}; {said or 'nothing was replayed'}")


if __name__ == "__main__":
    main()
