"""A certificate made of nothing but itself, and every way to spoil one."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from fedforget.canonical import canonical
from fedforget.errors import FedForgetError
from fedforget.evidence import certificate, dsse, merkle, standalone
from fedforget.evidence.entry import opened_hash
from fedforget.evidence.note import Checkpoint
from fedforget.signing import PublicKey, SecretKey

KEY = SecretKey(bytes(range(32)))
OTHER = SecretKey(bytes(32))
TIME = "2026-01-02T12:00:00+00:00"
H = "0123456789abcdef" * 4
PREDICATE: dict[str, Any] = {
    "state": "executed",
    "federation": "clinics",
    "request": {"id": 3, "requested": TIME, "executed": TIME, "scope": {"leave": [H], "change": []}},
    "guarantee": {
        "class": "X2",
        "name": "exact, conditions changed",
        "meaning": "as exact",
        "reason": "restarted",
        "conditions": ["a client was lost"],
        "not_better": "conditions changed",
    },
    "touched": [{"stage": 0, "shard": 1, "from_round": 2, "rounds": 28, "inherited": False}],
    "method": {"name": "exact", "ratio": "2", "interval": 1, "compat": "paper", "length": None},
    "training": {"task": "digits", "learner": "mlp", "epochs": 2, "seed": "0", "settings": H, "numerics": ["numpy"]},
    "code": {"package": "fedforget", "version": "0.1.0", "sources": H},
    "before": certificate.subjects({"0": H, "1": H[::-1]}),
    "destroyed": {"epoch": 0, "record_keys": 9, "slices_deleted": 60, "slices_pending": 4},
    "replayed": {"clients": 7, "rounds": 28, "client_epochs": 280},
    "measures": {"client_seconds": "12.5", "wall_seconds": "3.25"},
    "backups": {"window_days": 30, "over": TIME},
    "limits": ["it accounts for what this software keeps"],
    "previous": None,
}


def made(
    predicate: dict[str, Any] = PREDICATE, *, index: int = 5, size: int = 11, key: SecretKey = KEY, **told: Any
) -> bytes:
    """A certificate at a place of a log of that size; `told` overrides what its event says."""
    account = certificate.account({"0": H, "1": H}, predicate)
    body = {"request": 3, "state": predicate["state"], "statement": certificate.account_digest(account), **told}
    event = {"seq": index, "time": TIME, "kind": "certified", "previous": H, "salt": H[::-1], "body": body}
    leaves = [opened_hash(event) if at == index else merkle.leaf_hash(bytes([at])) for at in range(size)]
    nodes: dict[tuple[int, int], bytes] = {}
    for at, leaf in enumerate(leaves):
        for level, place, found in merkle.grown(at, leaf, lambda level, place: nodes[level, place]):
            nodes[level, place] = found

    def node(level: int, place: int) -> bytes:
        return nodes[level, place]

    checkpoint = Checkpoint("fedforget/clinics", size, merkle.root_hash(size, node), TIME)
    return certificate.issue(account, event, merkle.inclusion_proof(index, size, node), checkpoint, key)


def ours(blob: bytes, key: PublicKey = KEY.public) -> bool:
    try:
        certificate.read(blob, key)
    except FedForgetError:
        return False
    return True


def theirs(blob: bytes, key: PublicKey = KEY.public) -> bool:
    try:
        standalone.verify(blob, key.raw)
    except standalone.Refused:
        return False
    return True


def flipped(blob: bytes, bit: int) -> bytes:
    wrong = bytearray(blob)
    wrong[bit // 8] ^= 1 << bit % 8
    return bytes(wrong)


def bits(blob: bytes, count: int, seed: int) -> Iterator[int]:
    """Every bit where there are few enough, else a sample."""
    whole = 8 * len(blob)
    yield from range(whole) if count >= whole else random.Random(seed).sample(range(whole), count)


Spoil = Callable[[Any], Any]


def wrong_values(value: Any) -> list[Any]:
    """Values of other types and out of range."""
    return [x for x in (None, True, -1, 1 << 53, "", "x\n", [], {}, [value], "a" * 5000) if x != value]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from paths(inner, (*path, at))


def forged(blob: bytes) -> Iterator[tuple[bytes, bool | None]]:
    """Statements altered in one place and signed again by the very key: only content can give them away.

    With what must come of it, where that is known; both verifiers must agree in any case.
    """
    import json

    statement = json.loads(dsse.unwrap(blob, KEY.public))
    for path in paths(statement):
        if not path:
            continue
        *way, last = path
        old = _at(statement, path)
        for value in wrong_values(old):
            yield _signed(_with(statement, way, last, value)), False
        if isinstance(old, dict):
            yield _signed(_with(statement, way, last, {**old, "more": 1})), False
            yield _signed(_with(statement, way, last, dict(list(old.items())[1:]))), None
    yield dsse.wrap(json.dumps(statement).encode(), KEY), False  # another spelling
    yield dsse.wrap(canonical(statement).replace(b'"X2"', b'"X2","class":"X1"'), KEY), False  # a key twice
    yield dsse.wrap(b"[]", KEY), False
    yield dsse.wrap(b"\xff", KEY), False
    yield dsse.wrap(b"[" * 100_000, KEY), False


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(statement: Any, way: list[Any], last: Any, value: Any) -> Any:
    changed = copy.deepcopy(statement)
    _at(changed, tuple(way))[last] = value
    return changed


def _signed(statement: Any) -> bytes:
    return dsse.wrap(canonical(statement) if _plain(statement) else b"{}", KEY)


def _plain(value: Any) -> bool:
    try:
        canonical(value)
    except FedForgetError:
        return False
    return True
