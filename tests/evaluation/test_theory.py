"""The formulas, against counting every case, against SciPy, and against drawing from the real plan."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from fedforget.errors import SettingError
from fedforget.evaluation import theory
from fedforget.evaluation.simulation import concurrent_rounds, pick, sequential_rounds, simulate
from fedforget.plan import Plan

# --- as in the paper ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("requests", "shards"), [(1, 4), (3, 4), (5, 3), (4, 1), (0, 2)])
def test_concurrent_time_is_the_mean_number_of_shards_over_every_assignment(requests, shards):
    hit = [len(set(where)) for where in product(range(shards), repeat=requests)]
    assert theory.concurrent_time(requests, shards) == pytest.approx(np.mean(hit))
    assert theory.concurrent_time(requests, shards, 7.0) == pytest.approx(7 * np.mean(hit))


@given(st.integers(0, 60), st.integers(1, 12))
def test_the_sum_with_its_binomial_coefficient_is_k(requests, shards):
    assert theory.paper_sequential_sum(requests, shards) == pytest.approx(requests)
    assert theory.sequential_time(requests, 2.0) == 2 * requests
    assert theory.concurrent_time(requests, shards) <= min(requests, shards) + 1e-9


def test_storage_and_throughput_of_the_papers_setting():
    assert (theory.storage_full(), theory.storage_sharded(4)) == (1, 4)
    assert theory.storage_coded(4, 100, 0.1) == (4, pytest.approx(80))
    assert theory.storage_coded(4, 4, 0.0) == (4, 4)
    assert theory.total_growth(100, 4) == 25, "what all clients keep together grows C/S times"
    # 4 / (100² · ln² 100 · ln ln 100), worked out apart: ln 100 = 4.605170, its square 21.207592, ln ln 100 = 1.527180
    assert theory.throughput_coded(4, 100) == pytest.approx(4 / (1e4 * 21.207592 * 1.527180), rel=1e-6)
    assert theory.throughput_coded(8, 100) / theory.throughput_coded(4, 100) == pytest.approx(2)
    assert theory.throughput_coded(4, 100, constant=3) == pytest.approx(theory.throughput_coded(4, 100) / 3)


# --- as it is -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("requests", "sizes"), [(1, (3, 3)), (3, (2, 3, 1)), (4, (4, 4)), (6, (3, 3))])
def test_shards_hit_is_the_mean_over_every_set_of_clients(requests, sizes):
    where = np.repeat(range(len(sizes)), sizes)
    hit = [len({where[c] for c in chosen}) for chosen in combinations(range(sum(sizes)), requests)]
    assert theory.shards_hit(requests, sizes) == pytest.approx(np.mean(hit))


def test_without_replacement_hits_more_shards_than_the_paper_says_and_as_many_in_the_limit():
    assert theory.shards_hit(8, [25] * 4) > theory.concurrent_time(8, 4)
    assert theory.shards_hit(8, [2500] * 4) == pytest.approx(theory.concurrent_time(8, 4), abs=1e-3)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(12, 40))
def test_requests_in_a_shard_are_hypergeometric(requests, size, clients):
    found = theory.requests_in_shard(requests, size, clients)
    assert np.allclose(found, hypergeom(clients, size, requests).pmf(range(requests + 1)))


@pytest.mark.parametrize(("size", "m", "leavers"), [(4, 2, 1), (4, 2, 2), (4, 1, 3), (3, 3, 1), (4, 2, 0), (3, 9, 2)])
@pytest.mark.parametrize("draw", ["round", "stage"])
def test_restart_share_is_the_mean_over_every_way_of_drawing_cohorts(size, m, leavers, draw):
    rounds, gone = 3, set(range(leavers))
    cohorts = list(combinations(range(size), min(m, size)))
    costs = []
    for drawn in product(cohorts, repeat=rounds) if draw == "round" else [(c,) * rounds for c in cohorts]:
        first = next((r for r, cohort in enumerate(drawn) if gone & set(cohort)), rounds)
        costs.append((rounds - first) / rounds)
    assert theory.restart_share(size, m, rounds, leavers, draw) == pytest.approx(np.mean(costs))


def test_one_by_one_is_the_mean_over_every_order_of_the_hashes():
    """A stage-long draw: the cohort is the m of the order's first who are still there."""
    size, m, leavers = 4, 2, 3
    costs = []
    for order in permutations(range(size)):
        there, cost = list(order), 0
        for leaver in range(leavers):
            cost += leaver in there[:m] and len(there) > 1
            there.remove(leaver)
        costs.append(cost)
    assert theory.one_by_one(size, m, 5, leavers, "stage") == pytest.approx(np.mean(costs))


def test_when_everybody_takes_part_from_the_start_the_papers_sums_come_out():
    sizes, everybody = [25] * 4, 25
    for k in (1, 3, 9):
        cost = {
            timing: theory.expected_cost(k, sizes, everybody, 30, timing=timing)
            for timing in ("sequential", "concurrent")
        }
        assert cost["sequential"] == pytest.approx(theory.sequential_time(k))
        assert cost["concurrent"] == pytest.approx(theory.shards_hit(k, sizes))


