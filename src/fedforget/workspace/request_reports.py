"""What the verbs of requests answer, as plain values that turn into JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import NeedsHuman, RequestDenied
from .reports import ForgetReport


@dataclass(frozen=True)
class Receipt:
    """What became of a signed document."""

    request: str
    state: str  # "denied" where it was
    again: bool = False  # it had come before; it has one effect
    kind: str = ""  # of the denial, in a word
    why: str = ""


@dataclass(frozen=True)
class DeliveryReport:
    receipts: tuple[Receipt, ...]

    def raise_if_denied(self) -> None:
        for receipt in self.receipts:
            if receipt.state == "denied":
                raise RequestDenied(receipt.kind, receipt.why)


@dataclass(frozen=True)
class KeyReport:
    """An enrolled key."""

    key: str
    id: str
    role: str
    name: str
    enrolled: str
    revoked: str | None


@dataclass(frozen=True)
class KeysReport:
    keys: tuple[KeyReport, ...]


@dataclass(frozen=True)
class KeyPairReport:
    """A new key pair; the secret half is in its file and nowhere else."""

    secret_file: str
    public_file: str
    key: str
    id: str


@dataclass(frozen=True)
class WishReport:
    """A signed wish in a file, to be delivered."""

    file: str
    request: str
    scope: str
    expires: str


@dataclass(frozen=True)
class RequestLine:
    id: str
    state: str
    scope: str  # in words
    role: str
    name: str
    received: str
    deadline: str
    warning: str  # how the legal month stands, from day 7 on
    reason: str
    rebuild: int | None
    executed: str | None


@dataclass(frozen=True)
class RequestsReport:
    requests: tuple[RequestLine, ...]
    counts: Mapping[str, int]  # by state, over all
    left_out: tuple[tuple[int, int, str], ...]  # stage, shard, since: quarantined


@dataclass(frozen=True)
class SaidLine:
    verdict: str
    time: str
    role: str
    name: str
    reason: str


@dataclass(frozen=True)
class RequestReport:
    """All there is to know of one request, the signed wish itself included."""

    request: RequestLine
    digest: str
    document: Mapping[str, Any]
    key: str
    signature: str
    verdicts: tuple[SaidLine, ...]
    outcome: Mapping[str, Any] | None  # of the rebuild that carried it out


@dataclass(frozen=True)
class RunReport:
    """One pass over the queue."""

    executed: tuple[str, ...]
    final: tuple[str, ...]
    needs_human: tuple[tuple[str, str], ...]  # request, why
    warnings: tuple[tuple[str, str], ...]  # request, how its month stands
    waiting: int
    next_batch: str | None  # when the window of those waiting ends
    rebuilds: tuple[ForgetReport, ...]

    def raise_if_stuck(self) -> None:
        if self.needs_human:
            raise NeedsHuman([request for request, _ in self.needs_human], self.needs_human[0][1])


@dataclass(frozen=True)
class PolicyReport:
    """What the operator has declared."""

    window_hours: int  # how long requests are gathered before a batch
    backup_days: int  # how long backups are kept: only then is a request final


@dataclass(frozen=True)
class MigrationReport:
    path: str
    found: int
    version: int
    backup: str | None
