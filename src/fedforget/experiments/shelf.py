"""Shelf: finished cells in the order a table or picture wants them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .cells import Cell
from .sheet import Mean, mean_or_none

# What a method is called where its world is not its home.
LABELS = {("sharded", "FR"): "FR sharded", ("sharded", "RR"): "RR sharded"}
HEAD_OF_MEASURE = {
    "client_epochs": "client-epochs",
    "cpu": "CPU seconds",
    "client": "client seconds",
    "parallel": "clients in parallel",
    "wall": "wall clock",
}


@dataclass(frozen=True)
class Kind:
    """Cells that differ in nothing but the seed."""

    task: str
    partition: str
    draw: str
    label: str
    count: int
    pattern: str

    @property
    def data(self) -> str:
        return f"{self.task}, {self.partition}" + ("" if self.draw == "once" else ", drawn each round")


@dataclass(frozen=True)
class Shelf:
    cells: tuple[Cell, ...]

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(kind_of(c) for c in self.cells if c.case["request"]))

    def of(self, kind: Kind) -> tuple[Cell, ...]:
        return tuple(c for c in self.cells if c.case["request"] and kind_of(c) == kind)

    def over(self, kind: Kind, what: Callable[[Cell], float | None]) -> Mean | None:
        """The mean over seeds."""
        return mean_or_none([what(c) for c in self.of(kind)])

    def ratio(self, kind: Kind, base: Kind, what: Callable[[Cell], float | None]) -> Mean | None:
        """The mean over seeds of ratios within one seed: what a busy machine disturbs, it disturbs in both."""
        below = {c.seed: what(c) for c in self.of(base)}
        pairs = [(what(c), below.get(c.seed)) for c in self.of(kind)]
        return mean_or_none([a / b if a is not None and b else None for a, b in pairs])


def kind_of(cell: Cell) -> Kind:
    federation, request = cell.case["federation"], cell.case["request"]
    world = "sharded" if federation["sharded"] else "unsharded"
    method = request["method"]
    label = LABELS.get((world, method), method)
    count, pattern = request["count"], request["pattern"] if request["count"] > 1 else "adapt"
    return Kind(federation["task"], federation["partition"], federation["draw"], label, count, pattern)


def served(cell: Cell, when: str = "after") -> dict[str, float]:
    """What is served: the ensemble of shards, or the one model."""
    scores = cell.result[when]
    found: dict[str, float] = scores["ensemble"] if "ensemble" in scores else scores["model"]
    return found


def averaged(cell: Cell) -> dict[str, float]:
    """The parameter average of the shards, as the authors' code evaluates; or the one model."""
    scores = cell.result["after"]
    found: dict[str, float] = scores["average"] if "average" in scores else scores["model"]
    return found


def shard_alone(cell: Cell, when: str, what: str, shards: Collection[str] = ()) -> float | None:
    """The mean over the touched shards, or those of them that are asked for, each by itself."""
    found = [row[when][what] for shard, row in cell.result["shards"].items() if shard in shards or not shards]
    return sum(found) / len(found) if found else None


def work(cell: Cell) -> float | None:
    """Processor seconds of the clients' processes; where they had none of their own, seconds by the clients' clocks."""
    cpu = spent("cpu")(cell)
    return spent("client")(cell) if cpu is None else cpu


def spent(measure: str) -> Callable[[Cell], float | None]:
    """What a cell cost, by one of the measures."""

    def of(cell: Cell) -> float | None:
        if measure == "client_epochs":
            return float(cell.result["client_epochs"])
        value: Any = cell.measured["seconds"].get(measure)
        return None if value is None else float(value)

    return of


def datas(kinds: Sequence[Kind]) -> tuple[tuple[str, str, str], ...]:
    return tuple(dict.fromkeys((k.task, k.partition, k.draw) for k in kinds))
