"""What is left of processes that were ended."""

import time
from pathlib import Path


def gone(pid: int, patience: float = 10.0) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # ended; whoever adopted it has not looked yet
            return True
        time.sleep(0.02)
    return False


def processes_of(folder: Path) -> list[int]:
    """Those whose Flower home lies in the folder."""
    needle = f"FLWR_HOME={folder}/flwr\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and needle in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
