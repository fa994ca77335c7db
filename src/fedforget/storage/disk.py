"""Disk: the few durable operations everything on disk goes through.

Each is announced to `probe` just before it happens, so that a test can end the world there. Many files are written
together: a file system commits fsyncs that wait at the same time in one go, forty times faster than one by one.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..errors import StorageFull

Probe = Callable[[str, str], None]
_TEMPORARY = ".writing-"
_TOGETHER = 32


def _quiet(operation: str, target: str) -> None:
    """Nobody listens."""


class Files(Protocol):
    """The calls by which files change: the system's, or those of a disk that forgets what was not synced."""

    def make(self, folder: Path) -> None:
        """A new folder in one that is there."""

    def fill(self, path: Path, blob: bytes, mode: int) -> None:
        """Write a file anew."""

    def rename(self, source: Path, target: Path) -> None:
        """In one step, over whatever has the name."""

    def unlink(self, path: Path) -> None:
        """Take a file out of its folder."""

    def overwrite(self, path: Path) -> None:
        """Zeros where the bytes lie."""

    def sync(self, paths: Sequence[Path]) -> None:
        """Make files, or what stands in folders, durable."""


@dataclass(frozen=True)
class System:
    """The operating system's."""

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)

    def fill(self, path: Path, blob: bytes, mode: int) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            view = memoryview(blob)
            while view:
                view = view[os.write(handle, view) :]
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def overwrite(self, path: Path) -> None:
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, bytes(os.fstat(handle).st_size))
        finally:
            os.close(handle)

    def sync(self, paths: Sequence[Path]) -> None:
        if len(paths) == 1:
            _fsync(paths[0])
        elif paths:
            with ThreadPoolExecutor(min(_TOGETHER, len(paths))) as pool:
                list(pool.map(_fsync, paths))


@dataclass(frozen=True)
class Disk:
    """Files that are written whole or not at all, on the real file system or on a twin of it."""

    probe: Probe = _quiet
    system: Files = field(default_factory=System)

    def write(self, path: Path, blob: bytes, mode: int = 0o644) -> None:
        """All of it or nothing: temp file, fsync, rename, fsync of the directory."""
        self.write_all({path: blob}, mode)

    def write_all(self, blobs: Mapping[Path, bytes], mode: int = 0o644) -> None:
        """Each whole or not at all; on return all of them are durable."""
        changed = {path.parent for path in blobs}
        for path, blob in blobs.items():
            with _named(path):
                self.probe("write", str(path))
                changed |= self._make(path.parent)
                self.system.fill(_partial(path), blob, mode)
        self._sync([_partial(path) for path in blobs])
        for path in blobs:
            with _named(path):
                self.probe("rename", str(path))
                self.system.rename(_partial(path), path)
        self._sync(changed)

    def read(self, path: Path) -> bytes | None:
        """The bytes, or None where there is no such file."""
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, path: Path) -> None:
        """Gone for good; gone already is fine."""
        self.delete_all([path])

    def delete_all(self, paths: Iterable[Path]) -> None:
        there = [path for path in paths if path.exists()]
        for path in there:
            with _named(path):
                self.probe("delete", str(path))
                self.system.unlink(path)
        self._sync({path.parent for path in there})

    def erase(self, path: Path) -> None:
        """Overwrite the bytes where they lie, then delete. (On a copy-on-write disk only deletion is certain.)"""
        if path.exists():
            with _named(path):
                self.probe("erase", str(path))
                self.system.overwrite(path)
            self._sync([path])
            self.delete(path)

    def files(self, root: Path) -> Iterator[Path]:
        """Every finished file below root."""
        for folder, folders, names in os.walk(root):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith(_TEMPORARY))

    def sweep(self, root: Path) -> int:
        """Delete what interrupted writes left behind, and make durable the folders they made.

        A folder that is there may be there in memory only: whoever made it was stopped before it could sync the one
        above. Nobody who writes into it later would, so it is done before anything is written.
        """
        walked = [(Path(folder), names) for folder, _, names in os.walk(root)]
        found = [folder / name for folder, names in walked for name in names if name.startswith(_TEMPORARY)]
        self.delete_all(found)
        with _named(root):
            self.probe("fsync", str(root))
            self.system.sync([folder for folder, _ in walked])
        return len(found)

    def _sync(self, paths: Iterable[Path]) -> None:
        waiting = sorted(paths)
        for path in waiting:
            with _named(path):
                self.probe("fsync", str(path))
        self.system.sync(waiting)

    def _make(self, folder: Path) -> set[Path]:
        """Make a folder and those above it; returns the folders that got an entry by it."""
        if folder.is_dir():
            return set()
        above = self._make(folder.parent)
        self.system.make(folder)
        return above | {folder.parent}


def _partial(path: Path) -> Path:
    return path.with_name(_TEMPORARY + path.name)


def _fsync(path: Path) -> None:
    with _named(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """A full disk gets an error of its own."""
    try:
        yield
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(path) from fault
        raise
