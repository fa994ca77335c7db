"""Run: one `flwr run`, its log, and how it ended."""

import re
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ProcessFailed
from .tools import CONNECTION, Tools

_LOOK = 0.5  # seconds between looks at a run
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def silent(line: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Run:
    """`status` as Flower says it: pending, starting, running, finished:completed, finished:failed, …"""

    number: str
    log: Path
    tools: Tools
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        return str(self.facts.get("status", "pending"))

    @property
    def completed(self) -> bool:
        return self.status == "finished:completed"

    @property
    def over(self) -> bool:
        return self.status.startswith("finished")

    @property
    def said(self) -> str:
        """What its ServerApp logged, as far as it was fetched."""
        return _COLOUR.sub("", self.log.read_text(errors="replace")) if self.log.exists() else ""

    def look(self) -> "Run":
        """As it is now."""
        answer = self.tools.flwr("list", CONNECTION, "--run-id", self.number)
        return Run(self.number, self.log, self.tools, answer["runs"][0])

    def wait(self, patience: float = 600.0, tell: Callable[[str], None] = silent) -> "Run":
        """Until it has ended; its log is fetched meanwhile. A SuperLink that is gone ends the wait, too."""
        until = time.monotonic() + patience
        for line in self._lines(until):
            tell(line)
        found = self.look()
        while not found.over:
            if time.monotonic() > until:
                raise self._failed(f"was not over within {patience:g} s")
            time.sleep(_LOOK)
            found = found.look()
        return found

    def wait_for(self, words: str, patience: float = 600.0) -> None:
        """Until its log says this."""
        with closing(self._lines(time.monotonic() + patience)) as lines:
            if not any(words in line for line in lines):
                raise self._failed(f"ended, or {patience:g} s passed, and it never said {words!r}")

    def _lines(self, until: float) -> Generator[str]:
        """What its ServerApp logs, from the beginning, while it does; until that moment at the latest."""
        command = [self.tools.command("flwr"), "log", self.number, CONNECTION, "--stream"]
        with self.log.open("w+b") as out, self.log.open("r", errors="replace") as lines:
            stream = subprocess.Popen(command, env=self.tools.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            try:
                while stream.poll() is None and time.monotonic() < until:
                    yield from _clean(lines)
                    time.sleep(_LOOK)
                yield from _clean(lines)
            finally:
                stream.kill()
                stream.wait()

    def tail(self, lines: int = 15) -> tuple[str, ...]:
        return tuple(self.said.splitlines()[-lines:])

    def expect(self) -> "Run":
        """Itself, if it went well."""
        if not self.completed:
            raise self._failed(f"is {self.status} ({self.facts.get('status-details', '')})")
        return self

    def _failed(self, what: str) -> ProcessFailed:
        return ProcessFailed(f"run {self.number}", what, self.log, self.tail())


def _clean(lines: Iterable[str]) -> Iterator[str]:
    yield from (clean for line in lines if (clean := _COLOUR.sub("", line).strip()))
