"""Disk: the few durable operations everything on disk goes through.

Each is announced to `probe` just before it happens, so that a test can end the world there.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageFull

Probe = Callable[[str, str], None]
_TEMPORARY = ".writing-"


def _quiet(operation: str, target: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Disk:
    """The real file system."""

    probe: Probe = _quiet

    def write(self, path: Path, blob: bytes, mode: int = 0o644) -> None:
        """All of it or nothing: temp file, fsync, rename, fsync of the directory."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(_TEMPORARY + path.name)
            self.probe("write", str(path))
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            try:
                view = memoryview(blob)
                while view:
                    view = view[os.write(handle, view) :]
                self.probe("fsync", str(path))
                os.fsync(handle)
            finally:
                os.close(handle)
            self.probe("rename", str(path))
            os.replace(partial, path)
            self._sync_folder(path.parent)
        except OSError as fault:
            raise _named(fault, path) from fault

    def read(self, path: Path) -> bytes | None:
        """The bytes, or None where there is no such file."""
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, path: Path) -> None:
        """Gone for good; gone already is fine."""
        if not path.exists():
            return
        self.probe("delete", str(path))
        path.unlink(missing_ok=True)
        self._sync_folder(path.parent)

    def files(self, root: Path) -> Iterator[Path]:
        """Every finished file below root."""
        for folder, folders, names in os.walk(root):
            folders.sort()
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith(_TEMPORARY))

    def sweep(self, root: Path) -> int:
        """Delete what interrupted writes left behind."""
        found = [Path(folder, n) for folder, _, names in os.walk(root) for n in names if n.startswith(_TEMPORARY)]
        for path in found:
            self.delete(path)
        return len(found)

    def _sync_folder(self, folder: Path) -> None:
        self.probe("sync", str(folder))
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _named(fault: OSError, path: Path) -> Exception:
    return StorageFull(path) if fault.errno in (errno.ENOSPC, errno.EDQUOT) else fault
