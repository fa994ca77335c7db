"""Guard: ends processes whose owner is gone, however it went.

Run by itself (`python -I -S guard.py`), it reads `+PID MARK` and `-PID` from a pipe that only its owner writes to.
The pipe's end is the owner's: whatever is still on the list then is ended with its whole process group, and with all
that carries its mark in the environment, for Flower starts some of its helpers in sessions of their own. Nothing here
depends on the owner having had the time to clean up.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

PATIENCE = 3.0  # seconds between asking and forcing
MARK = "FEDFORGET_CHILD"  # the variable every child, and its children, have in their environment


def signal_group(leader: int, number: int) -> bool:
    """Whether anybody was there."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def force(leader: int, mark: str) -> None:
    """End a group and whoever else carries the mark; those they start meanwhile, too."""
    signal_group(leader, signal.SIGKILL)
    for _ in range(20):
        found = marked(mark)
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.05)


def marked(mark: str) -> set[int]:
    """Processes that carry the mark. Where the system does not show environments, none is found."""
    needle, found = f"{MARK}={mark}\0".encode(), set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if needle in entry.read_bytes():
                found.add(int(entry.parent.name))
    return found


def end_all(leaders: Mapping[int, str], patience: float = PATIENCE) -> None:
    """Ask every group to end, and force what is still there."""
    until = time.monotonic() + patience
    left = [leader for leader in leaders if signal_group(leader, signal.SIGTERM)]
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = [leader for leader in left if signal_group(leader, 0)]
    for leader, mark in leaders.items():
        force(leader, mark)


def watch(lines: Iterable[str]) -> None:
    leaders: dict[int, str] = {}
    for line in lines:
        number, _, mark = line[1:].strip().partition(" ")
        if line[0] == "+":
            leaders[int(number)] = mark
        else:
            leaders.pop(int(number), None)
    end_all(leaders)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's Ctrl-C is for the owner
    watch(iter(sys.stdin.readline, ""))
