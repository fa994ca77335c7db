"""A slice store in memory: the directory store's twin."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..slices import SliceKey


@dataclass(frozen=True)
class MemoryStore:
    slices: dict[SliceKey, bytes] = field(default_factory=dict)

    def put(self, key: SliceKey, blob: bytes) -> None:
        self.slices[key] = bytes(blob)

    def get(self, key: SliceKey) -> bytes | None:
        return self.slices.get(key)

    def delete(self, key: SliceKey) -> bool:
        self.slices.pop(key, None)
        return True

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        yield from sorted(key for key in self.slices if holder in (None, key.holder))
