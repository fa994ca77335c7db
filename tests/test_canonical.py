"""One value, one spelling."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.canonical import canonical, read_canonical
from fedforget.errors import SettingError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@given(VALUES)
def test_a_value_comes_back_from_its_spelling(value: Any) -> None:
    assert read_canonical(canonical(value)) == value


@given(st.dictionaries(TEXT, LEAVES, max_size=6))
def test_the_order_of_keys_does_not_show(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@given(VALUES)
def test_another_spelling_of_the_same_value_is_refused(value: Any) -> None:
    spaced = json.dumps(value, indent=1).encode()
    if spaced != canonical(value):
        with pytest.raises(SettingError):
            read_canonical(spaced)


@pytest.mark.parametrize("value", [1.5, 2**53, -(2**53), {1: 2}, b"x", {"a": object()}, "\ud800", {"\udfff": 1}, [{2}]])
def test_what_readers_read_differently_is_refused(value: Any) -> None:
    with pytest.raises(SettingError):
        canonical(value)


@pytest.mark.parametrize("blob", [b"", b"{", b'{"a":1,"a":2}', b"NaN", b"1.0", b"[1,2] ", b"\xff", b"[" * 100_000])
def test_what_is_no_canonical_json_is_refused(blob: bytes) -> None:
    with pytest.raises(SettingError):
        read_canonical(blob)
