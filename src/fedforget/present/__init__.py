"""Present: reports as a person reads them in a terminal."""

from .base import size
from .federation import federation_demo, raised
from .study import dataset, demo, storage
from .verbs import evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "dataset",
    "demo",
    "evaluated",
    "federation_demo",
    "forgot",
    "made",
    "planned",
    "raised",
    "repaired",
    "scrubbed",
    "size",
    "staged",
    "status",
    "storage",
    "trained",
    "verified",
]
