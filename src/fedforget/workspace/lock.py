"""Lock: one process at a time works on a workspace; the kernel lets go when it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import WorkspaceBusy


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file, or say who does."""
    handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            holder = os.read(handle, 64).decode(errors="replace").strip()
            raise WorkspaceBusy(path, holder or "another process") from fault
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()}".encode())
        yield
    finally:
        os.close(handle)
