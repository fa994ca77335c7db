"""Present: reports as a person reads them in a terminal."""

from .base import size
from .requests import (
    delivered,
    key,
    key_pair,
    keys,
    migrated,
    policy,
    request,
    requests,
    wished,
    worked,
)
from .serving import exported, exports, serving
from .study import dataset, demo, storage
from .verbs import evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "dataset",
    "delivered",
    "demo",
    "evaluated",
    "exported",
    "exports",
    "forgot",
    "key",
    "key_pair",
    "keys",
    "made",
    "migrated",
    "planned",
    "policy",
    "repaired",
    "request",
    "requests",
    "scrubbed",
    "serving",
    "size",
    "staged",
    "status",
    "storage",
    "trained",
    "verified",
    "wished",
    "worked",
]
