"""The ready app through Flower's own messages: the bits of the local engine, few messages, losses survived."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import numpy as np
from flwr.app import Context, Message, RecordDict

from fedforget.engines.flower_wire import opened
from fedforget.errors import FedForgetError, SettingError, Unfinished
from fedforget.flower import client_app, run
from fedforget.flower.verbs import settings_of
from fedforget.params import Params
from fedforget.workspace import Workspace
from flower_twin import Twin, federation, keyed

SMALL = {"clients": 6, "shards": 2, "participants": 2, "rounds": 3, "epochs": 1, "task": "digits"}


@pytest.fixture
def grid(tmp_path: Path) -> Twin:
    return federation(tmp_path, client_app(), 6)


@pytest.fixture
def go(grid: Twin, tmp_path: Path) -> Callable[..., Any]:
    """`flwr run` with these settings."""

    def submit(action: str, **config: Any) -> Any:
        usual = {"workspace": str(tmp_path / "W"), "wait": 0.2, "deadline": 60.0, **SMALL}
        return run(grid, Context(1, 0, {}, RecordDict(), {**usual, "action": action, **config}))

    return submit


def local(path: Path, *leavers: str, method: str = "exact", **config: Any) -> tuple[dict[str, str], dict[str, str]]:
    with Workspace.init(path, settings_of({**SMALL, **config})) as space:
        trained = dict(space.train().digests)
        return trained, dict(space.forget(leavers, method).after) if leavers else {}


def seen(grid: Twin) -> int:
    return sum(len(node.seen) for node in grid.nodes.values())


FEDERATIONS: dict[str, dict[str, Any]] = {
    "shard": {},
    "cross": {"layout": "cross", "seed": 1},
    "server": {"layout": "server", "seed": 2},
    "lean": {"history": "lean", "seed": 3, "participants": 0},
    "mlp": {"learner": "mlp", "hidden": 4, "partition": "by-class", "seed": 4},
}


@pytest.mark.parametrize("name", FEDERATIONS)
def test_models_are_those_of_the_local_engine_bit_for_bit(name: str, go: Callable[..., Any], tmp_path: Path) -> None:
    config = FEDERATIONS[name]
    trained, after = local(tmp_path / "L", "client-001", **config)
    assert go("train", **config).digests == trained
    assert go("plan", client="client-001").guarantee.grade == "X1"
    report = go("forget", client="client-001")
    assert (report.before, report.after, report.slices_owed) == (trained, after, 0)
    assert report.guarantee.grade == "X1"
    assert go("verify", **{"never-joined": True}).passed
    assert go("status").forgotten == ("client-001",)


@pytest.mark.parametrize("method", ["clean", "calibrated"])
def test_the_other_ways_of_forgetting_too(method: str, go: Callable[..., Any], tmp_path: Path) -> None:
    trained, after = local(tmp_path / "L", "client-001", method=method)
    assert go("train").digests == trained
    assert go("forget", client="client-001", method=method).after == after


def test_a_round_costs_a_message_a_participant_and_a_recall_one_a_holder(
    go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    go("train")
    rounds, participants, greetings, closings = 3, 4, 6, 6
    assert seen(grid) == greetings + rounds * participants + closings
    for node in grid.nodes.values():
        node.seen.clear()
    report = go("forget", client="client-001", method="calibrated")
    kinds = [str((opened(m.content) or ({}, b""))[0]["kind"]) for n in grid.nodes.values() for m in n.seen]
    assert kinds.count("hello") == 6
    recalls, mends, deletes, closes = 2, 2, 3 + 3, 6
    assert len(kinds) - 6 <= recalls + mends + deletes + closes + report.rounds * participants // 2


def test_nothing_of_the_leaver_can_be_read_or_opened_anywhere(
    go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    """Every byte that was on the wire, on a node or at the server: no plaintext, and no key is left that opens it."""
    go("train")
    go("forget", client="client-001")
    with Workspace.open(tmp_path / "W") as space:
        models = [*space.state().served().values()]
    with Workspace.init(tmp_path / "L", settings_of(SMALL)) as space:
        uploads: list[Params] = []
        space.train()
        state = space.state()
        for place, row in state.rows.items():
            if "client-001" in row.roster:
                uploads += [u.params for u in state.past.uploads(place) if u.client == "client-001"]
    assert uploads
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "L" not in path.parts}
    haystack = [*grid.wire, *files.values()]
    for params in [*uploads, *models]:
        needle = bytes(params.body)[:64]
        assert np.frombuffer(needle, "<f4").any()
        assert not any(needle in hay for hay in haystack)
    assert not [path for path in files if "session" in path.name]  # no key of either side is left


def test_what_waits_for_a_node_that_is_away_is_delivered_when_it_is_back(
    go: Callable[..., Any], grid: Twin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid.nodes[102].online = False
    report = go("train")
    assert report.absent
    assert {client for client, _, _ in report.absent} == {"client-002"}
    waiting = list((tmp_path / "W" / "holders" / "client-002").rglob("*.slice"))
    assert waiting
    grid.nodes[102].online = True
    assert go("verify").passed
    assert not list((tmp_path / "W" / "holders" / "client-002").rglob("*.slice"))
    kept = list((tmp_path / "node-2").rglob("*.slice"))
    assert len(kept) == len(waiting)


@pytest.mark.parametrize("ending", ["train", "forget"])
def test_a_run_that_dies_goes_on_with_the_next_and_ends_in_the_same_bits(
    ending: str, go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    trained, after = local(tmp_path / "L", "client-001")
    if ending == "forget":
        go("train")
    pushed, left = grid.push_messages, iter(range(3))

    def push(messages: Any) -> Any:
        if next(left, None) is None:
            raise ConnectionError("the SuperLink is gone")
        return pushed(messages)

    grid.push_messages = push  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        go(ending, **({"client": "client-001"} if ending == "forget" else {}))
    grid.push_messages = pushed  # type: ignore[method-assign]
    if ending == "train":
        report = go("train")
        assert report.resumed_at == 4
        assert report.digests == trained
    else:
        with pytest.raises(Unfinished):
            go("train")
    assert go("forget", client="client-001").after == after
    assert go("verify").passed


@pytest.mark.parametrize("fault", ["dead", "wrong", "none"])
def test_slices_that_are_lost_wrong_or_gone_are_erasures(
    fault: str, go: Callable[..., Any], grid: Twin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One holder in three of a shard fails while two are enough."""
    caplog.set_level(logging.INFO, "fedforget")
    trained, after = local(tmp_path / "L", "client-001", method="calibrated", threshold=2, holders=3)
    assert go("train", threshold=2, holders=3).digests == trained
    mine = Workspace.open(tmp_path / "W")
    shard = mine.state().plan.shard_of("client-001")
    victim = next(c for c in mine.state().plan.clients if mine.state().plan.shard_of(c) == shard and c != "client-001")
    mine.close()
    number = int(victim[-3:])
    slices = list((tmp_path / f"node-{number}").rglob("*.slice"))
    assert slices
    for path in slices:
        if fault == "wrong":
            path.write_bytes(bytes(len(path.read_bytes())))
        elif fault == "none":
            path.unlink()
    grid.nodes[100 + number].online = fault != "dead"
    report = go("forget", client="client-001", method="calibrated")
    if fault == "dead":
        assert report.after != report.before
    else:
        assert report.after == after
    said = {"dead": f"{victim} is away", "wrong": f"at {victim} is altered", "none": f"at {victim} is missing"}[fault]
    assert any(said in line for line in caplog.messages)


