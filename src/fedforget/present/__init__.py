"""Present: reports as a person reads them in a terminal."""

from .base import size
from .serving import exported, exports, serving
from .study import dataset, demo, storage
from .verbs import evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "dataset",
    "demo",
    "evaluated",
    "exported",
    "exports",
    "forgot",
    "made",
    "planned",
    "repaired",
    "scrubbed",
    "serving",
    "size",
    "staged",
    "status",
    "storage",
    "trained",
    "verified",
]
