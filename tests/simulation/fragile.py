"""A disk whose power can fail: real files, and a memory of what was not yet synced, to be taken back.

What is durable: a file's content once the file was synced; a name (created, renamed, removed) once its folder was, the
names of one folder in the order they were made. Everything else is lost, or half there, when the power fails; a process
that dies takes nothing with it, and what it did not sync can still be lost later.
"""

import errno
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from fedforget.storage.disk import System

Failure = Literal["clean", "lost", "torn"]
FAILURES: tuple[Failure, ...] = ("clean", "lost", "torn")


class Died(BaseException):
    """The process ended here; no handler for errors shall see it."""


@dataclass
class Fate:
    """What becomes of a process: nothing, death before some durable operation, or a disk that is full at one."""

    kind: Literal["lives", "dies", "full"] = "lives"
    step: int = 0
    done: int = 0
    met: bool = False

    def __call__(self, operation: str, target: str) -> None:
        if self.kind == "dies" and self.done >= self.step:
            self.met = True
            raise Died(f"{operation} {target}")  # and whoever tries to tidy up dies again
        if self.kind == "full" and self.done == self.step:
            self.met = True
            self.done += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
        self.done += 1


@dataclass(frozen=True)
class Change:
    """A change of a folder that is not yet durable, and how to take it back."""

    kind: Literal["create", "rename", "unlink", "mkdir"]
    path: Path
    source: Path | None = None
    before: bytes | None = None


@dataclass
class Fragile:
    """The calls of `System`, remembered until they are durable."""

    system: System = field(default_factory=System)
    contents: dict[Path, bytes | None] = field(default_factory=dict)  # not synced; what was there before
    folders: dict[Path, list[Change]] = field(default_factory=dict)  # by folder, in order

    def make(self, folder: Path) -> None:
        self.system.make(folder)
        self._changed(Change("mkdir", folder))

    def fill(self, path: Path, blob: bytes, mode: int) -> None:
        before = _read(path)
        self.contents.setdefault(path, before)
        if before is None:
            self._changed(Change("create", path))
        self.system.fill(path, blob, mode)

    def rename(self, source: Path, target: Path) -> None:
        self._changed(Change("rename", target, source, _read(target)))
        self.contents.pop(target, None)
        if source in self.contents:
            self.contents[target] = self.contents.pop(source)
        self.system.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._changed(Change("unlink", path, before=_read(path)))
        self.contents.pop(path, None)
        self.system.unlink(path)

    def overwrite(self, path: Path) -> None:
        self.contents.setdefault(path, _read(path))
        self.system.overwrite(path)

    def sync(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if path.is_dir():
                self.folders.pop(path, None)
            else:
                self.contents.pop(path, None)

    def _changed(self, change: Change) -> None:
        self.folders.setdefault(change.path.parent, []).append(change)

    @property
    def pending(self) -> bool:
        """Whether anything would be lost if the power failed now."""
        return bool(self.contents or any(self.folders.values()))

    def fails(self, how: Failure, random: Random) -> None:
        """`clean`: only the process ended · `lost`: the power failed, all not synced is gone · `torn`: parts of it."""
        if how == "clean":
            return
        if self.pending:
            for path, before in sorted(self.contents.items()):
                path.write_bytes(_torn(before, path.read_bytes(), how, random))
            for folder in sorted(self.folders, key=lambda one: (-len(one.parts), one)):
                changes = self.folders[folder]
                kept = 0 if how == "lost" else random.randint(0, len(changes))
                for change in reversed(changes[kept:]):
                    _take_back(change)
        self.contents.clear()
        self.folders.clear()


def _torn(before: bytes | None, after: bytes, how: Failure, random: Random) -> bytes:
    if how == "lost":
        return before or b""
    cut = random.randint(0, len(after))
    return after[:cut] + (before or bytes(len(after)))[cut : len(after)]


def _take_back(change: Change) -> None:
    if change.kind == "mkdir":
        shutil.rmtree(change.path, ignore_errors=True)
        return
    if change.kind == "rename" and change.source is not None and change.path.exists():
        change.source.write_bytes(change.path.read_bytes())
    if change.before is None:
        change.path.unlink(missing_ok=True)
    elif change.path.parent.is_dir():
        change.path.write_bytes(change.before)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
