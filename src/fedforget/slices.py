"""Slices: what a holder keeps, and the seam to where it keeps it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

SERVER = "server"  # the holder that is not a client: histories kept plainly
ALL_SHARDS = -1  # the shard of a slice that mixes all of them (layout "cross")
VACANT = "server.vacant"  # the holder of a slice nobody could take over
HEAD = "server.head"  # keeps the newest model of every shard


class SliceKey(NamedTuple):
    stage: int
    shard: int
    round: int
    generation: int
    holder: str

    def __str__(self) -> str:
        return (
            f"slice of stage {self.stage}, shard {self.shard}, round {self.round}, "
            f"generation {self.generation} at {self.holder}"
        )


class SliceStore(Protocol):
    """Where slices lie: a dict, a directory, or the clients of a federation."""

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        """Keep slices, each whole or not at all; on return all are durable."""

    def get(self, key: SliceKey) -> bytes | None:
        """The bytes, or None where the holder is away or has none."""

    def ahead(self, groups: Iterable[tuple[Sequence[SliceKey], int]]) -> None:
        """Of each group so many will be got soon, the first that are good; a store across a network fetches them."""

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        """Which of them their holders acknowledged to have no more."""

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        """Every slice there is, or one holder's."""
