"""Disk: the few durable operations everything on disk goes through.

Each is announced to `probe` just before it happens, so that a test can end the world there. Many files are written
together: a file system commits fsyncs that wait at the same time in one go, forty times faster than one by one.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageFull

Probe = Callable[[str, str], None]
_TEMPORARY = ".writing-"
_TOGETHER = 32


def _quiet(operation: str, target: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Disk:
    """The real file system."""

    probe: Probe = _quiet

    def write(self, path: Path, blob: bytes, mode: int = 0o644) -> None:
        """All of it or nothing: temp file, fsync, rename, fsync of the directory."""
        self.write_all({path: blob}, mode)

    def write_all(self, blobs: Mapping[Path, bytes], mode: int = 0o644) -> None:
        """Each whole or not at all; on return all of them are durable."""
        changed = {path.parent for path in blobs}
        for path, blob in blobs.items():
            with _named(path):
                self.probe("write", str(path))
                changed |= _make(path.parent)
                _fill(_partial(path), blob, mode)
        self._sync([_partial(path) for path in blobs])
        for path in blobs:
            with _named(path):
                self.probe("rename", str(path))
                os.replace(_partial(path), path)
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
                path.unlink(missing_ok=True)
        self._sync({path.parent for path in there})

    def erase(self, path: Path) -> None:
        """Overwrite the bytes where they lie, then delete. (On a copy-on-write disk only deletion is certain.)"""
        if path.exists():
            with _named(path):
                self.probe("erase", str(path))
                _overwrite(path)
            self.delete(path)

    def files(self, root: Path) -> Iterator[Path]:
        """Every finished file below root."""
        for folder, folders, names in os.walk(root):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith(_TEMPORARY))

    def sweep(self, root: Path) -> int:
        """Delete what interrupted writes left behind."""
        found = [Path(folder, n) for folder, _, names in os.walk(root) for n in names if n.startswith(_TEMPORARY)]
        self.delete_all(found)
        return len(found)

    def _sync(self, paths: Iterable[Path]) -> None:
        waiting = sorted(paths)
        for path in waiting:
            with _named(path):
                self.probe("fsync", str(path))
        if len(waiting) == 1:
            _fsync(waiting[0])
        elif waiting:
            with ThreadPoolExecutor(min(_TOGETHER, len(waiting))) as pool:
                list(pool.map(_fsync, waiting))


def _partial(path: Path) -> Path:
    return path.with_name(_TEMPORARY + path.name)


def _make(folder: Path) -> set[Path]:
    """Make a folder and those above it; returns the folders that got an entry by it."""
    if folder.is_dir():
        return set()
    above = _make(folder.parent)
    folder.mkdir(exist_ok=True)
    return above | {folder.parent}


def _fill(path: Path, blob: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        view = memoryview(blob)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _overwrite(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, bytes(os.fstat(handle).st_size))
        os.fsync(handle)
    finally:
        os.close(handle)


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
