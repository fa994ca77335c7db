"""Present: reports as a person reads them in a terminal."""

from .base import size
from .evidence import (
    certificate,
    certificate_salt,
    certificates,
    log_checkpoint,
    log_events,
    log_key,
    log_proof,
    log_redacted,
    log_verified,
)
from .serving import exported, exports, serving
from .study import dataset, demo, storage
from .verbs import abandoned, evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "abandoned",
    "certificate",
    "certificate_salt",
    "certificates",
    "dataset",
    "demo",
    "evaluated",
    "exported",
    "exports",
    "forgot",
    "log_checkpoint",
    "log_events",
    "log_key",
    "log_proof",
    "log_redacted",
    "log_verified",
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
