"""Wire: what server and nodes say to one another, as bytes, before it is boxed.

A frame is a JSON header and byte strings. Flower's records travel inside it: an application's own content is packed
whole, so that nothing of it has to be understood here.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from ..errors import SealBroken
from ..slices import SliceKey

NAME = "fedforget"  # of our records in a message
QUERY = "query.fedforget"  # the message type of everything but training
_T = TypeVar("_T")
Spot = tuple[int, int, int, int]  # stage, shard, round, generation: a slice's key, but for the holder


@dataclass(frozen=True)
class Request:
    """What a node is asked: first to keep, then to delete, then to give back, then to train."""

    put: Mapping[SliceKey, bytes] = field(default_factory=dict)
    delete: Collection[SliceKey] = ()
    get: Collection[SliceKey] = ()
    train: RecordDict | None = None
    close: bool = False  # erase the session's key: nothing more comes in this run
    about: str = ""  # what it is for, as a loss is logged; stays here


@dataclass(frozen=True)
class Reply:
    """What it answers: what it keeps now, has no more, has, and what came of training."""

    stored: frozenset[Spot] = frozenset()
    deleted: frozenset[Spot] = frozenset()
    got: Mapping[Spot, bytes] = field(default_factory=dict)
    train: RecordDict | None = None
    failed: str = ""
    seconds: float = 0.0


def spot(key: SliceKey) -> Spot:
    return key.stage, key.shard, key.round, key.generation


def frame(header: Mapping[str, Any], blobs: Sequence[bytes]) -> bytes:
    text = json.dumps({**header, "lengths": [len(b) for b in blobs]}).encode()
    return b"".join((len(text).to_bytes(8, "little"), text, *blobs))


def unframe(data: bytes, what: str) -> tuple[dict[str, Any], list[bytes]]:
    try:
        view, end = memoryview(data), 8 + int.from_bytes(data[:8], "little")
        header = json.loads(bytes(view[8:end]))
        blobs: list[bytes] = []
        for length in header["lengths"]:
            if type(length) is not int or length < 0 or end + length > len(view):
                raise ValueError("lengths that do not fit")
            blobs.append(bytes(view[end : end + length]))
            end += length
    except (ValueError, KeyError, TypeError) as fault:
        raise SealBroken(what, f"it is no frame: {fault}") from fault
    return header, blobs


# --- requests and replies -----------------------------------------------------------------------------------


def write_request(request: Request, number: int, challenge: bytes) -> bytes:
    blobs = list(request.put.values())
    header: dict[str, Any] = {
        "number": number,
        "challenge": challenge.hex(),
        "put": [spot(key) for key in request.put],
        "delete": [spot(key) for key in request.delete],
        "get": [spot(key) for key in request.get],
        "close": request.close,
    }
    if request.train is not None:
        header["train"] = pack(request.train, blobs)
    return frame(header, blobs)


@dataclass(frozen=True)
class Asked:
    """A request as the node reads it: slices by their spot, for a node keeps its own and nobody else's."""

    number: int
    challenge: bytes
    put: Mapping[Spot, bytes]
    delete: tuple[Spot, ...]
    get: tuple[Spot, ...]
    close: bool
    train: RecordDict | None


def read_request(data: bytes) -> Asked:
    header, blobs = unframe(data, "a request")

    def read() -> Asked:
        put = [read_spot(s) for s in header["put"]]
        train = unpack(header["train"], blobs) if "train" in header else None
        return Asked(
            int(header["number"]),
            bytes.fromhex(header["challenge"]),
            dict(zip(put, blobs[: len(put)], strict=True)),
            tuple(read_spot(s) for s in header["delete"]),
            tuple(read_spot(s) for s in header["get"]),
            header["close"] is True,
            train,
        )

    return _legible(read, "a request")


def write_reply(reply: Reply) -> bytes:
    blobs = list(reply.got.values())
    header: dict[str, Any] = {
        "stored": sorted(reply.stored),
        "deleted": sorted(reply.deleted),
        "got": list(reply.got),
        "failed": reply.failed,
        "seconds": reply.seconds,
    }
    if reply.train is not None:
        header["train"] = pack(reply.train, blobs)
    return frame(header, blobs)


def read_reply(data: bytes) -> Reply:
    header, blobs = unframe(data, "a reply")

    def read() -> Reply:
        got = [read_spot(s) for s in header["got"]]
        train = unpack(header["train"], blobs) if "train" in header else None
        return Reply(
            frozenset(read_spot(s) for s in header["stored"]),
            frozenset(read_spot(s) for s in header["deleted"]),
            dict(zip(got, blobs[: len(got)], strict=True)),
            train,
            str(header["failed"]),
            float(header["seconds"]),
        )

    return _legible(read, "a reply")


def read_spot(value: Any) -> Spot:
    """Four integers, or nothing."""
    if not isinstance(value, list) or len(value) != 4 or any(type(n) is not int for n in value):
        raise ValueError(f"{value!r} names no slice")
    stage, shard, round, generation = value
    return stage, shard, round, generation


def _legible(read: Callable[[], _T], what: str) -> _T:
    try:
        return read()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as fault:
        raise SealBroken(what, f"it cannot be read: {fault}") from fault


# --- Flower's records ---------------------------------------------------------------------------------------


def pack(content: RecordDict, blobs: list[bytes]) -> dict[str, Any]:
    """Describe the records; their bytes are appended to `blobs`."""

    def put(data: bytes) -> int:
        blobs.append(data)
        return len(blobs) - 1

    def value(one: Any) -> Any:
        if isinstance(one, bytes):
            return {"blob": put(one)}
        return [value(item) for item in one] if isinstance(one, list) else one

    found: dict[str, Any] = {}
    for name, record in content.items():
        if isinstance(record, ArrayRecord):
            rows = [[key, a.dtype, list(a.shape), a.stype, put(a.data)] for key, a in record.items()]
            found[name] = {"arrays": rows}
        else:
            kind = "metrics" if isinstance(record, MetricRecord) else "config"
            found[name] = {kind: [[key, value(v)] for key, v in record.items()]}
    return found


def unpack(described: Mapping[str, Any], blobs: Sequence[bytes]) -> RecordDict:
    def value(one: Any) -> Any:
        if isinstance(one, dict):
            return blobs[one["blob"]]
        return [value(item) for item in one] if isinstance(one, list) else one

    content = RecordDict()
    for name, row in described.items():
        ((kind, rows),) = row.items()
        if kind == "arrays":
            content[name] = ArrayRecord(
                {key: Array(dtype, tuple(shape), stype, blobs[at]) for key, dtype, shape, stype, at in rows}
            )
        elif kind == "metrics":
            content[name] = MetricRecord({key: value(v) for key, v in rows})
        else:
            content[name] = ConfigRecord({key: value(v) for key, v in rows})
    return content


def envelope(kind: str, box: bytes, **open: str | bytes | int) -> RecordDict:
    """A message's content: one array of bytes Flower cuts into chunks, and what may be read by anybody."""
    array = Array("uint8", (len(box),), "fedforget.box", box)
    return RecordDict({NAME: ConfigRecord({"kind": kind, **open}), f"{NAME}.box": ArrayRecord({"box": array})})


def opened(content: RecordDict) -> tuple[ConfigRecord, bytes] | None:
    """The open part and the box, or None where the message is none of ours."""
    config, arrays = content.get(NAME), content.get(f"{NAME}.box")
    if not isinstance(config, ConfigRecord) or not isinstance(arrays, ArrayRecord) or "box" not in arrays:
        return None
    return config, arrays["box"].data
