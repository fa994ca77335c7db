"""The same with Flower's own commands: TLS and registered keys, nodes that die and come back, and the command line."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aftermath import gone, processes_of

from fedforget.errors import ProcessFailed
from fedforget.processes import LocalFederation, up
from fedforget.processes.certificates import make_node_key

pytest.importorskip("flwr")
pytestmark = pytest.mark.flower

HELLO = Path(__file__).parent / "hello"


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    with up(2, tls=True, folder=tmp_path_factory.mktemp("federation")) as found:
        yield found


def answers(federation: LocalFederation, nodes: int, **config: Any) -> list[dict[str, Any]]:
    run = federation.run(HELLO, {"nodes": nodes, **config}).expect()
    return [json.loads(line.partition("ANSWER ")[2]) for line in run.said.splitlines() if "ANSWER " in line]


def test_an_app_reaches_every_node_and_its_config(federation: LocalFederation) -> None:
    greeting = """it's "me", ünd 日本"""
    found = answers(federation, 2, greeting=greeting)
    assert sorted(a["client"] for a in found) == ["client-000", "client-001"]
    for answer in found:
        node = federation.nodes[answer["client"]]
        assert answer["partition-id"] == node.index
        assert answer["slice-dir"] == str(node.slices)
        assert answer["text"] == greeting


def test_a_node_whose_key_nobody_registered_does_not_come_online(federation: LocalFederation) -> None:
    stranger = federation.nodes["client-001"]
    federation.stop(stranger.name)
    kept = stranger.key.read_bytes()
    make_node_key(stranger.key)
    try:
        with pytest.raises(ProcessFailed, match=r"client-001 ended with code"):
            federation.start(stranger.name)
    finally:
        stranger.key.write_bytes(kept)
    federation.start(stranger.name)


def test_what_died_comes_back_under_the_same_id_and_a_superlink_with_its_runs(federation: LocalFederation) -> None:
    ids = dict(federation.online)
    federation.kill_superlink()
    federation.start_superlink()
    federation.kill("client-000")
    federation.start("client-000")
    assert federation.online == ids
    assert len(answers(federation, 2)) == 2


def test_a_run_that_fails_is_told_with_its_log(federation: LocalFederation) -> None:
    run = federation.run(HELLO, {"nodes": "not a number"})
    assert not run.completed
    with pytest.raises(ProcessFailed, match="not a number"):
        run.expect()


def test_a_key_unregistered_is_refused_from_then_on(federation: LocalFederation) -> None:
    federation.stop("client-001")
    federation.unregister("client-001")
    with pytest.raises(ProcessFailed, match=r"client-001 ended with code"):
        federation.start("client-001")
    assert [a["client"] for a in answers(federation, 1)] == ["client-000"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_command_stops_all_it_started(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "fedforget", "federation", "up", "--nodes", "1", "--dir", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        text = process.stdout.readline()
        while not text.endswith("\n}\n"):
            text += process.stdout.readline()
        report = json.loads(text)
        assert list(report["nodes"]) == ["client-000"]
        mine = processes_of(tmp_path)
        assert len(mine) >= 2
        process.send_signal(how)
        assert process.wait(30) == (-how if how == signal.SIGKILL else 0)
    assert all(gone(pid) for pid in mine)
    assert processes_of(tmp_path) == []
