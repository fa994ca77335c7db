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
from ..plan import Change, Plan
from ..requests import Scope
from ..storage import erasures
from ..storage.erasures import Holding
from ..storage.ledger import Request
from .keys import tombstone
from .state import current_plan

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
class Ground:
    """What a scope is read against: who is where, and what was dropped before."""

    plan: Plan
    seats: Mapping[str, int | None]  # who ever had one, and the rebuild that emptied it
    drops: Mapping[str, frozenset[int]]
    held: Mapping[str, Holding]

    @staticmethod
    def of(space: "Workspace") -> "Ground":
        ledger, members = space.ledger, space.ledger.members()
        plan = current_plan(space.settings, ledger, members)
        return Ground(plan, {m.client: gone for m, gone in members}, erasures.drops(ledger), erasures.holdings(ledger))


@dataclass(frozen=True)
class Part:
    """What scopes name, one or several: before anybody drops anything."""

    scopes: tuple[Scope, ...] = ()
    leave: frozenset[str] = frozenset()
    away: frozenset[tuple[str, int]] = frozenset()
    drops: Mapping[str, frozenset[int]] = field(default_factory=dict)  # free seats' too
    committed: Mapping[str, str] = field(default_factory=dict)
    edit: frozenset[str] = frozenset()

    @property
    def change(self) -> Change:
        """What it touches; whether somebody is left with nothing makes no difference to that."""
        away = frozenset((c, t) for c, t in self.away if c not in self.leave)
        return Change(self.leave, self.edit - self.leave, away)

    @property
    def plain(self) -> bool:
        """Clients that leave, and nothing else."""
        return not (self.away or self.drops or self.committed)


def union(parts: Iterable[Part]) -> Part:
    """All of them at once."""
    every = tuple(parts)
    named = frozenset(c for p in every for scope in p.scopes if scope.kind == "client" for c in scope.clients)
    whole = (Scope.of_clients(named),) if named else ()
    others = {scope for p in every for scope in p.scopes if scope.kind != "client"}
    drops: dict[str, set[int]] = {}
    for part in every:
        for client, rows in part.drops.items():
            drops.setdefault(client, set()).update(rows)
    return Part(
        (*whole, *sorted(others, key=str)),
        frozenset[str]().union(*(p.leave for p in every)),
        frozenset[tuple[str, int]]().union(*(p.away for p in every)),
        {client: frozenset(rows) for client, rows in sorted(drops.items())},
        {client: word for p in every for client, word in p.committed.items()},
        frozenset[str]().union(*(p.edit for p in every)),
    )


@dataclass(frozen=True)
class Erasure:
    """What is carried out: with who is left with nothing among the leavers, and what the others committed to."""

    asked: tuple[Scope, ...]
    change: Change
    drops: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """As a request keeps it."""
        return {
            "asked": [scope.to_document() for scope in self.asked],
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
            tuple(Scope.from_document(document) for document in body["asked"]),
            Change(frozenset(body["leave"]), frozenset(body["edit"]), away),
            {client: tuple(rows) for client, rows in body["drops"].items()},
            {client: Holding(**holding) for client, holding in body["holdings"].items()},
        )

    @property
    def words(self) -> str:
        """What is forgotten, for a person; others may have joined where only clients leave."""
        if not (self.drops or self.holdings or self.change.away):
            return str(Scope.of_clients(self.change.leave))
        return "; ".join(str(scope) for scope in self.asked)


def asked(request: Request) -> tuple[str, ...]:
    """What was asked for, for a message: names, and other scopes in words."""
    scopes = Erasure.of(request).asked
    return tuple(word for scope in scopes for word in (scope.clients if scope.kind == "client" else (str(scope),)))


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


def resolve(space: "Workspace", ground: Ground, scope: Scope, *, strict: bool = False) -> Part:
    """Refuses what is nobody's, what is not there, and what was forgotten before: all of it, or (strict) any client."""
    refuse_strangers(ground.seats, scope.clients, strict)
    clients = frozenset(c for c in scope.clients if ground.seats[c] is None)
    if scope.kind == "client":
        return Part((scope,), leave=clients)
    if scope.kind == "stages":
        return _stages(ground, scope, clients)
    if scope.kind == "class":
        return _dropping(space, ground, scope, _of_class(space, ground, scope, clients))
    named = {c: scope.samples[c] for c in sorted(clients)}
    committed = {c: word for c, word in named.items() if isinstance(word, str)}
    committed = {c: w for c, w in committed.items() if c not in ground.held or ground.held[c].commitment != w}
    here = sorted(set(committed) & set(space.task.examples))
    if here:
        raise SettingError(f"samples of {here[0]}", "a commitment", "its examples' numbers, for its data are here")
    rows = {c: frozenset(word) for c, word in named.items() if not isinstance(word, str)}
    return _dropping(space, ground, scope, rows, committed)


