"""Guard: ends processes whose owner is gone, however it went.

Run by itself (`python -I -S guard.py`), it reads `+PID` and `-PID` from its input, a pipe only its owner writes to. The
pipe's end is the owner's: whatever is still on the list then is ended with its whole process group. Nothing here
depends on the owner having had the time to clean up.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

PATIENCE = 3.0  # seconds between asking and forcing


def end_groups(leaders: Iterable[int], patience: float = PATIENCE) -> None:
    """Ask every process group to end, and force those that are still there."""
    left = set(leaders)
    for leader in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGTERM)
    until = time.monotonic() + patience
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = {leader for leader in left if _there(leader)}
    for leader in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def _there(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def watch(lines: Iterable[str]) -> None:
    leaders: set[int] = set()
    for line in lines:
        number = int(line[1:])
        (leaders.add if line[0] == "+" else leaders.discard)(number)
    end_groups(leaders)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's Ctrl-C is for the owner
    watch(iter(sys.stdin.readline, ""))
