"""Case: everything a cell's result depends on, as values; its digest names the cell for good."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..canonical import canonical
from ..errors import SettingError
from ..evaluation.simulation import pick
from ..evaluation.theory import Pattern
from ..plan import Plan
from ..seeds import derive

Draw = Literal["once", "round"]


@dataclass(frozen=True)
class Federation:
    """Who trains what, and how long.

    `draw` "once": `participants` of the clients are selected once and are all there is, sharded or not, so that both
    worlds learn from the same data and nobody takes a leaver's place (as in the authors' public code). "round": every
    client is enrolled, and each round draws as many anew.
    """

    task: str
    partition: str = "iid"  # or non-iid: by class for pictures, unequal buckets for text
    seed: int = 0
    clients: int = 100
    participants: int = 20  # in all shards together
    shards: int = 4
    sharded: bool = True
    draw: Draw = "once"
    rounds: int = 30
    epochs: int = 10
    examples: int = 0  # dealt to all clients together; 0: all there are
    learner: str = ""
    lr: float = 0.0
    batch: int = 0
    context: int = 64

    def __post_init__(self) -> None:
        if self.partition not in ("iid", "non-iid"):
            raise SettingError("partition", self.partition, "'iid' or 'non-iid'")
        if self.draw not in ("once", "round"):
            raise SettingError("draw", self.draw, "'once' or 'round'")
        if self.participants % self.shards or not 0 < self.participants <= self.clients:
            raise SettingError(
                "participants", self.participants, f"a multiple of the shards, {self.shards}, at most {self.clients}"
            )

    @property
    def name(self) -> str:
        drawn = "" if self.draw == "once" else f"-draw-{self.draw}"
        return f"{self.task}-{self.partition}{drawn}"

    @property
    def world(self) -> str:
        return "sharded" if self.sharded else "unsharded"

    def selected(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Who is in the federation: drawn once, or everybody."""
        if self.draw == "round":
            return names
        ranked = sorted(names, key=lambda name: (derive(self.seed, "selected", name), name))
        return tuple(sorted(ranked[: self.participants]))

    def plan(self, names: tuple[str, ...], sharded: bool | None = None) -> Plan:
        shards = self.shards if (self.sharded if sharded is None else sharded) else 1
        each = None if self.draw == "once" else self.participants // shards
        return Plan.of(self.selected(names), shards=shards, rounds=self.rounds, seed=self.seed, participants=each)


@dataclass(frozen=True)
class Request:
    """Whom a method is to make forgotten: `count` clients at once, spread `even` over the shards or `adapt` in one."""

    method: str
    count: int = 1
    pattern: Pattern = "adapt"
    ratio: float = 2.0

    @property
    def name(self) -> str:
        return self.method if self.count == 1 else f"{self.method}-{self.pattern}-{self.count}"

    def leavers(self, federation: Federation, names: tuple[str, ...]) -> tuple[str, ...]:
        """The same in the sharded and the unsharded world, for every method."""
        plan = federation.plan(names, sharded=True)
        return tuple(sorted(pick(plan, self.count, self.pattern, derive(federation.seed, "leavers"))))


@dataclass(frozen=True)
class Probe:
    """How many examples are asked about; 0: all there are."""

    test: int = 0
    attack: int = 0  # of the leavers' and of the members' examples each
    curve: int = 0  # of the test examples, after each round

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 0:
                raise SettingError(name, value, "0 or more")


@dataclass(frozen=True)
class Case:
    """One cell: a training, or a request to what was trained."""

    federation: Federation
    probe: Probe = Probe()
    request: Request | None = None

    @property
    def name(self) -> str:
        what = self.request.name if self.request else "training"
        return f"{self.federation.name}/seed{self.federation.seed}/{self.federation.world}/{what}"

    @property
    def training(self) -> "Case":
        return Case(self.federation, self.probe)

    def values(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def digest(self) -> str:
        return digest_of(self.values())


def digest_of(values: Any) -> str:
    """SHA-256 of the canonical spelling; decimal numbers as text."""
    return hashlib.sha256(canonical(_spelt(values))).hexdigest()


def _spelt(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {key: _spelt(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt(item) for item in value]
    return value
