"""What travels: boxes only their reader opens, frames that come back as they went, and nothing else gets through."""

from typing import Any

import pytest

pytest.importorskip("flwr")

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from fedforget.engines.flower_box import OVERHEAD, BoxKey, seal
from fedforget.engines.flower_wire import (
    Reply,
    Request,
    envelope,
    frame,
    opened,
    pack,
    read_reply,
    read_request,
    spot,
    unframe,
    unpack,
    write_reply,
    write_request,
)
from fedforget.errors import SealBroken
from fedforget.slices import SliceKey

KEY = BoxKey.make()
NUMBERS = st.integers(-(2**40), 2**40)
KEYS = st.builds(SliceKey, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.just("client-1"))
BYTES = st.binary(max_size=60)
SCALARS = st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.text(max_size=9), BYTES, st.booleans())


@given(BYTES, BYTES)
def test_a_box_opens_for_its_reader_with_what_it_was_bound_to(plain: bytes, bound: bytes) -> None:
    box = seal(KEY.public, plain, bound)
    assert KEY.open(box, bound, "box") == plain
    assert len(box) == len(plain) + OVERHEAD
    assert seal(KEY.public, plain, bound) != box


@given(st.data())
def test_a_box_altered_anywhere_cut_or_bound_to_something_else_does_not_open(data: st.DataObject) -> None:
    box = bytearray(seal(KEY.public, b"what is in it", b"bound"))
    box[data.draw(st.integers(0, len(box) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    for spoilt, bound in ((bytes(box), b"bound"), (seal(KEY.public, b"x", b"bound"), b"other")):
        with pytest.raises(SealBroken):
            KEY.open(spoilt, bound, "box")
    for length in (0, 5, 31, 32, 40):
        with pytest.raises(SealBroken):
            KEY.open(seal(KEY.public, b"x", b"")[:length], b"", "box")
    with pytest.raises(SealBroken):
        BoxKey.make().open(seal(KEY.public, b"x", b""), b"", "box")


def test_a_key_is_not_shown() -> None:
    assert KEY.secret.hex() not in repr(KEY)
    assert str(KEY.secret) not in repr(KEY)


def content(data: st.DataObject) -> RecordDict:
    """Records of every kind Flower has."""
    arrays = {name: Array(np.arange(6, dtype=np.float32).reshape(2, 3) * i) for i, name in enumerate("ab")}
    values: dict[str, Any] = data.draw(st.dictionaries(st.text(max_size=5), SCALARS, max_size=4))
    numbers: dict[str, Any] = data.draw(st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False), max_size=3))
    listed = ConfigRecord({**values, "some": [b"x", b""], "ints": [1, 2], "none": []})
    return RecordDict({"arrays": ArrayRecord(arrays), "numbers": MetricRecord(numbers), "values": listed})


@given(st.data())
def test_flowers_records_come_back_as_they_were(data: st.DataObject) -> None:
    records, blobs = content(data), []
    header, found = unframe(frame({"records": pack(records, blobs)}, blobs), "x")
    again = unpack(header["records"], found)
    assert again == records
    assert {k: type(v) for k, v in again["values"].items()} == {k: type(v) for k, v in records["values"].items()}


@given(st.dictionaries(KEYS, BYTES, max_size=4), st.lists(KEYS, max_size=3), st.booleans(), st.data())
def test_a_request_says_the_same_on_both_sides(
    put: dict[SliceKey, bytes], keys: list[SliceKey], close: bool, data: st.DataObject
) -> None:
    train = content(data) if close else None
    asked = read_request(write_request(Request(put, keys, keys, train, close), 7, b"challenge"))
    assert asked.put == {spot(key): blob for key, blob in put.items()}
    assert asked.delete == asked.get == tuple(map(spot, keys))
    assert (asked.number, asked.challenge, asked.close, asked.train) == (7, b"challenge", close, train)


@given(st.dictionaries(KEYS.map(spot), BYTES, max_size=4), st.text(), st.booleans(), st.data())
def test_a_reply_says_the_same_on_both_sides(
    got: dict[Any, bytes], failed: str, trained: bool, data: st.DataObject
) -> None:
    spots = frozenset(got)
    reply = Reply(spots, spots, got, content(data) if trained else None, failed, 1.5)
    assert read_reply(write_reply(reply)) == reply


@pytest.mark.parametrize(
    "frames",
    [
        b"",
        b"\xff" * 8,
        frame({}, [])[:-1],
        frame({}, [b"abc"])[:-1],
        frame({"put": [], "delete": [], "get": [], "close": False}, []),
        frame({"number": 1, "challenge": "zz", "put": [], "delete": [], "get": [], "close": False}, []),
        frame({"number": 1, "challenge": "", "put": [[1, 2, 3]], "delete": [], "get": [], "close": False}, [b""]),
        frame({"number": 1, "challenge": "", "put": [], "delete": [["../../etc", 0, 0, 0]], "get": [], "close": 0}, []),
        frame({"number": 1, "challenge": "", "put": [], "delete": [[True, 0, 0, 0]], "get": [], "close": 0}, []),
        frame({"number": 1, "challenge": "", "put": [], "delete": 5, "get": [], "close": 0}, []),
        frame({"number": 1, "challenge": "", "put": [], "delete": [], "get": [], "close": 0, "train": {"a": {}}}, []),
        frame({"number": 1, "challenge": "", "put": [[0, 0, 0, 0]], "delete": [], "get": [], "close": False}, []),
    ],
)
def test_what_is_no_request_is_refused_and_never_half_read(frames: bytes) -> None:
    with pytest.raises(SealBroken):
        read_request(frames)
    with pytest.raises(SealBroken):
        read_reply(frames)


def test_an_envelope_is_told_from_other_messages() -> None:
    config, box = opened(envelope("reply", b"box", why="so")) or ({}, b"")
    assert (config["kind"], config["why"], box) == ("reply", "so", b"box")
    for other in (
        RecordDict(),
        RecordDict({"fedforget": ConfigRecord({})}),
        RecordDict({"fedforget.box": ArrayRecord()}),
    ):
        assert opened(other) is None
    assert opened(RecordDict({"fedforget": ConfigRecord({}), "fedforget.box": ArrayRecord()})) is None
