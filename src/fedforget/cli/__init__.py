"""The command line: the workspace's verbs, no logic of its own.

One JSON document on stdout with --json and nothing else there; progress on stderr, and only on a terminal.
"""

from . import evidence, measure, report, requests, serving, study, verbs  # each enters its commands
from .base import app, main

__all__ = ["app", "evidence", "main", "measure", "report", "requests", "serving", "study", "verbs"]
