"""Present: reports as a person reads them in a terminal."""

from .base import size
from .experiments import checked, reproduced
from .study import dataset, demo, storage
from .verbs import evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "checked",
    "dataset",
    "demo",
    "evaluated",
    "forgot",
    "made",
    "planned",
    "repaired",
    "reproduced",
    "scrubbed",
    "size",
    "staged",
    "status",
    "storage",
    "trained",
    "verified",
]
