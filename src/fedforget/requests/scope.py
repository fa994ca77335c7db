"""Scope: what a request asks to be forgotten, as a value with one spelling.

    client    all that these clients ever contributed; they leave
    samples   some rows of these clients' data; they stay, with what is left of it
    class     every example of one label: of these clients, or of all if none is named
    stages    what was contributed in a range of stages: by these clients, or by all if none is named

A samples scope says for each client either which rows go (numbered as the client numbers them) or, where the rows
are nobody else's business, a commitment to the data set that is left: `sha256:` and its digest.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..canonical import canonical
from ..errors import SettingError

ScopeKind = Literal["client", "samples", "class", "stages"]
Rows = tuple[int, ...]
_COMMITMENT = re.compile(r"sha256:[0-9a-f]{64}")
_MOST = 1 << 53


@dataclass(frozen=True)
class Scope:
    """Clients sorted, rows sorted, each once: two scopes that mean the same are equal."""

    kind: ScopeKind
    clients: tuple[str, ...] = ()
    samples: Mapping[str, Rows | str] = field(default_factory=dict)
    label: int | None = None
    stages: tuple[int, int] | None = None  # first and last, both within

    def __post_init__(self) -> None:
        if self.kind not in get_args(ScopeKind):
            raise SettingError("scope", self.kind, "one of " + ", ".join(get_args(ScopeKind)))
        _sorted_once("clients", self.clients, str)
        if not self.clients and self.kind in ("client", "samples"):
            raise SettingError("clients", self.clients, "at least one client")
        if not all(0 < len(client) <= 64 for client in self.clients):
            raise SettingError("clients", self.clients, "names of 1 to 64 letters")
        self._check_samples()
        if (self.kind == "class") != (self.label is not None) or not _counts(0 if self.label is None else self.label):
            raise SettingError("label", self.label, "a number from 0, for a scope of kind class and no other")
        if (self.kind == "stages") != (self.stages is not None):
            raise SettingError("stages", self.stages, "first and last, for a scope of kind stages and no other")
        if self.stages is not None:
            first, last = self.stages
            if not (_counts(first) and _counts(last) and first <= last):
                raise SettingError("stages", self.stages, "first and last, in this order, from 0")

    def _check_samples(self) -> None:
        named = self.clients if self.kind == "samples" else ()
        if tuple(sorted(self.samples)) != named:
            raise SettingError("samples", sorted(self.samples), "rows or a commitment for each client, and no other")
        for client, what in self.samples.items():
            if isinstance(what, str):
                if not _COMMITMENT.fullmatch(what):
                    raise SettingError(f"samples of {client}", what, "'sha256:' and 64 hexadecimal digits")
                continue
            _sorted_once(f"samples of {client}", what, int)
            if not what or not all(_counts(row) for row in what):
                raise SettingError(f"samples of {client}", what, "at least one row, numbered from 0")

    # --- making one ---------------------------------------------------------------------------------------

    @staticmethod
    def of_clients(clients: Iterable[str]) -> "Scope":
        return Scope("client", tuple(sorted(set(clients))))

    @staticmethod
    def of_samples(samples: Mapping[str, Iterable[int] | str]) -> "Scope":
        """Per client the rows that go, or a commitment to the data set that is left."""
        sorted_rows = {c: w if isinstance(w, str) else tuple(sorted(set(w))) for c, w in sorted(samples.items())}
        return Scope("samples", tuple(sorted_rows), sorted_rows)

    @staticmethod
    def of_class(label: int, clients: Iterable[str] = ()) -> "Scope":
        return Scope("class", tuple(sorted(set(clients))), label=label)

    @staticmethod
    def of_stages(first: int, last: int, clients: Iterable[str] = ()) -> "Scope":
        return Scope("stages", tuple(sorted(set(clients))), stages=(first, last))

    # --- one spelling -------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """JSON values, without what this kind does not have."""
        found: dict[str, Any] = {"kind": self.kind, "clients": list(self.clients)}
        if self.kind == "samples":
            found["samples"] = {c: w if isinstance(w, str) else list(w) for c, w in sorted(self.samples.items())}
        if self.label is not None:
            found["label"] = self.label
        if self.stages is not None:
            found["stages"] = list(self.stages)
        return found

    @staticmethod
    def from_document(document: Any) -> "Scope":
        """Exactly what `to_document` writes; anything else is refused."""
        try:
            given = dict(document)
            samples = {c: w if isinstance(w, str) else tuple(w) for c, w in dict(given.get("samples", {})).items()}
            first_last = tuple(given["stages"]) if "stages" in given else None
            scope = Scope(given["kind"], tuple(given["clients"]), samples, given.get("label"), first_last)
            if canonical(scope.to_document()) == canonical(document):
                return scope
        except (TypeError, ValueError, KeyError, AttributeError) as fault:
            raise SettingError("scope", document, "a scope as FedForget writes it") from fault
        raise SettingError("scope", document, "a scope as FedForget writes it")

    def __hash__(self) -> int:
        return hash(canonical(self.to_document()))

    def __str__(self) -> str:
        whose = ", ".join(self.clients[:5]) + (f" and {len(self.clients) - 5} more" if len(self.clients) > 5 else "")
        if self.kind == "client":
            return whose
        if self.kind == "samples":
            return f"samples of {whose}"
        what = f"class {self.label}" if self.kind == "class" else _stages(self.stages or (0, 0))
        return f"{what} of {whose or 'all clients'}"


def _stages(stages: tuple[int, int]) -> str:
    first, last = stages
    return f"stage {first}" if first == last else f"stages {first} to {last}"


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _sorted_once(name: str, values: object, kind: type) -> None:
    fits = isinstance(values, tuple) and all(type(v) is kind for v in values)
    if not fits or list(values) != sorted(set(values)):  # type: ignore[call-overload]
        raise SettingError(name, values, "sorted, each once")
