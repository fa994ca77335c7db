"""Settings: everything that defines a federation, as `federation.toml` keeps it."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args, get_type_hints

from ..errors import SettingError
from ..federation import Settings
from ..manifest import Keeping
from ..plan import Draw
from ..storage.database import check

Partition = Literal["iid", "by-class", "buckets", "non-iid"]
Precision = Literal["fp32", "bf16"]
_CLIENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True)
class FederationSettings:
    """What `init` fixes for good. Defaults are the paper's where a task sets no other."""

    task: str = "digits"
    learner: str = ""  # the task's own
    clients: int = 100
    seats: int = 0  # 0: as many as clients; more leave room for joining at later stages
    shards: int = 4
    participants: int = 5  # a shard a round; 0: everybody
    draw: Draw = "round"
    rounds: int = 30
    epochs: int = 10
    weighted: bool = True
    partition: Partition = "iid"
    share: float = 0.8  # by-class: how much of a client's data is of its primary class
    lr: float = 0.0  # 0: the task's own
    momentum: float = 0.9
    batch: int = 0  # 0: the task's own
    hidden: int = 32  # mlp
    context: int = 64  # text: characters a window
    precision: Precision = "fp32"
    seed: int = 0
    federation: str = ""  # a random name, bound into every seal
    backup_days: int = 30  # how long backups are kept: a certificate is final when that has passed
    ledger: str = ""  # the address of a PostgreSQL database; a file in the workspace
    keeping: Keeping = field(default_factory=Keeping)

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise SettingError(name, getattr(self, name), "one of " + ", ".join(allowed))
        for name, least in _LEAST.items():
            if not least <= getattr(self, name) < _NO_END:
                raise SettingError(name, getattr(self, name), f"{least} or more, and below 2^31")
        check_seed(self.seed)
        if not 0 <= self.momentum < 1:
            raise SettingError("momentum", self.momentum, "from 0 up to, not including, 1")
        if self.ledger:
            check(self.ledger)
        if self.seats and self.seats < self.clients:
            raise SettingError("seats", self.seats, f"at least the number of clients, {self.clients}")
        if self.shards > self.clients:
            raise SettingError("shards", self.shards, f"at most the number of clients, {self.clients}")
        if not 0 < self.share <= 1:
            raise SettingError("share", self.share, "above 0 and at most 1")
        if self.keeping.layout == "cross" and min(self.keeping.holders, self.clients) < self.shards:
            raise SettingError(
                "holders", self.keeping.holders, f"at least the number of shards, {self.shards}, for layout cross"
            )

    @property
    def places(self) -> int:
        return self.seats or self.clients

    @property
    def training(self) -> Settings:
        return Settings(epochs=self.epochs, weighted=self.weighted)

    @property
    def digest(self) -> str:
        """Of all but where the ledger lies, which may move; what came with a later version counts where it is not
        what it was before.
        """
        values = {name: value for name, value in asdict(self).items() if name != "ledger"}
        for name, before in _ADDED.items():
            if values[name] == before:
                del values[name]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def to_toml(self) -> str:
        flat = asdict(self)
        keeping = flat.pop("keeping")
        lines = [f"{name} = {_toml(value)}" for name, value in flat.items()]
        lines += ["", "[keeping]"] + [f"{name} = {_toml(value)}" for name, value in keeping.items()]
        return "# A federation's settings, fixed when it was made. The ledger knows their digest.\n" + "\n".join(
            [*lines, ""]
        )

    @staticmethod
    def of(values: Mapping[str, Any]) -> "FederationSettings":
        given = dict(values)
        given["keeping"] = Keeping(**_checked(Keeping, given.pop("keeping", {})))
        return FederationSettings(**_checked(FederationSettings, given))

    @staticmethod
    def from_toml(text: str) -> "FederationSettings":
        return FederationSettings.of(tomllib.loads(text))


_ALLOWED = {"draw": get_args(Draw), "partition": get_args(Partition), "precision": get_args(Precision)}
_LEAST = {
    "clients": 1,
    "shards": 1,
    "participants": 0,
    "rounds": 1,
    "epochs": 1,
    "lr": 0.0,
    "batch": 0,
    "hidden": 1,
    "context": 1,
    "backup_days": 0,
}
_NO_END = 1 << 31  # what a database's integers hold; infinity and NaN are none of them
_SEEDS = 1 << 63
_ADDED = {"backup_days": 30}


def _toml(value: Any) -> str:
    """JSON is TOML here, but for characters TOML wants as they are and one it wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    for name, value in values.items():
        if name not in names:
            raise SettingError(name, value, "one of " + ", ".join(sorted(names)))
        hint = get_type_hints(kind)[name]
        plain = hint if hint in (int, float, bool, str) else None
        number = plain is float and isinstance(value, int) and not isinstance(value, bool)
        if plain is not None and type(value) is not plain and not number:
            raise SettingError(name, value, f"of type {plain.__name__}")
    return dict(values)


def check_seed(seed: int) -> int:
    """A seed is hashed as a whole number of 64 bits."""
    if not -_SEEDS <= seed < _SEEDS:
        raise SettingError("seed", seed, "a whole number of 64 bits")
    return seed


def check_client_name(name: str) -> str:
    """A client's name is also a folder's; those of the server are its own."""
    if not _CLIENT.fullmatch(name) or name.startswith("server"):
        raise SettingError("client", name, "letters, digits and . _ @ -, at most 64, not beginning with 'server'")
    return name