def test_who_is_last_costs_nothing():
    assert theory.restart_share(3, 3, 10, leavers=3) == 0
    assert theory.one_by_one(2, 2, 10, leavers=2) == 1, "the first of two rebuilds the shard, the second ends it"


def test_spread():
    assert theory.spread(5, [3, 3], "even") == [3, 2]
    assert theory.spread(5, [1, 9], "even") == [1, 4]
    assert theory.spread(5, [3, 3], "adapt") == [3, 2]
    assert theory.spread(4, [3, 3], "adapt") == [3, 1]
    assert theory.spread(0, [3], "adapt") == [0]


def test_curves_of_the_papers_setting_when_all_take_part():
    found = {(c.timing, c.pattern): c for c in theory.curves([1, 2, 4, 8], [25] * 4, 25, 30)}
    assert len(found) == 4
    assert found["sequential", "even"].corrected == pytest.approx((1, 2, 4, 8))
    assert found["sequential", "adapt"].corrected == pytest.approx((1, 2, 4, 8))
    assert found["concurrent", "even"].corrected == pytest.approx((1, 2, 4, 4))
    assert found["concurrent", "adapt"].corrected == pytest.approx((1, 1, 1, 1))
    assert found["concurrent", "adapt"].paper == pytest.approx([theory.concurrent_time(k, 4) for k in (1, 2, 4, 8)])
    assert found["sequential", "even"].paper == (1, 2, 4, 8)


@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.sampled_from(["round", "stage"]))
def test_laws(requests, shards, m, rounds, draw):
    sizes = [3] * shards
    requests = min(requests, sum(sizes))
    for pattern in ("even", "adapt", "random"):
        batch = theory.expected_cost(requests, sizes, m, rounds, timing="concurrent", pattern=pattern, draw=draw)
        line = theory.expected_cost(requests, sizes, m, rounds, timing="sequential", pattern=pattern, draw=draw)
        assert -1e-9 <= batch <= min(requests, shards) + 1e-9
        assert line <= requests + 1e-9
        if 3 * shards > requests and pattern == "even" and requests <= shards:
            assert batch == pytest.approx(line), "one request a shard: a batch is no cheaper"


# --- drawn from the real plan -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["sequential", "concurrent"])
@pytest.mark.parametrize("pattern", ["even", "adapt", "random"])
@pytest.mark.parametrize("draw", ["round", "stage"])
def test_the_real_plan_agrees(timing, pattern, draw):
    found = simulate(5, 24, 3, 2, 6, timing=timing, pattern=pattern, draw=draw, trials=300, seed=1)
    known = theory.expected_cost(5, [8] * 3, 2, 6, timing=timing, pattern=pattern, draw=draw)
    assert found.error > 0
    assert abs(found.mean - known) < 4 * found.error


def test_costs_of_one_plan_by_hand():
    plan = Plan.of(["a", "b", "c", "d"], shards=2, rounds=4, participants=1, seed=3)
    shard = plan.shard_of("a")
    mate = next(c for c in plan.present(0, shard) if c != "a")
    first = next((r for r in range(4) if plan.cohort(0, shard, r) == ("a",)), 4)
    assert concurrent_rounds(plan, ["a"]) == 4 - first
    assert concurrent_rounds(plan, ["a", mate]) == 0, "the shard ends"
    assert sequential_rounds(plan, ["a", mate]) == 4 - first


@pytest.mark.parametrize("pattern", ["even", "adapt", "random"])
def test_leavers_are_different_and_spread_as_said(pattern):
    plan = Plan.of([f"c{i}" for i in range(12)], shards=3, rounds=1)
    leavers = pick(plan, 5, pattern, 0)
    assert len(set(leavers)) == 5
    counts = sorted(np.bincount([plan.shard_of(c) for c in leavers], minlength=3))
    assert counts == {"even": [1, 2, 2], "adapt": [0, 1, 4]}.get(pattern, counts)


@pytest.mark.slow
@pytest.mark.parametrize("timing", ["sequential", "concurrent"])
@pytest.mark.parametrize("pattern", ["even", "adapt", "random"])
def test_the_papers_setting_agrees(timing, pattern):
    found = simulate(12, 100, 4, 5, 30, timing=timing, pattern=pattern, trials=400, seed=2)
    known = theory.expected_cost(12, [25] * 4, 5, 30, timing=timing, pattern=pattern)
    assert abs(found.mean - known) < 4 * found.error


def test_refusals():
    for bad in (
        lambda: theory.sequential_time(-1),
        lambda: theory.concurrent_time(1, 0),
        lambda: theory.storage_coded(60, 100, 0.3),
        lambda: theory.storage_coded(4, 100, 0.5),
        lambda: theory.throughput_coded(1, 2),
        lambda: theory.total_growth(3, 4),
        lambda: theory.requests_in_shard(5, 2, 4),
        lambda: theory.restart_share(2, 1, 3, leavers=3),
        lambda: theory.spread(7, [3, 3], "even"),
        lambda: theory.spread(1, [3, 3], "random"),
        lambda: theory.expected_cost(1, [3], 1, 1, timing="never"),
        lambda: simulate(1, 5, 2, 1, 1, timing="sequential"),
        lambda: simulate(1, 4, 2, 1, 1, timing="sequential", trials=1),
    ):
        with pytest.raises(SettingError):
            bad()
