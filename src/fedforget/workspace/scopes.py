"""Scopes: what a request's scope comes down to here. Who leaves, who drops which examples, who is taken out of a stage.

Where the engine's data are at hand (a simulation on one machine) the examples are dropped as the task is read, and
the commitment to what is left is computed here. Where clients keep their data themselves, they drop, and say so.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ..errors import AlreadyForgotten, SettingError, UnknownClient
from ..examples import Examples
from ..plan import Change
from ..requests import Scope
from ..storage import erasures
from ..storage.erasures import Holding
from ..storage.ledger import Request
from .keys import tombstone

if TYPE_CHECKING:
    from .workspace import Workspace

Drops = Mapping[str, Collection[int]]


@runtime_checkable
class KeepsData(Protocol):
    """An engine whose clients keep their data themselves."""

    def drop(self, examples: Mapping[str, Sequence[int]]) -> Mapping[str, Holding]:
        """Each client drops these examples for good, as it numbers them, and commits to what it has left.

        May be asked again. Without examples: the commitment to what it has now.
        """


@dataclass(frozen=True)
class Erasure:
    """A scope, and what it comes down to."""

    scope: Scope
    change: Change
    drops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """As a request keeps it."""
        return {
            "scope": self.scope.to_document(),
            "leave": sorted(self.change.leave),
            "edit": sorted(self.change.edit),
            "away": sorted(list(pair) for pair in self.change.away),
            "drops": {client: list(rows) for client, rows in sorted(self.drops.items())},
            "holdings": {client: asdict(holding) for client, holding in sorted(self.holdings.items())},
        }

    @staticmethod
    def of(request: Request) -> "Erasure":
        body = request.body
        away = frozenset((client, stage) for client, stage in body["away"])
        return Erasure(
            Scope.from_document(body["scope"]),
            Change(frozenset(body["leave"]), frozenset(body["edit"]), away),
            {client: tuple(rows) for client, rows in body["drops"].items()},
            {client: Holding(**holding) for client, holding in body["holdings"].items()},
        )


def asked(request: Request) -> tuple[str, ...]:
    """What is to be forgotten, for a message: names, or the scope in words."""
    scope = Scope.from_document(request.body["scope"])
    return scope.clients if scope.kind == "client" else (str(scope),)


def effective(examples: Mapping[str, Examples], drops: Drops) -> Mapping[str, Examples]:
    """What everybody has left."""
    return {
        client: mine.take(_rest(len(mine), drops[client])) if drops.get(client) else mine
        for client, mine in examples.items()
    }


def _rest(count: int, dropped: Collection[int]) -> np.ndarray[Any, np.dtype[np.intp]]:
    kept = np.ones(count, dtype=bool)
    kept[[row for row in dropped if row < count]] = False
    return np.flatnonzero(kept)


def joined(one: Drops, other: Drops) -> dict[str, frozenset[int]]:
    return {c: frozenset(one.get(c, ())) | frozenset(other.get(c, ())) for c in sorted({*one, *other})}


def commitment(mine: Examples, salt: str) -> str:
    """A salted digest of a data set: tells whether it is the same, and nothing to whoever has not both."""
    digest = hashlib.sha256(salt.encode())
    for part in (mine.x, mine.y):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"sha256:{digest.hexdigest()}"


# --- what a scope comes down to ---------------------------------------------------------------------------


def resolve(space: "Workspace", scope: Scope) -> Erasure:
    """Refuses what is nobody's, what is not there, and what was forgotten before."""
    refuse_strangers(space, scope.clients)
    if scope.kind == "client":
        return Erasure(scope, Change(frozenset(scope.clients)))
    if scope.kind == "stages":
        return _stages(space, scope)
    if scope.kind == "class":
        return _dropping(space, scope, _of_class(space, scope))
    held = erasures.holdings(space.ledger)
    committed = {c: Holding(w) for c, w in scope.samples.items() if isinstance(w, str)}
    committed = {c: h for c, h in committed.items() if c not in held or held[c].commitment != h.commitment}
    here = sorted(set(committed) & set(space.task.examples))
    if here:
        raise SettingError(
            f"samples of {here[0]}", "a commitment", "the numbers of its examples, for its data are here"
        )
    named = {c: frozenset(w) for c, w in scope.samples.items() if not isinstance(w, str)}
    return _dropping(space, scope, named, committed)


def refuse_strangers(space: "Workspace", clients: Iterable[str]) -> None:
    """Nobody who was never enrolled, nobody who was forgotten before."""
    named = set(clients)
    gone = {m.client: request for m, request in space.ledger.members()}
    unknown = named - set(gone)
    if unknown:
        raise UnknownClient(unknown, [c for c, request in gone.items() if request is None])
    before = {c for c in named if gone[c] is not None}
    if before:
        raise AlreadyForgotten(before)


