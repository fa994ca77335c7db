"""Run: one `flwr run`, its log, and how it ended."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ProcessFailed
from .tools import CONNECTION, Tools

_LOOK = 0.5  # seconds between looks at a run


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
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def look(self) -> "Run":
        """As it is now."""
        answer = self.tools.flwr("list", CONNECTION, "--run-id", self.number)
        return Run(self.number, self.log, self.tools, answer["runs"][0])

    def wait(self, patience: float = 600.0) -> "Run":
        """Until it has ended; its log is fetched meanwhile. A SuperLink that is gone ends the wait, too."""
        until = time.monotonic() + patience
        command = [self.tools.command("flwr"), "log", self.number, CONNECTION, "--stream"]
        with self.log.open("wb") as out:
            stream = subprocess.Popen(command, env=self.tools.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            try:
                stream.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired as fault:
                raise ProcessFailed(
                    f"run {self.number}", f"was not over within {patience:.0f} s", self.log, self.tail()
                ) from fault
            finally:
                stream.kill()
                stream.wait()
        found = self.look()
        while not found.over and time.monotonic() < until:
            time.sleep(_LOOK)
            found = found.look()
        return found

    def tail(self, lines: int = 15) -> tuple[str, ...]:
        return tuple(self.said.splitlines()[-lines:])

    def expect(self) -> "Run":
        """Itself, if it went well."""
        if not self.completed:
            why = str(self.facts.get("status-details", ""))
            raise ProcessFailed(f"run {self.number}", f"is {self.status} ({why})", self.log, self.tail())
        return self
