"""A cell is named by everything it depends on, and both worlds hold the same clients."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.datasets.partition import client_names
from fedforget.errors import SettingError
from fedforget.experiments.case import Case, Federation, Probe, Request

FEDERATION = Federation("digits", clients=24, participants=8, shards=4, rounds=3, epochs=2)
NAMES = client_names(24)
seeds = st.integers(0, 2**32)


@given(seeds)
def test_drawn_once_both_worlds_have_the_same_clients_and_all_of_them_take_part(seed: int) -> None:
    federation = replace(FEDERATION, seed=seed)
    sharded, whole = federation.plan(NAMES), replace(federation, sharded=False).plan(NAMES)
    assert sharded.clients == whole.clients == whole.cohort(0, 0, 2)
    assert sorted(c for s in range(4) for c in sharded.cohort(0, s, 1)) == list(whole.clients)
    assert {len(sharded.present(0, s)) for s in range(4)} == {2}


@given(seeds)
def test_drawn_each_round_everybody_is_enrolled_and_as_many_take_part(seed: int) -> None:
    federation = replace(FEDERATION, seed=seed, draw="round")
    assert federation.plan(NAMES).clients == NAMES
    assert sum(len(federation.plan(NAMES).cohort(0, s, 0)) for s in range(4)) == 8
    assert len(replace(federation, sharded=False).plan(NAMES).cohort(0, 0, 0)) == 8


@given(seeds, st.sampled_from(["FR", "SE", "exact"]), st.sampled_from([(1, "adapt"), (4, "even"), (2, "adapt")]))
def test_every_method_forgets_the_same_clients_in_both_worlds(seed: int, method: str, asked: tuple[int, str]) -> None:
    federation = replace(FEDERATION, seed=seed)
    count, pattern = asked
    request = Request(method, count, pattern)  # type: ignore[arg-type]
    leavers = request.leavers(federation, NAMES)
    assert leavers == replace(request, method="FE").leavers(replace(federation, sharded=False), NAMES)
    assert len(leavers) == count
    assert len({federation.plan(NAMES).shard_of(c) for c in leavers}) == (count if pattern == "even" else 1)


def test_whatever_a_result_depends_on_is_in_the_digest() -> None:
    case = Case(FEDERATION, Probe(), Request("SE"))
    others = [
        replace(case, federation=replace(FEDERATION, **{name: value}))
        for name, value in {
            "seed": 1,
            "rounds": 4,
            "lr": 0.1,
            "sharded": False,
            "draw": "round",
            "task": "mnist",
        }.items()
    ]
    others += [replace(case, probe=Probe(test=5)), replace(case, request=Request("SE", ratio=3.0)), case.training]
    assert len({c.digest for c in [case, *others]}) == 1 + len(others)
    assert case.digest == Case(FEDERATION, Probe(), Request("SE")).digest


def test_names_lead_to_files_of_their_own() -> None:
    cases = [
        Case(replace(FEDERATION, sharded=sharded, seed=seed, draw=draw), Probe(), request)
        for sharded in (True, False)
        for seed in (0, 1)
        for draw in ("once", "round")
        for request in (None, Request("SE"), Request("FR"), Request("SE", 2, "even"), Request("SE", 2, "adapt"))
    ]
    assert len({c.name for c in cases}) == len(cases)


@pytest.mark.parametrize(
    "given",
    [
        {"partition": "by-class"},
        {"draw": "stage"},
        {"participants": 6},
        {"participants": 0},
        {"participants": 28},
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        replace(FEDERATION, **given)  # type: ignore[arg-type]


def test_a_probe_counts_from_nought() -> None:
    with pytest.raises(SettingError):
        Probe(test=-1)
