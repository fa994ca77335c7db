"""Present: reports as a person reads them in a terminal."""

from .base import size
from .measure import audited, compared
from .report import reported
from .study import dataset, demo, storage
from .verbs import evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "audited",
    "compared",
    "dataset",
    "demo",
    "evaluated",
    "forgot",
    "made",
    "planned",
    "repaired",
    "reported",
    "scrubbed",
    "size",
    "staged",
    "status",
    "storage",
    "trained",
    "verified",
]