def test_a_node_that_returns_under_another_id_is_the_same_client_and_a_stranger_is_not(
    go: Callable[..., Any], grid: Twin, caplog: pytest.LogCaptureFixture
) -> None:
    go("train")
    grid.nodes[777] = grid.nodes.pop(103)
    assert go("verify").passed
    grid.nodes[777].key = keyed(99)  # another machine that says it is client-003
    with pytest.raises(FedForgetError):
        go("forget", client="client-077")
    assert any("refused node 777" in m and "bound to another key" in m for m in caplog.messages)
    go("release", client="client-003")
    assert go("verify").passed
    grid.nodes[777].config["client"] = "client-004"
    go("verify")
    assert any("its key is bound to client-003" in m for m in caplog.messages)
    grid.nodes[778] = grid.nodes.pop(100)
    grid.nodes[778].key, grid.nodes[778].config["client"] = keyed(100), "mallory"
    go("status")
    go("forget", client="client-001")
    assert any("as mallory: nobody of that name is enrolled" in m for m in caplog.messages)


def test_in_simulation_the_partition_says_who_a_node_is(go: Callable[..., Any], grid: Twin, tmp_path: Path) -> None:
    for run_number in range(2):
        for i, node in enumerate(grid.nodes.values()):
            node.key = bytes([run_number, i] * 16)  # random and new each run
            node.config = {"partition-id": i, "num-partitions": 6}
            node.run_config = {"slice-dir": str(tmp_path / "simulated")}
        if run_number == 0:
            assert go("train").absent == ()
        else:
            assert go("forget", client="client-001").guarantee.grade == "X1"
    assert len(list((tmp_path / "simulated").iterdir())) == 6


