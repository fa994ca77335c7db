"""A slice store in memory: the directory store's twin."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..slices import SliceKey


@dataclass(frozen=True)
class MemoryStore:
    slices: dict[SliceKey, bytes] = field(default_factory=dict)

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        self.slices.update({key: bytes(blob) for key, blob in pieces.items()})

    def get(self, key: SliceKey) -> bytes | None:
        return self.slices.get(key)

    def ahead(self, groups: Iterable[tuple[Sequence[SliceKey], int]]) -> None:
        """Nothing here is far away."""

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        for key in keys:
            self.slices.pop(key, None)
        return frozenset(keys)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        yield from sorted(key for key in self.slices if holder in (None, key.holder))
