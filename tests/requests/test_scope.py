"""A scope has one spelling: what is written is read back the same, and nothing else is read at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.canonical import canonical, read_canonical
from fedforget.errors import SettingError
from fedforget.requests import Scope

names = st.text("abcdefgh-0123456789", min_size=1, max_size=12)
counts = st.integers(0, 1 << 40)
commitments = st.binary(min_size=32, max_size=32).map(lambda b: f"sha256:{b.hex()}")
scopes = st.one_of(
    st.builds(Scope.of_clients, st.lists(names, min_size=1, max_size=5)),
    st.builds(
        Scope.of_samples,
        st.dictionaries(
            names, st.one_of(st.lists(counts, min_size=1, max_size=5), commitments), min_size=1, max_size=4
        ),
    ),
    st.builds(Scope.of_class, counts, st.lists(names, max_size=3)),
    st.builds(lambda a, b, c: Scope.of_stages(min(a, b), max(a, b), c), counts, counts, st.lists(names, max_size=3)),
)


@given(scopes)
def test_a_scope_is_read_back_as_it_was_written(scope: Scope) -> None:
    blob = canonical(scope.to_document())
    again = Scope.from_document(read_canonical(blob))
    assert again == scope
    assert hash(again) == hash(scope)
    assert canonical(again.to_document()) == blob


def test_order_and_repetition_make_no_difference() -> None:
    assert Scope.of_clients(["b", "a", "b"]) == Scope.of_clients(["a", "b"])
    assert Scope.of_samples({"b": [3, 1, 3], "a": [0]}) == Scope.of_samples({"a": [0], "b": [1, 3]})


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (Scope.of_clients(["a", "b"]), "a, b"),
        (Scope.of_clients("abcdefg"), "a, b, c, d, e and 2 more"),
        (Scope.of_samples({"a": [1]}), "samples of a"),
        (Scope.of_class(3), "class 3 of all clients"),
        (Scope.of_class(3, ["a"]), "class 3 of a"),
        (Scope.of_stages(1, 1, ["a"]), "stage 1 of a"),
        (Scope.of_stages(1, 2), "stages 1 to 2 of all clients"),
    ],
)
def test_a_scope_says_what_it_is(scope: Scope, text: str) -> None:
    assert str(scope) == text


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Scope.of_clients([]),
        lambda: Scope.of_clients([""]),
        lambda: Scope.of_clients(["x" * 65]),
        lambda: Scope("client", ("b", "a")),
        lambda: Scope("client", ["a"]),  # type: ignore[arg-type]
        lambda: Scope("client", (1,)),  # type: ignore[arg-type]
        lambda: Scope("everything", ("a",)),  # type: ignore[arg-type]
        lambda: Scope("client", ("a",), {"a": (1,)}),
        lambda: Scope("client", ("a",), label=1),
        lambda: Scope("client", ("a",), stages=(0, 1)),
        lambda: Scope("samples", ("a",)),
        lambda: Scope("samples", ("a",), {"b": (1,)}),
        lambda: Scope("samples", ("a",), {"a": ()}),
        lambda: Scope("samples", ("a",), {"a": (2, 1)}),
        lambda: Scope("samples", ("a",), {"a": (-1,)}),
        lambda: Scope("samples", ("a",), {"a": (True,)}),
        lambda: Scope("samples", ("a",), {"a": "sha256:12"}),
        lambda: Scope("class", ("a",)),
        lambda: Scope.of_class(-1),
        lambda: Scope("class", label=True),
        lambda: Scope("class", label=False),
        lambda: Scope("stages", ("a",)),
        lambda: Scope.of_stages(2, 1),
        lambda: Scope.of_stages(-1, 1),
    ],
)
def test_what_is_no_scope_is_refused(wrong: Any) -> None:
    with pytest.raises(SettingError):
        wrong()


@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        [],
        {},
        {"kind": "client"},
        {"kind": "client", "clients": ["a"], "label": None},
        {"kind": "client", "clients": ["a"], "extra": 1},
        {"kind": "client", "clients": ["a"], "samples": {}},
        {"kind": "client", "clients": "a"},
        {"kind": "client", "clients": ["b", "a"]},
        {"kind": "client", "clients": ["a", "a"]},
        {"kind": "client", "clients": [["a"]]},
        {"kind": [], "clients": ["a"]},
        {"kind": "samples", "clients": ["a"], "samples": {"a": 7}},
        {"kind": "samples", "clients": ["a"], "samples": {"a": [2, 1]}},
        {"kind": "samples", "clients": ["a"], "samples": 7},
        {"kind": "class", "clients": [], "label": 1.0},
        {"kind": "class", "clients": [], "label": "1"},
        {"kind": "stages", "clients": [], "stages": [1]},
        {"kind": "stages", "clients": [], "stages": [1, 2, 3]},
        {"kind": "stages", "clients": [], "stages": 1},
    ],
)
def test_another_spelling_is_no_scope(document: Any) -> None:
    with pytest.raises(SettingError):
        Scope.from_document(document)