def test_a_node_repaired_away_holds_nothing_that_counts(go: Callable[..., Any], grid: Twin, tmp_path: Path) -> None:
    go("train", threshold=1, holders=2)
    grid.nodes[102].online = False
    report = go("repair", gone="client-002")
    assert report.lost == ()
    assert report.repaired
    with Workspace.open(tmp_path / "W") as space:
        assert not [b for b in space.state().bundles if "client-002" in b.holders]
    assert go("verify").passed


def test_a_report_is_written_also_of_a_failure(go: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    with pytest.raises(SettingError):
        go("juggle", report=str(path))
    assert json.loads(path.read_text())["exit_code"] == 2
    go("train", report=str(path))
    assert json.loads(path.read_text())["rounds"] == 6
    with pytest.raises(SettingError, match="absolute"):
        go("status", workspace="W")
    with pytest.raises(FedForgetError, match="no workspace"):
        go("status", workspace=str(path))


def test_a_site_trains_on_examples_of_its_own(go: Callable[..., Any], grid: Twin, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    own = tmp_path / "own.npz"
    np.savez(own, x=rng.normal(size=(9, 64)).astype(np.float32), y=rng.integers(0, 10, 9))
    for node in grid.nodes.values():
        node.config["examples"] = str(own)
    go("train")
    with Workspace.open(tmp_path / "W") as space:
        assert {n for row in space.state().rows.values() for n in row.examples} == {9}
    grid.nodes[100].config["examples"] = str(tmp_path / "none.npz")
    assert go("train", workspace=str(tmp_path / "V"), participants=0).absent


def test_a_node_trains_for_nobody_but_itself(
    go: Callable[..., Any], grid: Twin, caplog: pytest.LogCaptureFixture
) -> None:
    """A server may take a node for another client; the node knows who it is."""
    for node in grid.nodes.values():
        node.config["partition-id"] = int(node.config.pop("client")[-3:])
    grid.nodes[100].before = lambda message: _as(
        grid, message, {"client": "client-000"}, greets={"client": "client-005"}
    )
    grid.nodes[105].online = False
    report = go("train", participants=0)
    assert {client for client, _, _ in report.absent} == {"client-000", "client-005"}
    assert any("this node's own, client-000" in line for line in caplog.messages)


def _as(grid: Twin, message: Message, config: dict[str, Any], greets: dict[str, Any]) -> Message:
    """A node that says it is one client when greeted, and is another when it works."""
    node, found = grid.nodes[100], opened(message.content)
    slices = {"slice-dir": node.config["slice-dir"]}
    chosen = greets if found and found[0]["kind"] == "hello" else config
    return node.app(message, Context(1, 100, {**slices, **chosen}, RecordDict(), {}))


def test_a_node_whose_arithmetic_changed_makes_the_outcome_x2(go: Callable[..., Any], tmp_path: Path) -> None:
    go("train")
    with Workspace.open(tmp_path / "W") as space:
        space.ledger.note("numerics of nodes", "client-000: another numpy")
    guarantee = go("forget", client="client-001").guarantee
    assert guarantee.grade == "X2"
    assert "client-000 computed under" in guarantee.conditions[0]
