"""Whatever is altered, forged, expired, replayed or meant for elsewhere is denied, and changes nothing but the log.

The long run, 100,000 documents from seed 0, is `pytest -m slow tests/workspace/test_forged.py`.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asking import Clock, desk, enrol, key
from small import client, copied, make

from fedforget.canonical import canonical
from fedforget.requests.signed import Signed
from fedforget.requests.times import spell
from fedforget.signing import SecretKey
from fedforget.workspace import Workspace

CLIENTS = [client(i) for i in range(8)]
EVERY_KIND = {
    "malformed", "forged", "unknown", "revoked", "posing", "elsewhere", "early", "expired", "replayed", "taken",
    "not allowed", "impossible",
}  # fmt: skip


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    path = shared_room / "pristine"
    make(path).close()
    with desk(path, Clock()) as space:
        enrol(space, CLIENTS)
        space.requests.enrol("auditor", "eve", key("eve").public)
        space.requests.enrol("operator", "old", key("old").public)
        space.requests.revoke(key("old").public)
    return path


def documents(space: Workspace) -> list[dict[str, Any]]:
    """Good wishes, by clients for themselves and by an operator for anybody, as they would be signed."""
    now = space.ledger.clock()
    found = []
    for at, who in enumerate([*CLIENTS, "ann", "bob"]):
        role = "client" if who in CLIENTS else "operator"
        found.append(
            {
                "kind": "fedforget/wish/1",
                "federation": "small",
                "request": f"r-{who}",
                "by": {"role": role, "name": who},
                "nonce": f"{at:032x}",
                "issued": spell(now),
                "expires": spell(now + timedelta(days=20)),
                "scope": {"kind": "client", "clients": [who if role == "client" else client(at % 8)]},
            }
        )
    return found


def signed(document: Mapping[str, Any], who: str) -> bytes:
    return Signed.sign(document, key(who)).to_bytes()


# --- ways to spoil a document -----------------------------------------------------------------------------------

Spoil = Callable[[dict[str, Any], str, random.Random], bytes]


def bit(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    blob = bytearray(signed(document, who))
    blob[rng.randrange(len(blob))] ^= 1 << rng.randrange(8)
    return bytes(blob)


def piece(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """Bytes cut out, doubled, inserted, exchanged."""
    blob = signed(document, who)
    a, b = sorted(rng.sample(range(len(blob) + 1), 2))
    ways = [blob[:a] + blob[b:], blob[:b] + blob[a:], blob[:a] + rng.randbytes(b - a) + blob[b:], blob[:a], blob + blob]
    return rng.choice([way for way in ways if way != blob])


def spelling(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """The same meaning in another spelling."""
    parts = json.loads(signed(document, who))
    ways = [
        json.dumps(parts).encode(),
        json.dumps(parts, sort_keys=True, separators=(",", ":"), indent=0).encode(),
        canonical({**parts, "signature": parts["signature"].upper()}),
        canonical({**parts, "key": parts["key"].upper()}),
        canonical({**parts, "key": f" {parts['key']}"}),
        canonical({**parts, "more": None}),
        canonical(parts).replace(b'{"document"', b'{"document":{},"document"', 1),
        b"\xef\xbb\xbf" + canonical(parts),
        canonical(parts) + b"\n",
    ]
    return rng.choice(ways)


def field(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """One thing said differently, under the signature of what was."""
    name = rng.choice(["request", "by", "nonce", "issued", "expires", "scope", "federation", "kind", "reason"])
    other = {
        "request": f"x{rng.getrandbits(40):x}",
        "by": {"role": rng.choice(["client", "operator"]), "name": rng.choice([*CLIENTS, "ann"])},
        "nonce": f"{rng.getrandbits(128):032x}",
        "issued": "2026-01-30T12:00:00Z",
        "expires": "2026-02-10T12:00:00Z",
        "scope": {"kind": "client", "clients": sorted(rng.sample(CLIENTS, 2))},
        "federation": "large",
        "kind": "fedforget/verdict/1",
        "reason": "because",
    }
    parts = json.loads(signed(document, who))
    if parts["document"].get(name) == other[name]:
        other[name] = "2026-01-29T12:00:00Z" if name == "issued" else {"role": "client", "name": "x"}
    parts["document"][name] = other[name]
    return canonical(parts)


def anew(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Another request, so that no id and no nonce tells on it."""
    text = random.Random(canonical(document)).getrandbits(128)
    return {**document, "request": f"n{text:x}", "nonce": f"{text:032x}", **changes}


