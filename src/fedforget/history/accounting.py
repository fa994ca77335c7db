"""Accounting: how many bytes lie where and cross the wire, exactly, from the plan alone.

`account` adds up what `Keeper` would place, record by record; a test checks it against the files a real run leaves.
Four numbers always, since each alone misleads: the server, the fullest holder, all together, the wire.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..coding import block_length
from ..federation import Place
from ..plan import Cell, Change, Plan, Taint
from ..sealing import TAG
from ..slices import ALL_SHARDS, HEAD, SERVER
from .keep import Keeper


@dataclass(frozen=True)
class Model:
    """What matters of a model here: the bytes of its file, and how many layers its inner products have."""

    bytes: int
    layers: int


@dataclass(frozen=True)
class Traffic:
    """Messages and their bytes; the paper's time is 0.1 s a message and 8·bytes/rate."""

    messages: int = 0
    bytes: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.messages + other.messages, self.bytes + other.bytes)

    def seconds(self, rate: float) -> float:
        """One message after another, at `rate` bits a second."""
        return 0.1 * self.messages + 8 * self.bytes / rate


@dataclass(frozen=True)
class Account:
    plain: int  # the uploads as they are, once
    server: int
    holder: int  # the fullest
    total: int
    record: Traffic  # slices going out
    recall: Traffic  # k slices of every round: what the paper's recall of one shard's (or all) uploads moves
    forget: Traffic  # reading what the forget needs, placing the new generation


def account(keeper: Keeper, model: Model, change: Change | None = None) -> Account:
    """Everything for training every stage of the keeper's plan, and for forgetting `change` exactly."""
    held: dict[str, int] = {}
    record = recall = forget = Traffic()
    taints = keeper.plan.affected(change) if change else {}
    touched = {cell[1] for cell in taints}
    for place, width, holders, k in _bundles(keeper, model):
        for holder in holders:
            held[holder] = held.get(holder, 0) + width
        out = Traffic(len(holders), width * len(holders))
        record += out if holders != (SERVER,) else Traffic()
        if place.shard == ALL_SHARDS or place.shard in touched or not change:
            recall += Traffic(k, k * width) if holders != (SERVER,) else Traffic()
        taint = _taint(taints, place)
        if taint is not None and place.round >= taint and holders != (SERVER,):
            forget += out
            forget += Traffic(k, k * width) if place.shard == ALL_SHARDS else Traffic()
    heads = sum(_even(model.bytes + TAG) for _ in range(keeper.plan.shards))
    server = held.pop(SERVER, 0) + heads
    assert HEAD not in held
    return Account(
        _plain(keeper.plan, model),
        server,
        max(held.values(), default=0),
        server + sum(held.values()),
        record,
        recall,
        forget,
    )


def _taint(taints: Mapping[Cell, Taint], place: Place) -> int | None:
    found = [t.round for (stage, s), t in taints.items() if stage == place.stage and place.shard in (s, ALL_SHARDS)]
    return min(found, default=None)


def _plain(plan: Plan, model: Model) -> int:
    return sum(len(plan.cohort(*place)) * model.bytes for place in _places(plan))


def _places(plan: Plan) -> Iterator[Place]:
    for stage, row in enumerate(plan.stages):
        for round in range(row.rounds):
            yield from (Place(stage, shard, round) for shard in range(plan.shards) if plan.present(stage, shard))


def _bundles(keeper: Keeper, model: Model) -> Iterator[tuple[Place, int, tuple[str, ...], int]]:
    """Each bundle's place, slice width, holders and k."""
    plan = keeper.plan
    if keeper.keeping.layout != "cross":
        for place in _places(plan):
            code = keeper.code_of(place.stage, place.shard)
            width = sum(block_length(size, code.k) for size in record_sizes(keeper, model, place))
            if width:
                yield place, width, keeper.holders(place.stage, place.shard), code.k
        return
    for stage, row in enumerate(plan.stages):
        for round in range(row.rounds):
            lanes = [sum(record_sizes(keeper, model, Place(stage, s, round))) for s in range(plan.shards)]
            if any(lanes):
                holders = keeper.holders(stage, ALL_SHARDS)
                yield Place(stage, ALL_SHARDS, round), _even(max(lanes)), holders, plan.shards


def record_sizes(keeper: Keeper, model: Model, place: Place) -> list[int]:
    """Sealed bytes of each record `Keeper` makes of a plain round in which nobody is lost."""
    cohort = keeper.plan.cohort(*place)
    if not keeper.plan.present(place.stage, place.shard):
        return []
    lean = keeper.keeping.keep == "lean"
    first = lean and bool(keeper.plan.newcomers(*place))
    sizes = [8 * model.layers * len(cohort) ** 2]
    if not lean or first:
        sizes += [model.bytes] * len(cohort)
    if first and place.round > 0:
        sizes.append(model.bytes)
    return [size + TAG for size in sizes]


def _even(size: int) -> int:
    return block_length(size, 1)
