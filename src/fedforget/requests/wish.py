"""Wish: a request as it is signed. Verdict: what an operator, or the client itself, says to it later, signed likewise.

Both name the federation they are meant for, carry a nonce of their own and end with a date, so neither can be used
elsewhere, twice, or years later. A verdict names the digest of the wish, so it fits no other.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar, get_args

from ..errors import RequestDenied, SettingError
from .lifecycle import Role
from .scope import Scope
from .times import instant, spell

Saying = Literal["approve", "hold", "release", "reject"]

LONGEST = timedelta(days=31)  # from issue to expiry
SKEW = timedelta(minutes=5)  # how far ahead somebody's clock may be

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NONCE = re.compile(r"[0-9a-f]{32}")
_HEX = re.compile(r"[0-9a-f]{64}")
_WISH, _VERDICT = "fedforget/wish/1", "fedforget/verdict/1"
_ASKERS = ("client", "operator")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Said:
    """What every signed document says: for which federation, about which request, by whom, when."""

    federation: str
    request: str
    role: Role
    name: str
    nonce: str
    issued: datetime
    expires: datetime

    def __post_init__(self) -> None:
        if not 0 < len(self.federation) <= 64:
            raise SettingError("federation", self.federation, "a federation's name")
        if not _ID.fullmatch(self.request) or self.request.startswith("by-hand-"):
            raise SettingError("request", self.request, "an id of letters, digits and . _ -, at most 64")
        if self.role not in _ASKERS:
            raise SettingError("role", self.role, "client or operator")
        if not 0 < len(self.name) <= 64 or not self.name.isprintable():
            raise SettingError("name", self.name, "printable text of at most 64 letters")
        if not _NONCE.fullmatch(self.nonce):
            raise SettingError("nonce", self.nonce, "32 hexadecimal digits")
        if not timedelta() < self.expires - self.issued <= LONGEST:
            raise SettingError("expires", spell(self.expires), f"within {LONGEST.days} days of its issue")

    def to_document(self) -> dict[str, Any]:
        return {
            "federation": self.federation,
            "request": self.request,
            "by": {"role": self.role, "name": self.name},
            "nonce": self.nonce,
            "issued": spell(self.issued),
            "expires": spell(self.expires),
        }

    def check_time(self, now: datetime) -> None:
        if self.issued > now + SKEW:
            raise RequestDenied("early", f"it says it was issued at {spell(self.issued)}, which is still to come")
        if self.expires <= now:
            raise RequestDenied("expired", f"it expired at {spell(self.expires)}")


@dataclass(frozen=True)
class Wish:
    """Somebody's wish that something be forgotten."""

    said: Said
    scope: Scope
    reason: str = ""
    basis: str = ""  # the legal basis, such as "GDPR 17(1)(b)"

    def __post_init__(self) -> None:
        _text("reason", self.reason)
        _text("basis", self.basis)

    @property
    def id(self) -> str:
        return self.said.request

    @property
    def own(self) -> bool:
        """Whether it is about the asking client's own part and nobody else's."""
        return self.said.role == "client" and self.scope.clients == (self.said.name,)

    def to_document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": _WISH, **self.said.to_document(), "scope": self.scope.to_document()}
        return found | {n: v for n, v in (("reason", self.reason), ("basis", self.basis)) if v}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "Wish":
        with_extras = {"reason", "basis"} & set(document)
        said = _said(document, _WISH, {"scope", *with_extras})
        return _denied_if_odd(
            lambda: Wish(
                said,
                Scope.from_document(document["scope"]),
                _given(document, "reason", with_extras),
                _given(document, "basis", with_extras),
            )
        )


@dataclass(frozen=True)
class Verdict:
    """What is said to a wish: approved, put on hold, released again, rejected (or withdrawn, by who asked)."""

    said: Said
    wish: str  # its digest
    saying: Saying
    reason: str = ""

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.wish):
            raise SettingError("wish", self.wish, "its SHA-256")
        if self.saying not in get_args(Saying):
            raise SettingError("verdict", self.saying, "one of " + ", ".join(get_args(Saying)))
        _text("reason", self.reason)
        if self.saying in ("hold", "reject") and not self.reason:
            raise SettingError("reason", self.reason, "given: the client is told why")

    def to_document(self) -> dict[str, Any]:
        found = {"kind": _VERDICT, **self.said.to_document(), "wish": self.wish, "verdict": self.saying}
        return found | ({"reason": self.reason} if self.reason else {})

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "Verdict":
        with_reason = {"reason"} & set(document)
        said = _said(document, _VERDICT, {"wish", "verdict", *with_reason})
        return _denied_if_odd(
            lambda: Verdict(
                said, _texts(document, "wish"), document["verdict"], _given(document, "reason", with_reason)
            )
        )


def _said(document: Mapping[str, Any], kind: str, more: set[str]) -> Said:
    names = {"kind", "federation", "request", "by", "nonce", "issued", "expires"} | more
    if document.get("kind") != kind:
        raise RequestDenied("malformed", f"it is no {kind}")
    if set(document) != names:
        raise RequestDenied("malformed", "it has other fields than " + ", ".join(sorted(names)))

    def read() -> Said:
        by = document["by"]
        if not isinstance(by, dict) or set(by) != {"role", "name"}:
            raise SettingError("by", by, "a role and a name")
        return Said(
            _texts(document, "federation"),
            _texts(document, "request"),
            _texts(by, "role"),  # type: ignore[arg-type]
            _texts(by, "name"),
            _texts(document, "nonce"),
            instant(document["issued"]),
            instant(document["expires"]),
        )

    return _denied_if_odd(read)


def _denied_if_odd(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except SettingError as fault:
        raise RequestDenied("malformed", str(fault)) from fault


def _texts(document: Mapping[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str):
        raise SettingError(name, value, "text")
    return value


def _given(document: Mapping[str, Any], name: str, there: set[str]) -> str:
    """Optional text: absent or not empty."""
    if name not in there:
        return ""
    value = _texts(document, name)
    if not value:
        raise SettingError(name, value, "text, or left out")
    return value


def _text(name: str, value: str) -> None:
    if len(value) > 1000 or not value.isprintable():
        raise SettingError(name, value[:20], "one line of at most 1000 printable letters")