def refuse_strangers(seats: Mapping[str, int | None], clients: Iterable[str], strict: bool = True) -> None:
    """Nobody who was never enrolled; of those forgotten before nobody, or (not strict) not all."""
    named = set(clients)
    unknown = named - set(seats)
    if unknown:
        raise UnknownClient(unknown, [c for c, gone in seats.items() if gone is None])
    before = {c for c in named if seats[c] is not None}
    if before and (strict or before == named):
        raise AlreadyForgotten(before)


def _stages(ground: Ground, scope: Scope, clients: frozenset[str]) -> Part:
    assert scope.stages is not None  # the scope looked
    plan, (first, last) = ground.plan, scope.stages
    newest = len(plan.stages) - 1
    if last > newest:
        raise SettingError("stages", f"{first}-{last}", f"of those there are, 0 to {newest}")
    members = [m for m in plan.members if not scope.clients or m.client in clients]
    span = range(first, last + 1)
    away = frozenset((m.client, stage) for m in members for stage in span if m.present(stage))
    if not away:
        if any(m.away & set(span) for m in members):
            raise AlreadyForgotten([str(scope)])
        raise SettingError("stages", f"{first}-{last}", "stages in which one of them was present")
    return Part((scope,), away=away)


def _of_class(space: "Workspace", ground: Ground, scope: Scope, clients: frozenset[str]) -> dict[str, frozenset[int]]:
    """Who has examples of the label, seats not taken yet among them: nobody shall bring the class back."""
    task = space.task
    if task.dataset.kind == "text":
        raise SettingError("label", scope.label, "left out for text, which has no classes; name samples")
    gone = {client for client, rebuild in ground.seats.items() if rebuild is not None}
    whose = clients if scope.clients else frozenset(task.examples) - gone
    unseen = sorted(whose - set(task.examples)) or ([] if task.examples else ["the clients"])
    if unseen:
        raise SettingError("label", scope.label, f"given as samples: only {unseen[0]} can see which those are")
    found = {c: frozenset(np.flatnonzero(task.examples[c].y == scope.label).tolist()) for c in sorted(whose)}
    if not any(found.values()):
        if any((task.examples[c].y == scope.label).any() for c in gone & set(task.examples)):
            raise AlreadyForgotten([str(scope)])
        raise SettingError("label", scope.label, "a class that one of them has")
    return {client: rows for client, rows in found.items() if rows}


def _dropping(
    space: "Workspace",
    ground: Ground,
    scope: Scope,
    named: Mapping[str, frozenset[int]],
    committed: Mapping[str, str] | None = None,
) -> Part:
    """What is new of it."""
    new = {c: rows - ground.drops.get(c, frozenset()) for c, rows in named.items()}
    new = {c: rows for c, rows in new.items() if rows}
    if not new and not committed:
        raise AlreadyForgotten([str(scope)])
    for client, rows in new.items():
        count = len(space.task.examples[client]) if client in space.task.examples else max(rows) + 1
        if max(rows) >= count:
            raise SettingError(f"samples of {client}", max(rows), f"from 0 to {count - 1}")
    edit = frozenset((set(new) | set(committed or ())) & set(ground.seats))
    return Part((scope,), drops=new, committed=committed or {}, edit=edit)


def settled(space: "Workspace", ground: Ground, part: Part, *, ask: bool = True) -> Erasure:
    """Who is left with nothing leaves; the others stay with a smaller data set, and commit to it.

    `ask`: have clients that keep their data themselves drop what is named.
    """
    examples = space.task.examples if part.drops else {}
    held = {c: Holding(word) for c, word in part.committed.items()}
    elsewhere = {c: sorted(rows) for c, rows in part.drops.items() if c not in examples}
    if elsewhere and ask:
        held |= _asked_to_drop(space, elsewhere)
    for client in part.drops.keys() & examples.keys():
        mine = examples[client]
        left = mine.take(_rest(len(mine), part.drops[client] | ground.drops.get(client, frozenset())))
        salt = secrets.token_hex(16)
        held[client] = Holding(commitment(left, salt), salt, len(left))
    leave = part.leave | {c for c in part.edit if c in held and held[c].examples == 0}
    edit = part.edit - leave
    away = frozenset((c, t) for c, t in part.away if c not in leave)
    drops = {c: tuple(sorted(rows)) for c, rows in part.drops.items() if c not in leave}
    return Erasure(part.scopes, Change(leave, edit, away), drops, {c: h for c, h in held.items() if c in edit})


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