def other_key(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """Well signed, by somebody else: another client, an auditor, a revoked operator, nobody we know."""
    secret = rng.choice([key(w) for w in (*CLIENTS, "ann", "eve", "old") if w != who] + [SecretKey(rng.randbytes(32))])
    return Signed.sign(anew(document), secret).to_bytes()


def posing(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """In the name of the one whose key it is, but in another role, or for somebody else."""
    role = rng.choice(["operator", "auditor", "custodian", "worker", "king"]) if who in CLIENTS else "client"
    others = [c for c in CLIENTS if c != who]
    ways = [{"by": {"role": role, "name": who}}]
    if who in CLIENTS:
        ways.append({"scope": {"kind": "client", "clients": [rng.choice(others)]}})
        ways.append({"scope": {"kind": "client", "clients": sorted([who, rng.choice(others)])}})
        ways.append({"scope": {"kind": "class", "clients": [], "label": rng.randrange(3)}})
        ways.append({"scope": {"kind": "stages", "clients": [], "stages": [0, 0]}})
    else:
        ways.append({"scope": {"kind": "client", "clients": ["stranger"]}})
    return signed(anew(document, **rng.choice(ways)), who)


def late(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """Expired, still to come, or valid for longer than anything may be."""
    ways = [
        {"issued": "2026-01-01T12:00:00Z", "expires": "2026-01-31T12:00:00Z"},
        {"issued": "2025-06-01T12:00:00Z", "expires": "2025-06-02T12:00:00Z"},
        {"issued": "2026-01-31T12:05:01Z", "expires": "2026-02-03T12:00:00Z"},
        {"issued": "2026-01-31T12:00:00Z", "expires": "2026-03-31T12:00:00Z"},
        {"issued": "2026-02-01T12:00:00Z", "expires": "2026-01-31T12:00:00Z"},
        {"issued": "2026-02-30T12:00:00Z", "expires": "2026-03-01T12:00:00Z"},
        {"issued": 1769860800},
    ]
    return signed(anew(document, **rng.choice(ways)), who)


def elsewhere(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    return signed(anew(document, federation=rng.choice(["large", "Small", "", "small "])), who)


def replayed(document: dict[str, Any], who: str, rng: random.Random) -> bytes:
    """The nonce of what was accepted, under another id; its id, with another nonce; or the very same once more."""
    fresh = f"{rng.getrandbits(100):032x}"
    return signed(rng.choice([{**document, "request": f"x{fresh}"}, {**document, "nonce": fresh}, document]), who)


SPOIL: tuple[Spoil, ...] = (bit, piece, spelling, field, other_key, posing, late, elsewhere, replayed)


def attack(path: Path, count: int, seed: int = 0) -> Counter[str]:
    """Deliver so many spoiled documents between and after good ones; nothing but the good ones is ever there."""
    rng, denials = random.Random(seed), Counter[str]()
    with desk(path, Clock()) as space:
        good = documents(space)
        blobs = [signed(document, document["by"]["name"]) for document in good]
        accepted = space.requests.ask(*blobs)
        accepted.raise_if_denied()
        before = rows(space)
        events = space.ledger.height()
        for start in range(0, count, 500):
            spoiled = []
            for _ in range(min(500, count - start)):
                document = rng.choice(good)
                spoiled.append(rng.choice(SPOIL)(document, document["by"]["name"], rng))
            receipts = space.requests.ask(*spoiled).receipts
            for blob, receipt in zip(spoiled, receipts, strict=True):
                if receipt.state == "denied":
                    denials[receipt.kind] += 1
                else:  # only ever what had been accepted before, bit for bit
                    assert receipt.again
                    assert blob in blobs
                    denials["the same again"] += 1
        assert rows(space) == before
        denied = sum(count for kind, count in denials.items() if kind != "the same again")
        assert space.ledger.height() == events + denied
        assert space.ledger.broken_link() is None
    return denials


def rows(space: Workspace) -> list[tuple[str, str, str]]:
    return [(line.id, line.state, line.scope) for line in space.requests.list().requests]


def test_two_thousand_spoiled_documents_none_accepted(pristine: Path, room: Path) -> None:
    denials = attack(copied(pristine, room / "w"), 2_000)
    assert set(denials) == EVERY_KIND | {"the same again"}


@pytest.mark.slow
def test_a_hundred_thousand_spoiled_documents_none_accepted(pristine: Path, room: Path) -> None:
    denials = attack(copied(pristine, room / "w"), 100_000)
    assert set(denials) == EVERY_KIND | {"the same again"}
    sys.stdout.write(f"\n{dict(sorted(denials.items()))}\n")  # what docs/requests.md has; `-s` shows it


def test_verdicts_are_no_wishes_and_wishes_no_verdicts(pristine: Path, room: Path) -> None:
    with desk(copied(pristine, room / "w"), Clock()) as space:
        document = documents(space)[0]
        wish = signed(document, client(0))
        space.requests.ask(wish).raise_if_denied()
        assert space.requests.decide(wish).receipts[0].kind == "malformed"
        verdict = space.requests.verdict("r-client-000", "hold", "why", key("ann")).to_bytes()
        assert space.requests.ask(verdict).receipts[0].kind == "malformed"
        flipped = 0
        for at in range(0, len(verdict), 3):
            altered = verdict[:at] + bytes([verdict[at] ^ 1]) + verdict[at + 1 :]
            assert space.requests.decide(altered).receipts[0].state == "denied"
            flipped += 1
        assert flipped > 100
        assert rows(space)[0][1] == "quarantined"
        for who in ("eve", "old", client(1)):
            parts = json.loads(verdict)["document"]
            forged = Signed.sign({**parts, "by": {"role": "operator", "name": who}}, key(who)).to_bytes()
            assert space.requests.decide(forged).receipts[0].state == "denied"
        later = json.loads(verdict)["document"] | {"request": "r-none"}
        assert space.requests.decide(signed(later, "ann")).receipts[0].kind == "impossible"
        reused = json.loads(verdict)["document"]
        space.requests.decide(verdict).raise_if_denied()
        again = {**reused, "verdict": "release"}
        assert space.requests.decide(signed(again, "ann")).receipts[0].kind == "replayed"
        big = b"x" * 4_000_001
        assert space.requests.decide(big).receipts[0].kind == "malformed"
