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
from .measure import audited, compared
from .report import reported
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
from .verbs import abandoned, evaluated, forgot, made, planned, repaired, scrubbed, staged, status, trained, verified

__all__ = [
    "abandoned",
    "audited",
    "certificate",
    "certificate_salt",
    "certificates",
    "compared",
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
    "log_checkpoint",
    "log_events",
    "log_key",
    "log_proof",
    "log_redacted",
    "log_verified",
    "made",
    "migrated",
    "planned",
    "policy",
    "repaired",
    "reported",
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
