"""Role × scope × state: every cell of the table in docs/requests.md, asked of the program one by one."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from fedforget.errors import NotAllowed, RequestDenied
from fedforget.requests import Scope
from fedforget.requests.admission import Enrolment, Standing, admit, weigh
from fedforget.requests.lifecycle import ACTIONS, ROLES, STATES, State, target
from fedforget.requests.signed import Signed
from fedforget.requests.wish import Said, Verdict, Wish
from fedforget.signing import SecretKey

PAGE = Path(__file__).parents[2] / "docs" / "requests.md"
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LEADS_TO = {
    "ask": "received", "vouch": "authorised", "approve": "authorised", "plan": "planned", "quarantine": "quarantined",
    "rebuild": "rebuilding", "seal": "sealed", "execute": "executed", "skip": "executed", "finish": "final",
    "hold": "on_hold", "release": "received", "reject": "rejected", "give_up": "needs_human", "go_back": "authorised",
}  # fmt: skip


def table() -> Mapping[str, Mapping[str, set[str]]]:
    """state → column → actions, as the page has it."""
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| state | client, own"))
    heads = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        state, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[state] = {
            head: {word.strip() for word in cell.split(",") if word.strip()}
            for head, cell in zip(heads, cells, strict=True)
        }
    return found


TABLE = table()


def column(role: str, own: bool) -> str:
    return ("client, own" if own else "client, other") if role == "client" else role


def test_the_table_has_every_state_and_every_role() -> None:
    assert set(TABLE) == {"(none yet)", *STATES}
    assert all(set(row) == {column(r, o) for r in ROLES for o in (True, False)} for row in TABLE.values())


@pytest.mark.parametrize("state", [None, *STATES])
def test_every_cell_of_the_table(state: State | None) -> None:
    row = TABLE[state or "(none yet)"]
    for action, role, own in product(ACTIONS, ROLES, (True, False)):
        if action in row[column(role, own)]:
            assert target(action, role, state, own=own) == LEADS_TO[action]
            reached = "authorised" if action == "release" else LEADS_TO[action]
            assert target(action, role, state, own=own, authorised=True) == reached
        else:
            with pytest.raises(NotAllowed):
                target(action, role, state, own=own)


# --- with everybody's keys, and every kind of scope -------------------------------------------------------------

SCOPES = {
    "client": (Scope.of_clients(["a"]), Scope.of_clients(["b"]), Scope.of_clients(["a", "b"])),
    "samples": (Scope.of_samples({"a": [1]}), Scope.of_samples({"b": [1]}), Scope.of_samples({"a": [1], "b": [2]})),
    "class": (Scope.of_class(1, ["a"]), Scope.of_class(1, ["b"]), Scope.of_class(1)),
    "stages": (Scope.of_stages(0, 1, ["a"]), Scope.of_stages(0, 1, ["b"]), Scope.of_stages(0, 0)),
}
KEYS = {name: SecretKey(name.encode().ljust(32, b"-")) for name in ("a", "b", "ann", "bob", "eve", "old", "nobody")}
PEOPLE = {
    name: Enrolment(str(KEYS[name].public), role, name, "2026-01-01T00:00:00Z", revoked)
    for name, role, revoked in (
        ("a", "client", None),
        ("b", "client", None),
        ("ann", "operator", None),
        ("bob", "operator", None),
        ("eve", "auditor", None),
        ("old", "operator", "2026-02-01T00:00:00Z"),
    )
}


def said(name: str, role: str) -> Said:
    return Said("f", "r", role, name, "0" * 32, NOW, NOW + timedelta(days=1))  # type: ignore[arg-type]


def who_may_say_it() -> Iterator[tuple[str, str]]:
    """Everybody, in both roles that can sign."""
    yield from product(KEYS, ("client", "operator"))


def allowed_to_ask(name: str, role: str, scope: Scope) -> bool:
    person = PEOPLE.get(name)
    return person is not None and person.revoked is None and person.role == role and (
        role == "operator" or scope.clients == (name,)
    )  # fmt: skip


@pytest.mark.parametrize("kind", SCOPES)
def test_who_may_ask_for_what(kind: str) -> None:
    for scope, (name, role) in product(SCOPES[kind], who_may_say_it()):
        signed = Signed.sign(Wish(said(name, role), scope).to_document(), KEYS[name])
        person = PEOPLE.get(name)
        if allowed_to_ask(name, role, scope):
            wish = admit(signed, person, "f", NOW)
            assert (wish.scope, wish.own) == (scope, role == "client")
            for federation, when in (("g", NOW), ("f", NOW + timedelta(days=1)), ("f", NOW - timedelta(minutes=6))):
                with pytest.raises(RequestDenied):
                    admit(signed, person, federation, when)
        else:
            with pytest.raises(RequestDenied):
                admit(signed, person, "f", NOW)


@pytest.mark.parametrize("kind", SCOPES)
@pytest.mark.parametrize("state", STATES)
def test_who_may_say_what_of_whose_request(state: State, kind: str) -> None:
    """Asked by a client for itself, or by operator ann for anybody; said by everybody, as client and as operator."""
    for scope in SCOPES[kind]:
        askers = ["ann"] + ([scope.clients[0]] if len(scope.clients) == 1 else [])
        for asker, (name, role), saying in product(askers, who_may_say_it(), ("approve", "hold", "release", "reject")):
            wish = Wish(said(asker, "operator" if asker == "ann" else "client"), scope)
            standing = Standing(wish, "d" * 64, str(KEYS[asker].public), state)
            verdict = Verdict(said(name, role), "d" * 64, saying, "why")  # type: ignore[arg-type]
            person = PEOPLE.get(name)
            own = wish.own and name == asker and role == "client"
            allowed = (
                person is not None
                and person.revoked is None
                and person.role == role
                and saying in TABLE[state][column(role, own)]
                and not (saying == "approve" and name == asker)
            )
            key = str(KEYS[name].public)
            if allowed:
                reached = weigh(verdict, key, person, PEOPLE[asker], standing, "f", NOW)
                assert reached == LEADS_TO[saying]
            else:
                with pytest.raises(RequestDenied):
                    weigh(verdict, key, person, PEOPLE[asker], standing, "f", NOW)


def test_a_verdict_fits_one_request_and_an_approval_the_key_that_asked() -> None:
    wish = Wish(said("ann", "operator"), SCOPES["client"][0])
    standing = Standing(wish, "d" * 64, str(KEYS["ann"].public), "received")
    key = str(KEYS["bob"].public)
    good = Verdict(said("bob", "operator"), "d" * 64, "approve")
    assert weigh(good, key, PEOPLE["bob"], PEOPLE["ann"], standing, "f", NOW) == "authorised"
    other = Verdict(said("bob", "operator"), "e" * 64, "approve")
    with pytest.raises(RequestDenied, match="another request"):
        weigh(other, key, PEOPLE["bob"], PEOPLE["ann"], standing, "f", NOW)
    for asker in (None, PEOPLE["old"]):
        with pytest.raises(RequestDenied, match="revoked meanwhile"):
            weigh(good, key, PEOPLE["bob"], asker, standing, "f", NOW)
    same_key = Standing(wish, "d" * 64, key, "received")
    with pytest.raises(RequestDenied, match="second operator"):
        weigh(good, key, PEOPLE["bob"], PEOPLE["ann"], same_key, "f", NOW)
