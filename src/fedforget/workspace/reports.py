"""Reports: what the verbs answer, as plain values that turn into JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import SettingError, VerificationFailed
from ..forgetting import Guarantee


def to_json(report: Any) -> dict[str, Any]:
    """A report as JSON values."""
    return asdict(report)


@dataclass(frozen=True)
class TrainReport:
    stage: int
    rounds: int  # trained now, over all shards
    resumed_at: int  # rounds that were there before
    client_epochs: int
    seconds: float
    absent: tuple[tuple[str, str, str], ...]  # client, where, why
    digests: Mapping[str, str]  # shard → model
    notices: tuple[str, ...] = ()  # what was found and mended before


@dataclass(frozen=True)
class StageReport:
    stage: int
    rounds: int
    handover: str
    joined: tuple[tuple[str, int], ...]  # client, shard
    left: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Reach:
    """A shard of a stage that has to be made again."""

    stage: int
    shard: int
    from_round: int
    rounds: int
    inherited: bool


@dataclass(frozen=True)
class PlanReport:
    clients: tuple[str, ...]
    method: str
    touches: tuple[Reach, ...]
    rounds: int
    client_epochs: int
    seconds: float | None  # estimate, of the clients' work; None where nothing was ever timed
    guarantee: Guarantee
    ends: tuple[int, ...]  # shards nobody would be left in
    scope: str = ""  # what is to be forgotten, in words
    examples: int = 0  # how many would be dropped by clients that stay
    wall_seconds: float | None = None  # estimate, here and now


@dataclass(frozen=True)
class ForgetReport:
    request: int
    clients: tuple[str, ...]
    method: str
    guarantee: Guarantee
    touches: tuple[Reach, ...]
    rounds: int
    client_epochs: int
    seconds: float  # the clients' work, one after another
    parallel_seconds: float  # as if all clients of a round worked at once
    wall_seconds: float
    before: Mapping[str, str]
    after: Mapping[str, str]
    keys_destroyed: int
    slices_deleted: int
    slices_owed: int
    ended: tuple[int, ...]
    scope: str = ""  # what was forgotten, in words
    examples: int = 0  # how many were dropped by clients that stay
    certificate: str = ""  # the file


@dataclass(frozen=True)
class ShardStatus:
    shard: int
    clients: int
    rounds: int
    of: int
    generation: int
    standing: str
    living: bool
    digest: str


@dataclass(frozen=True)
class StatusReport:
    path: str
    federation: str
    task: str
    learner: str
    stage: int
    handover: str
    shards: tuple[ShardStatus, ...]
    clients: int
    forgotten: tuple[str, ...]
    requests: int
    unfinished: tuple[str, ...]
    epoch: int
    debts: int
    layout: str
    history: str
    codes: tuple[str, ...]
    holders: int
    server_bytes: int
    holder_bytes: int  # the fullest holder
    total_bytes: int
    members: tuple[tuple[str, int], ...] = ()  # client, shard; where asked for
    served: Guarantee | None = None  # of the combination of what is served; none where nothing is
    left_out: tuple[tuple[int, tuple[str, ...]], ...] = ()  # shards that are not, and for which requests


@dataclass(frozen=True)
class ExportReport:
    export: int  # its number in the register
    path: str
    recipient: str
    combine: str
    digest: str
    generation: int
    shards: tuple[int, ...]
    guarantee: Guarantee
    bytes: int


@dataclass(frozen=True)
class ServeReport:
    address: str
    combine: str


@dataclass(frozen=True)
class ExportRow:
    export: int
    time: str
    recipient: str
    combine: str
    digest: str
    generation: int
    forgotten: tuple[int, ...]  # the rebuilds since that forgot something in it
    restored: bool  # a backup came back since: whether anything was, nobody can say

    @property
    def tell(self) -> bool:
        return bool(self.forgotten) or self.restored


@dataclass(frozen=True)
class ExportsReport:
    exports: tuple[ExportRow, ...]

    @property
    def tell(self) -> tuple[ExportRow, ...]:
        """Whose recipients must be told."""
        return tuple(row for row in self.exports if row.tell)


@dataclass(frozen=True)
class Check:
    what: str
    passed: bool | None  # None: there was nothing to check, so it neither held nor failed
    detail: str


@dataclass(frozen=True)
class VerifyReport:
    checks: tuple[Check, ...]
    findings: tuple[str, ...]  # slices missing or altered but survived

    @property
    def passed(self) -> bool:
        return all(check.passed is not False for check in self.checks)

    def raise_if_failed(self) -> None:
        if not self.passed:
            raise VerificationFailed(f"{c.what}: {c.detail}" for c in self.checks if c.passed is False)


@dataclass(frozen=True)
class AbandonReport:
    request: int
    scope: str
    method: str
    debts: int  # slices made for it, owed deletion by holders that are away


@dataclass(frozen=True)
class ScrubReport:
    checked: int
    of: int
    next: int  # where the next scrub goes on; 0: it was the last portion
    findings: tuple[str, ...]


@dataclass(frozen=True)
class RepairReport:
    repaired: tuple[str, ...]  # slices made again
    vacant: int  # seats nobody could take over
    lost: tuple[str, ...]  # bundles with too few good slices


@dataclass(frozen=True)
class Score:
    model: str  # "shard 0" … or a combination
    test_accuracy: float
    test_loss: float
    retained_accuracy: float | None
    forgotten_accuracy: float | None


@dataclass(frozen=True)
class EvaluateReport:
    scores: tuple[Score, ...]
    test_examples: int
    guarantee: Guarantee | None = None  # of the combinations

    def score(self, model: str) -> Score:
        for score in self.scores:
            if score.model == model:
                return score
        raise SettingError("model", model, "one of " + ", ".join(s.model for s in self.scores))


@dataclass(frozen=True)
class DataReport:
    name: str
    root: str
    about: Mapping[str, Any]
    plot: str


@dataclass(frozen=True)
class LogReport:
    """The newest signed checkpoint; with `since`, the proof that its log goes on from a shorter one."""

    origin: str
    size: int
    time: str
    key: str
    checkpoint: str
    since: int | None = None
    proof: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProofReport:
    """That an event is in the log."""

    event: Mapping[str, Any]
    hash: str
    proof: tuple[str, ...]
    checkpoint: str


@dataclass(frozen=True)
class EventsReport:
    events: tuple[Mapping[str, Any], ...]
    of: int


@dataclass(frozen=True)
class KeyReport:
    key: str


@dataclass(frozen=True)
class SaltReport:
    """What opens a client's commitment in a certificate."""

    request: int
    client: str
    salt: str
    commitment: str


@dataclass(frozen=True)
class CertificateRow:
    request: int
    state: str
    event: int
    file: str
    there: bool


@dataclass(frozen=True)
class CertificatesReport:
    certificates: tuple[CertificateRow, ...]
    waiting: tuple[str, ...]  # why executed requests are not final yet


@dataclass(frozen=True)
class CertificateReport:
    """A certificate as it can be read; `verified` says what was checked of it."""

    file: str
    keyid: str
    verified: tuple[str, ...]
    statement: Mapping[str, Any]
