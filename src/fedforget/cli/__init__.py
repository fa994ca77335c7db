"""The command line: the workspace's verbs, no logic of its own.

One JSON document on stdout with --json and nothing else there; progress on stderr, and only on a terminal.
"""

from typer.models import CommandInfo

from . import (  # each enters its commands
    evidence,
    experiments,
    federation,
    measure,
    report,
    requests,
    serving,
    study,
    verbs,
)
from .base import app, main

# As one comes to need them; `--help` lists them so.
_ORDER = [
    *("demo", "init", "train", "plan", "forget", "status", "verify", "evaluate", "report", "stage", "scrub", "repair"),
    *("keygen", "enroll", "wish", "request", "approve", "run", "policy", "export", "exports", "serve-model", "migrate"),
    *("audit", "compare", "reproduce", "storage", "data"),
]


def _place(command: CommandInfo) -> int:
    name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


app.registered_commands.sort(key=_place)

__all__ = [
    "app",
    "evidence",
    "experiments",
    "federation",
    "main",
    "measure",
    "report",
    "requests",
    "serving",
    "study",
    "verbs",
]
