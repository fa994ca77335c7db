"""DSSE envelope, version 1: what was signed, of which type, by which key.

Stricter than the standard asks: exactly one signature and one spelling of the whole file, so that no bit of it lies
outside what is checked.
"""

import base64

from ..canonical import canonical, read_canonical
from ..errors import SettingError, VerificationFailed
from ..signing import PublicKey, SecretKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: what is signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def wrap(payload: bytes, key: SecretKey) -> bytes:
    signature = base64.b64encode(key.sign(pae(PAYLOAD_TYPE, payload))).decode()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key.public.id, "sig": signature}],
    }
    return canonical(envelope) + b"\n"


def unwrap(blob: bytes, key: PublicKey) -> bytes:
    """The payload, if the key signed it."""
    payload, keyid, signature = open_unchecked(blob)
    if keyid != key.id or not key.signed(signature, pae(PAYLOAD_TYPE, payload)):
        raise VerificationFailed([f"the envelope is not signed by {key}"])
    return payload


def open_unchecked(blob: bytes) -> tuple[bytes, str, bytes]:
    """Payload, key id and signature of an envelope, whoever signed it."""
    if not blob.endswith(b"\n"):
        raise VerificationFailed(["the envelope does not end as it should"])
    try:
        envelope = read_canonical(blob[:-1])
    except SettingError as fault:
        raise VerificationFailed(["the envelope is not canonical JSON"]) from fault
    try:
        (signature,) = envelope["signatures"]
        keyid, signed = signature["keyid"], signature["sig"]
        same = {"payload": envelope["payload"], "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
        if envelope != same or set(signature) != {"keyid", "sig"}:
            raise ValueError("other fields")
        return _base64(envelope["payload"]), keyid, _base64(signed)
    except (KeyError, TypeError, ValueError) as fault:
        raise VerificationFailed(["the envelope is not one in-toto payload with one signature"]) from fault


def _base64(text: str) -> bytes:
    blob = base64.b64decode(text, validate=True)
    if base64.b64encode(blob).decode() != text:
        raise ValueError("base64 in two spellings")
    return blob
