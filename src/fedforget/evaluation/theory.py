"""The paper's formulas: time, storage, throughput; and the sums that hold where the paper's are loose.

Time is counted in C̄, the cost of training one shard once (G rounds). S shards of M seats, C clients, K requests,
m of M take part in a round.

What is loose, and what we put in its place (`docs/evaluation.md` derives each):
* T_s is summed without the binomial coefficient, and P(b_s = 1) = 1/S is said for any K. With b_s ~ Bin(K, 1/S) the sum
  over shards of E[b_s] is K, so T_s = K·C̄ stands, by another sum (`paper_sequential_sum`).
* T_c draws requests with replacement. Of K different clients, a shard of M is spared with chance
  C(C−M, K) / C(C, K), which is less (`shards_hit`).
* A restart begins at r₀, the first round a leaver took part in, and costs (G − r₀)/G of C̄ (`restart_share`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, log
from typing import Literal, get_args

from ..errors import SettingError
from ..plan import Draw

Pattern = Literal["even", "adapt", "random"]
Timing = Literal["sequential", "concurrent"]


# --- as in the paper ------------------------------------------------------------------------------------------------


def sequential_time(requests: int, shard_cost: float = 1.0) -> float:
    """T_s = K·C̄: K requests one by one, each rebuilds a shard."""
    _least("requests", requests, 0)
    return requests * shard_cost


def concurrent_time(requests: int, shards: int, shard_cost: float = 1.0) -> float:
    """T_c = S·C̄·(1 − (1 − 1/S)^K): K requests in a batch, each in a shard drawn for itself."""
    _least("requests", requests, 0)
    _least("shards", shards, 1)
    return shards * shard_cost * (1 - (1 - 1 / shards) ** requests)


def storage_full() -> float:
    """γ_f = 1: the server keeps every client's parameters of every round."""
    return 1.0


def storage_sharded(shards: int) -> float:
    """γ_s = S: each shard's server keeps its own."""
    _least("shards", shards, 1)
    return float(shards)


def storage_coded(shards: int, clients: int, wrong: float) -> tuple[float, float]:
    """S ≤ γ_c ≤ (1 − 2μ)·C, the bounds of the coded scheme; μ is the share of wrong slices.

    The upper end is Singleton's: a slice must tell S blocks from C points of which 2μC are spent on errors. Counted
    at the server alone; what all holders keep together is `total_growth`.
    """
    _least("shards", shards, 1)
    if not 0 <= wrong < 0.5:
        raise SettingError("wrong", wrong, "from 0 up to, not including, ½")
    upper = (1 - 2 * wrong) * clients
    if shards > upper + 1e-9:
        raise SettingError("shards", shards, f"at most (1 − 2μ)·C = {upper:g}, or nothing can be decoded")
    return float(shards), upper


def throughput_coded(shards: int, clients: int, constant: float = 1.0) -> float:
    """λ_c = S / O(C² log² C log log C). The O hides a `constant`: only ratios of two λ_c say anything."""
    _least("shards", shards, 1)
    if clients < 3:
        raise SettingError("clients", clients, "3 or more, for log log C to be positive")
    return shards / (constant * clients**2 * log(clients) ** 2 * log(log(clients)))


# --- as it is -------------------------------------------------------------------------------------------------------


def total_growth(holders: int, needed: int) -> float:
    """n/k: what all holders keep together, over what was to be kept, when any k of n slices suffice.

    The paper's code has k = S of n = C, so while the server saves, the federation keeps C/S times as much.
    """
    _least("needed", needed, 1)
    _least("holders", holders, needed)
    return holders / needed


def paper_sequential_sum(requests: int, shards: int, shard_cost: float = 1.0) -> float:
    """T_s with the coefficient the paper leaves out: S·C̄·Σ_b b·C(K, b)·(1/S)^b·(1 − 1/S)^(K−b) = K·C̄."""
    _least("shards", shards, 1)
    p = 1 / shards
    terms = (b * comb(requests, b) * p**b * (1 - p) ** (requests - b) for b in range(requests + 1))
    return shards * shard_cost * sum(terms)


def requests_in_shard(requests: int, shard: int, clients: int) -> list[float]:
    """P(k of the K requests are in a shard of M), k = 0…K: hypergeometric, for nobody asks to be forgotten twice."""
    _least("shard", shard, 0)
    _least("clients", clients, max(shard, requests))
    every = comb(clients, requests)
    return [comb(shard, k) * comb(clients - shard, requests - k) / every for k in range(requests + 1)]


def shards_hit(requests: int, sizes: Sequence[int]) -> float:
    """Expected number of different shards among K requests drawn without replacement: Σ_s 1 − C(C−M_s, K)/C(C, K)."""
    clients = sum(sizes)
    return sum(1 - requests_in_shard(requests, size, clients)[0] for size in sizes)


