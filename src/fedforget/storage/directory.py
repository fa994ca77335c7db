"""A slice store on disk: one folder a holder, one file a slice.

    ROOT/<holder>/stage-0/shard-1/round-0007.generation-0.slice

A holder whose folder is gone is away: its slices are missing and its deletions wait.
"""

import re
from collections.abc import Iterator
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

    def put(self, key: SliceKey, blob: bytes) -> None:
        self.disk.write(self.path(key), blob)

    def get(self, key: SliceKey) -> bytes | None:
        return self.disk.read(self.path(key))

    def delete(self, key: SliceKey) -> bool:
        """Whether the holder acknowledged: one that is away cannot."""
        if not (self.root / key.holder).is_dir():
            return False
        self.disk.delete(self.path(key))
        return True

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        top = self.root if holder is None else self.root / holder
        for path in self.disk.files(top):
            name, _, rest = path.relative_to(self.root).as_posix().partition("/")
            found = _FILE.fullmatch(rest)
            if found:
                stage, shard, round, generation = (int(part) for part in found.groups())
                yield SliceKey(stage, shard, round, generation, name)
