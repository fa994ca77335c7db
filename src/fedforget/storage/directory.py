"""A slice store on disk: one folder a holder, one file a slice.

    ROOT/<holder>/stage-0/shard-1/round-0007.generation-0.slice

A holder whose folder is gone is away: its slices are missing and its deletions wait.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..slices import SliceKey
from .disk import Disk

_FILE = re.compile(r"stage-(\d+)/shard-(-?\d+)/round-(-?\d+)\.generation-(\d+)\.slice")


@dataclass(frozen=True)
class DirectoryStore:
    root: Path
    disk: Disk = field(default_factory=Disk)

    def path(self, key: SliceKey) -> Path:
        return (
            self.root
            / key.holder
            / f"stage-{key.stage}"
            / f"shard-{key.shard}"
            / f"round-{key.round:04d}.generation-{key.generation}.slice"
        )

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        self.disk.write_all({self.path(key): blob for key, blob in pieces.items()})

    def get(self, key: SliceKey) -> bytes | None:
        return self.disk.read(self.path(key))

    def ahead(self, groups: Iterable[tuple[Sequence[SliceKey], int]]) -> None:
        """Nothing here is far away."""

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        """A holder that is away cannot acknowledge."""
        here = {holder: (self.root / holder).is_dir() for holder in {key.holder for key in keys}}
        there = [key for key in keys if here[key.holder]]
        self.disk.delete_all(self.path(key) for key in there)
        return frozenset(there)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        top = self.root if holder is None else self.root / holder
        for path in self.disk.files(top):
            name, _, rest = path.relative_to(self.root).as_posix().partition("/")
            found = _FILE.fullmatch(rest)
            if found:
                stage, shard, round, generation = (int(part) for part in found.groups())
                yield SliceKey(stage, shard, round, generation, name)