def restart_share(size: int, participants: int, rounds: int, leavers: int = 1, draw: Draw = "round") -> float:
    """E[(G − r₀)/G]: what forgetting `leavers` of a shard of M at once costs, in C̄.

    A round has none of k leavers with chance q = C(M−k, m)/C(M, m). Rounds drawn each for themselves: a round's part
    is trained again if any leaver was drawn by then, so the share is (1/G)·Σ_{r=1…G} (1 − q^r). Drawn once a stage:
    1 − q. A shard that nobody is left in costs nothing.
    """
    _least("rounds", rounds, 1)
    _least("participants", participants, 1)
    _least("leavers", leavers, 0)
    _least("size", size, leavers)
    if leavers == size:
        return 0.0
    m = min(participants, size)
    q = comb(size - leavers, m) / comb(size, m)
    if draw == "stage":
        return 1 - q
    return sum(1 - q**r for r in range(1, rounds + 1)) / rounds


def one_by_one(size: int, participants: int, rounds: int, leavers: int, draw: Draw = "round") -> float:
    """Forgetting `leavers` of a shard one after another: Σ_i E_i, with M − i clients when the i-th asks.

    Those who stay take the place of those who went, so each next leaver is likelier to have been drawn early.
    """
    _least("size", size, leavers)
    return sum(restart_share(size - i, participants, rounds, 1, draw) for i in range(leavers))


def spread(requests: int, sizes: Sequence[int], pattern: Pattern) -> list[int]:
    """How many requests each shard gets: `even` deals them out in turn, `adapt` fills one shard after another."""
    if requests > sum(sizes):
        raise SettingError("requests", requests, f"at most the number of clients, {sum(sizes)}")
    counts = [0] * len(sizes)
    if pattern == "adapt":
        for shard, size in enumerate(sizes):
            counts[shard] = min(size, requests - sum(counts))
        return counts
    if pattern != "even":
        raise SettingError("pattern", pattern, "'even' or 'adapt'; 'random' has no one spread")
    while sum(counts) < requests:
        for shard, size in enumerate(sizes):
            if counts[shard] < size and sum(counts) < requests:
                counts[shard] += 1
    return counts


def expected_cost(
    requests: int,
    sizes: Sequence[int],
    participants: int,
    rounds: int,
    *,
    timing: Timing,
    pattern: Pattern = "random",
    draw: Draw = "round",
) -> float:
    """The corrected T_s and T_c, in C̄: exact forgetting of K different clients of shards of these sizes.

    `random`: Σ_s Σ_k P(k of K in shard s)·cost(k); `even` and `adapt`: Σ_s cost(k_s). The cost of k in one shard is
    `restart_share` for a batch and `one_by_one` in sequence.
    """
    if timing not in get_args(Timing):
        raise SettingError("timing", timing, "'sequential' or 'concurrent'")
    price = restart_share if timing == "concurrent" else _in_sequence

    def cost(size: int, leavers: int) -> float:
        return price(size, participants, rounds, leavers, draw) if leavers else 0.0

    if pattern != "random":
        return sum(cost(size, k) for size, k in zip(sizes, spread(requests, sizes, pattern), strict=True))
    total = 0.0
    for size in sizes:
        chances = requests_in_shard(requests, size, sum(sizes))
        total += sum(p * cost(size, k) for k, p in enumerate(chances[: size + 1]))
    return total


def _in_sequence(size: int, participants: int, rounds: int, leavers: int, draw: Draw) -> float:
    return one_by_one(size, participants, rounds, leavers, draw)


@dataclass(frozen=True)
class Curve:
    """Cost over K, in C̄: by the paper's formula, which knows no pattern, and by the corrected sum."""

    timing: Timing
    pattern: Pattern
    requests: tuple[int, ...]
    paper: tuple[float, ...]
    corrected: tuple[float, ...]


def curves(
    requests: Sequence[int],
    sizes: Sequence[int],
    participants: int,
    rounds: int,
    draw: Draw = "round",
    patterns: Sequence[Pattern] = ("even", "adapt"),
) -> tuple[Curve, ...]:
    """K against cost, sequential and concurrent, each pattern: all a plot needs."""
    found = []
    for timing in get_args(Timing):
        for pattern in patterns:
            paper = (
                [sequential_time(k) for k in requests]
                if timing == "sequential"
                else [concurrent_time(k, len(sizes)) for k in requests]
            )
            corrected = [
                expected_cost(k, sizes, participants, rounds, timing=timing, pattern=pattern, draw=draw)
                for k in requests
            ]
            found.append(Curve(timing, pattern, tuple(requests), tuple(paper), tuple(corrected)))
    return tuple(found)


def _least(name: str, value: int, least: int) -> None:
    if value < least:
        raise SettingError(name, value, f"{least} or more")