def _stages(space: "Workspace", scope: Scope) -> Erasure:
    assert scope.stages is not None  # the scope looked
    plan, (first, last) = space.state().plan, scope.stages
    newest = len(plan.stages) - 1
    if last > newest:
        raise SettingError("stages", f"{first}-{last}", f"of those there are, 0 to {newest}")
    members = [m for m in plan.members if m.client in (scope.clients or plan.clients)]
    span = range(first, last + 1)
    away = frozenset((m.client, stage) for m in members for stage in span if m.present(stage))
    if not away:
        if any(m.away & set(span) for m in members):
            raise AlreadyForgotten([str(scope)])
        raise SettingError("stages", f"{first}-{last}", "stages in which one of them was present")
    return Erasure(scope, Change(away=away))


def _of_class(space: "Workspace", scope: Scope) -> dict[str, frozenset[int]]:
    """Who has examples of the label, seats not taken yet among them: nobody shall bring the class back."""
    task = space.task
    if task.dataset.kind == "text":
        raise SettingError("label", scope.label, "left out for text, which has no classes; name samples")
    gone = {m.client for m, request in space.ledger.members() if request is not None}
    whose = set(scope.clients or task.examples) - gone
    unseen = sorted(whose - set(task.examples)) or ([] if task.examples else ["the clients"])
    if unseen:
        raise SettingError(
            "label", scope.label, f"left to the clients: only {unseen[0]} can see which examples those are"
        )
    found = {c: frozenset(np.flatnonzero(task.examples[c].y == scope.label).tolist()) for c in sorted(whose)}
    if not any(found.values()):
        raise SettingError("label", scope.label, "a class that one of them has")
    return {client: rows for client, rows in found.items() if rows}


def _dropping(
    space: "Workspace",
    scope: Scope,
    named: Mapping[str, frozenset[int]],
    committed: Mapping[str, Holding] | None = None,
) -> Erasure:
    """Who is left with nothing leaves; the others stay with a smaller data set, and commit to it."""
    known = erasures.drops(space.ledger)
    new = {c: rows - known.get(c, frozenset()) for c, rows in named.items()}
    new = {c: rows for c, rows in new.items() if rows}
    if not new and not committed:
        raise AlreadyForgotten([str(scope)])
    holdings = dict(committed or {})
    elsewhere = {c: sorted(rows) for c, rows in new.items() if c not in space.task.examples}
    if elsewhere:
        holdings |= _asked_to_drop(space, elsewhere)
    left: dict[str, Examples] = {}
    for client, rows in new.items():
        if client in space.task.examples:
            mine = space.task.examples[client]
            if max(rows) >= len(mine):
                raise SettingError(f"samples of {client}", max(rows), f"from 0 to {len(mine) - 1}")
            left[client] = mine.take(_rest(len(mine), rows | known.get(client, frozenset())))
    for client, mine in left.items():
        if len(mine):
            salt = secrets.token_hex(16)
            holdings[client] = Holding(commitment(mine, salt), salt, len(mine))
    nothing = {c for c, mine in left.items() if not len(mine)} | {c for c, h in holdings.items() if h.examples == 0}
    members = {m.client for m, _ in space.ledger.members()}
    leave, edit = frozenset(nothing & members), frozenset((set(new) | set(holdings)) & members) - nothing
    drops = {c: tuple(sorted(rows)) for c, rows in new.items() if c not in leave}
    return Erasure(scope, Change(leave, edit), drops, {c: h for c, h in holdings.items() if c in edit})


def _asked_to_drop(space: "Workspace", examples: Mapping[str, Sequence[int]]) -> Mapping[str, Holding]:
    engine = space.cohort
    if isinstance(engine, KeepsData):
        return engine.drop(examples)
    first = next(iter(examples))
    raise SettingError(f"samples of {first}", "numbers", "a commitment: its data are not here, and it cannot be asked")


# --- what must not come back ------------------------------------------------------------------------------


def stones(federation: str, erasure: Erasure) -> tuple[str, ...]:
    """What of it is kept with the keys, so that no restored backup brings it back."""
    change = erasure.change
    found = [tombstone(federation, client) for client in sorted(change.leave)]
    found += [_numbered(federation, f"{c}/examples", rows) for c, rows in sorted(erasure.drops.items())]
    for client in sorted({c for c, _ in change.away}):
        found.append(_numbered(federation, f"{client}/stages", [t for c, t in change.away if c == client]))
    return tuple(found)


def _numbered(federation: str, what: str, numbers: Iterable[int]) -> str:
    return f"{tombstone(federation, what)}:{','.join(map(str, sorted(numbers)))}"


def graves(federation: str, known: Collection[str], names: Iterable[str], what: str) -> dict[str, frozenset[int]]:
    """The numbers that tombstones keep of each name's `examples` or `stages`."""
    by_stone: dict[str, set[int]] = {}
    for text in known:
        head, colon, numbers = text.partition(":")
        if colon:
            by_stone.setdefault(head, set()).update(int(n) for n in numbers.split(","))
    found = {name: by_stone.get(tombstone(federation, f"{name}/{what}"), set()) for name in names}
    return {name: frozenset(numbers) for name, numbers in found.items() if numbers}
