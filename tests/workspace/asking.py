"""Who asks in these tests, when, and on which day."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from small import small_task

from fedforget.requests import Scope
from fedforget.requests.signed import Signed
from fedforget.signing import SecretKey
from fedforget.storage.disk import Disk
from fedforget.workspace import Workspace
from fedforget.workspace.request_reports import DeliveryReport

DAY = timedelta(days=1)


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


def key(name: str) -> SecretKey:
    """Everybody's secret key, from the name."""
    return SecretKey(name.encode().ljust(32, b"."))


@contextmanager
def desk(path: Path, clock: Clock, *, seats: int = 8, disk: Disk | None = None, **more: Any) -> Iterator[Workspace]:
    with Workspace.open(path, task=small_task(seats), clock=clock, disk=disk, **more) as space:
        yield space


def enrol(space: Workspace, clients: Iterable[str], operators: Iterable[str] = ("ann", "bob")) -> None:
    for client in clients:
        space.requests.enrol("client", client, key(client).public)
    for operator in operators:
        space.requests.enrol("operator", operator, key(operator).public)


def wish(space: Workspace, client: str, by: str = "", request: str = "", **more: Any) -> Signed:
    """The client's own wish to be forgotten, or somebody else's that it be."""
    return space.requests.wish(Scope.of_clients([client]), key(by or client), request=request, **more)


def ask(space: Workspace, *clients: str, by: str = "") -> DeliveryReport:
    return space.requests.ask(*(wish(space, client, by, f"r-{client}").to_bytes() for client in clients))


def states(space: Workspace) -> dict[str, str]:
    return {line.id: line.state for line in space.requests.list().requests}


def kinds(space: Workspace) -> list[str]:
    return [event.kind for event in space.ledger.events()]
