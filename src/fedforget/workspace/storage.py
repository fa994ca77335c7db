"""Storage: what the ways of keeping a history cost, side by side, for any model and federation."""

from dataclasses import dataclass, replace

from ..errors import SettingError
from ..history import Keeper
from ..history.accounting import Account, Model, account
from ..manifest import Keeping, Layout
from ..plan import Change, Plan
from ..sealing import Vault
from ..storage.memory import MemoryStore


@dataclass(frozen=True)
class StorageRow:
    name: str
    code: str
    tolerates: str  # of n holders
    account: Account
    server_of_fe: float
    total_of_plain: float
    record_seconds: float
    recall_seconds: float


@dataclass(frozen=True)
class StorageReport:
    clients: int
    shards: int
    participants: int
    rounds: int
    model_bytes: int
    rate: float
    wrong: float
    rows: tuple[StorageRow, ...]


def storage_report(
    parameters: int,
    layers: int,
    clients: int,
    shards: int,
    participants: int,
    rounds: int,
    wrong: float,
    rate: float,
) -> StorageReport:
    """FE and SE uncoded, the paper's cross code, and ours at its tolerance, at `wrong`, and as `init` would choose."""
    for name, value in (("parameters", parameters), ("layers", layers), ("rounds", rounds)):
        if value < 1:
            raise SettingError(name, value, "1 or more")
    if not 0 <= wrong < 0.5:
        raise SettingError("wrong", wrong, "from 0 up to, not including, 0.5: of more liars nobody can tell the honest")
    if not rate > 0:
        raise SettingError("rate", rate, "above 0")
    model = Model(4 * parameters + 80 * layers, layers)
    names = [f"client-{i:03d}" for i in range(clients)]
    sharded = Plan.of(names, shards=shards, rounds=rounds, participants=participants, draw="stage")
    whole = replace(sharded, shards=1, participants=participants * shards)
    leaver = sharded.cohort(0, 0, 0)[0]
    members = clients // shards
    safe = max(1, int(members * (1 - 2 * wrong)))
    same = max(1, members * shards // clients)
    default = min(members, 20)
    rows: list[tuple[str, Plan, Layout, int, int, str]] = [
        ("FE", whole, "server", 1, 1, "full"),
        ("SE-uncoded", sharded, "server", 1, 1, "full"),
        ("SE coded, cross (paper)", sharded, "cross", clients, shards, "full"),
        ("coded, shard, same tolerance", sharded, "shard", members, same, "full"),
        (f"coded, shard, {100 * wrong:.0f} % wrong", sharded, "shard", members, safe, "full"),
        ("coded, shard, as init chooses", sharded, "shard", default, max(1, default // 2), "full"),
        ("coded, shard, lean", sharded, "shard", default, max(1, default // 2), "lean"),
    ]
    found: list[StorageRow] = []
    for name, plan, layout, n, k, keep in rows:
        keeping = Keeping(layout, keep, n, k)  # type: ignore[arg-type]
        keeper = Keeper("storage", plan, keeping, True, Vault(0, bytes(32)), MemoryStore())
        costs = account(keeper, model, Change(frozenset({leaver})))
        fe = found[0].account.server if found else costs.server
        code = "none" if layout == "server" else f"({n},{k})"
        tolerates = "-" if layout == "server" else f"{n - k} missing or wrong, {(n - k) // 2} wrong unhashed"
        found.append(
            StorageRow(
                name,
                code,
                tolerates,
                costs,
                costs.server / fe,
                costs.total / costs.plain,
                costs.record.seconds(rate),
                costs.recall.seconds(rate),
            )
        )
    return StorageReport(clients, shards, participants, rounds, model.bytes, rate, wrong, tuple(found))
