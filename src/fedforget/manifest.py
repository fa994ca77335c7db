"""Manifest: what the server remembers of a round, so that its slices can be found, checked, decoded and opened.

No parameter is in it. The keys are wrapped under an epoch key that is kept elsewhere; a destroyed one is None.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from .errors import SettingError
from .federation import Absence, Cost, Kind, Place, Round
from .plan import Cell
from .slices import SliceKey

Cipher = Literal["aes-256-gcm", "chacha20-poly1305"]
Layout = Literal["shard", "cross", "server"]
Keep = Literal["full", "lean"]
RecordKind = Literal["upload", "start", "model", "gram", "head"]


@dataclass(frozen=True)
class Label:
    """What a sealed record is and where it belongs: bound to it by the seal."""

    federation: str
    stage: int
    shard: int
    round: int
    generation: int
    kind: RecordKind
    client: str
    code: str
    compressed: bool = False

    @property
    def bound(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    @property
    def place(self) -> Place:
        return Place(self.stage, self.shard, self.round)

    def __str__(self) -> str:
        who = f" of {self.client}" if self.client else ""
        return f"{self.kind}{who} in stage {self.stage}, shard {self.shard}, round {self.round}"


@dataclass(frozen=True)
class Record:
    """A sealed record as the server knows it: never its bytes, only how to check and open them."""

    label: Label
    plain: int  # bytes before sealing
    length: int  # bytes sealed
    digest: str  # SHA-256 of the sealed bytes
    wrapped: bytes | None


@dataclass(frozen=True)
class Spot:
    """Where a record lies among a bundle's data blocks: striped over all (lane None) or whole in one."""

    label: Label
    offset: int
    lane: int | None = None


@dataclass(frozen=True)
class Bundle:
    """The slices of one round: which code made them of which records, who holds them, and their hashes.

    `hashes` may be lost (None a slice): the code still locates what is wrong.
    """

    stage: int
    shard: int
    round: int
    generation: int
    code: str
    width: int  # bytes of a data block, and of a slice
    spots: tuple[Spot, ...]
    holders: tuple[str, ...]
    hashes: tuple[str | None, ...]

    @property
    def keys(self) -> tuple[SliceKey, ...]:
        return tuple(SliceKey(self.stage, self.shard, self.round, self.generation, h) for h in self.holders)

    @cached_property
    def cells(self) -> frozenset[Cell]:
        """Whose rounds are in it."""
        return frozenset((spot.label.stage, spot.label.shard) for spot in self.spots)

    @cached_property
    def by_label(self) -> Mapping[Label, Spot]:
        return {spot.label: spot for spot in self.spots}

    def __str__(self) -> str:
        return str(self.keys[0]).rpartition(" at ")[0].replace("slice", "slices")


@dataclass(frozen=True)
class RoundRow:
    """A round as the ledger keeps it: everything but the numbers."""

    place: Place
    generation: int
    kind: Kind
    source: int | None
    start_digest: str
    model_digest: str
    roster: tuple[str, ...]
    examples: tuple[int, ...]
    absent: tuple[Absence, ...]
    cost: Cost
    numerics: str = ""  # what its bits depend on beside its inputs; unknown of rounds of version 0.1.0
    deterministic: bool = True

    @staticmethod
    def of(round: Round, generation: int) -> "RoundRow":
        return RoundRow(
            round.place,
            generation,
            round.kind,
            round.source,
            round.start.digest,
            round.model.digest,
            round.roster,
            tuple(u.examples for u in round.uploads),
            round.absent,
            round.cost,
        )


@dataclass(frozen=True)
class Entry:
    """What one durable step adds to the ledger: the rounds of one index, their records and their slices."""

    rounds: tuple[RoundRow, ...]
    records: tuple[Record, ...]
    bundles: tuple[Bundle, ...]


@dataclass(frozen=True)
class Keeping:
    """How a federation's history is kept.

    `shard`: a record is striped over k pieces, n holders get one slice each · `cross`: the paper's, the S shards'
    blocks of a round are the S data points · `server`: uncoded, at the server, as FedEraser does.
    """

    layout: Layout = "shard"
    keep: Keep = "full"
    holders: int = 20
    threshold: int = 10
    cipher: Cipher = "aes-256-gcm"
    compress: bool = False

    def __post_init__(self) -> None:
        if self.layout not in ("shard", "cross", "server"):
            raise SettingError("layout", self.layout, "'shard', 'cross' or 'server'")
        if self.keep not in ("full", "lean"):
            raise SettingError("history", self.keep, "'full' or 'lean'")
        if not 1 <= self.threshold <= self.holders:
            raise SettingError("threshold", self.threshold, f"from 1 to the number of holders, {self.holders}")
