"""Lock: one process at a time works on a workspace; the kernel lets go when it dies.

Those who only look for long (`verify`) share it: any number of them, and nobody who works meanwhile.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import WorkspaceBusy

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def locked(path: Path, shared: bool = False) -> Iterator[None]:
    """Hold the lock file, or say who does."""
    try:
        handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        if not shared or fault.errno not in _READ_ONLY:
            raise
        yield  # an auditor's read-only copy: nobody can work on it
        return
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            holder = os.read(handle, 64).decode(errors="replace").strip()
            raise WorkspaceBusy(path, holder or "another process") from fault
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(handle)
