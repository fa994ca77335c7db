"""Children: processes with a log each, which do not outlive whoever started them."""

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ProcessFailed
from . import guard

TAIL = 15  # lines of a log an error shows


@dataclass(frozen=True)
class Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    since: int  # where in the log this process began
    mark: str  # what it and all it starts have in their environment

    def said(self) -> str:
        """What it has logged since it was started."""
        with self.log.open("rb") as file:
            file.seek(self.since)
            return file.read().decode(errors="replace")

    def tail(self) -> tuple[str, ...]:
        return tuple(self.said().splitlines()[-TAIL:])

    def failed(self, what: str) -> ProcessFailed:
        return ProcessFailed(self.name, what, self.log, self.tail())


@dataclass(frozen=True)
class Children:
    """Those running, by name. `watcher` ends them should this process die without ending them itself."""

    watcher: subprocess.Popen[str]
    last: str = ""  # who is ended after all others, so that they can take their leave of it
    running: dict[str, Child] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str]) -> Child:
        since = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            mark = secrets.token_hex(8)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**env, guard.MARK: mark},
                start_new_session=True,
            )
        self._tell(f"+{process.pid} {mark}")
        self.running[name] = Child(name, process, log, since, mark)
        return self.running[name]

    def end(self, name: str, how: signal.Signals = signal.SIGTERM, patience: float = guard.PATIENCE) -> None:
        """End one with all it started; SIGKILL is a machine that dies."""
        child = self.running.pop(name, None)
        if child is None:
            return
        if how == signal.SIGTERM:
            guard.signal_group(child.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(patience)
        guard.force(child.process.pid, child.mark)
        child.process.wait()
        self._tell(f"-{child.process.pid}")

    def end_all(self) -> None:
        """Ask all at once, so that it takes as long as the slowest; the last one then."""
        others = [child for child in self.running.values() if child.name != self.last]
        for child in others:
            guard.signal_group(child.process.pid, signal.SIGTERM)
        for child in others:
            self.end(child.name)
        self.end(self.last)

    def dead(self) -> Iterator[Child]:
        """Those that ended although nobody asked them to."""
        yield from (child for child in list(self.running.values()) if child.process.poll() is not None)

    def _tell(self, line: str) -> None:
        if self.watcher.stdin is None:
            raise AssertionError
        self.watcher.stdin.write(line + "\n")
        self.watcher.stdin.flush()


@contextmanager
def children(last: str = "") -> Iterator[Children]:
    """A guard and its children; all have ended when this is left, `last` after the others."""
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__], stdin=subprocess.PIPE, text=True, start_new_session=True
    )
    found = Children(watcher, last)
    try:
        yield found
    finally:
        found.end_all()
        watcher.communicate()
