"""What can go wrong between real processes does: nothing is lost, no model is wrong, the log names node and cause."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trials import Trials, locally, losses, report

from fedforget.errors import ProcessFailed
from fedforget.federation import Place
from fedforget.processes import Run
from fedforget.processes.certificates import make_node_key
from fedforget.workspace import Workspace

pytestmark = pytest.mark.flower

# Three of four take part in a round, and any two of four slices bring a record back. By this seed client-000 takes part
# from round 1 on: to forget it, what the others sent in round 0 is recalled.
CONFIG = {
    "clients": 4,
    "shards": 1,
    "participants": 3,
    "rounds": 2,
    "epochs": 1,
    "holders": 4,
    "threshold": 2,
    "seed": 4,
}
LEAVER = "client-000"
DEADLINE = 90.0  # where somebody does not answer: long enough for those who do


@pytest.fixture(autouse=True)
def healthy(processes: Trials) -> Trials:
    processes.heal()
    return processes


@pytest.fixture(scope="module")
def kept(processes: Trials) -> Path:
    """A federation trained to its end, with what its nodes hold."""
    processes.heal()
    space = processes.new()
    processes.run({**CONFIG, "workspace": str(space), "action": "train"}).expect()
    return processes.save(space)


@pytest.fixture
def trained(processes: Trials, kept: Path) -> Path:
    return processes.restore(kept)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What the local engine makes of it: models trained, models after forgetting."""
    return locally(tmp_path_factory.mktemp("local") / "w", CONFIG, {"client": LEAVER})


def verb(space: Path, action: str, **more: Any) -> dict[str, Any]:
    return {**CONFIG, "workspace": str(space), "action": action, "report": f"{space}-{action}.json", **more}


def found(space: Path, action: str) -> Any:
    return report(Path(f"{space}-{action}.json"))


def holders(space: Path) -> tuple[str, ...]:
    """Who keeps the slices of round 0, in the order in which they are asked."""
    with Workspace.open(space) as looked:
        (bundle,) = (b for b in looked.state().history if b.round == 0)
    return bundle.holders


def named(processes: Trials, run: Run, client: str) -> list[str]:
    """The causes the log gives for losing this client, each naming its node."""
    node = processes.federation.nodes[client].registered_as.read_text()
    return [line for line in losses(run) if f"{client} (node {node})" in line]


def await_log(processes: Trials, run: Run, what: str) -> None:
    """Until the run's ServerApp has said it."""
    log, until = processes.federation.log("superlink"), time.monotonic() + 600
    while what not in log.read_text(errors="replace")[processes.mark :]:
        assert time.monotonic() < until, f"{what!r} was never said"
        assert not run.look().over
        time.sleep(0.3)


# --- training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["kill-training", "crash", "raise"])
def test_a_node_lost_in_training_is_left_out_of_its_round(processes: Trials, tmp_path: Path, fault: str) -> None:
    victim, space = "client-002", processes.new()
    processes.fault(victim, f"{fault} {processes.pid(victim)}")
    run = processes.run(verb(space, "train", deadline=DEADLINE)).expect()
    if fault == "kill-training":
        processes.federation.kill(victim)
    answer = found(space, "train")
    assert {client for client, _, _ in answer["absent"]} == {victim}
    causes = " ".join(named(processes, run, victim))
    assert re.search(
        {"raise": "was told to raise"}.get(fault, rf"no answer within {DEADLINE:g}|dead or away|crashed"), causes
    )
    lost = [(victim, place(where)) for _, where, _ in answer["absent"]]
    assert answer["digests"] == locally(tmp_path / "w", CONFIG, lost=lost)[0]


def test_a_superlink_killed_in_training_is_gone_on_from(
    processes: Trials, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    space = processes.new()
    processes.watch()
    run = processes.submit(verb(space, "train"))
    await_log(processes, run, "fedforget: training 1/2")
    processes.federation.kill_superlink()
    processes.federation.start_superlink()
    assert not run.wait().completed
    processes.run(verb(space, "train")).expect()
    answer = found(space, "train")
    assert answer["resumed_at"] == 1
    assert answer["rounds"] == 1
    assert answer["absent"] == []
    assert answer["digests"] == right[0]


# --- forgetting ---------------------------------------------------------------------------------------------


def check_forgot(space: Path, right: tuple[Mapping[str, str], Mapping[str, str]]) -> None:
    answer = found(space, "forget")
    assert answer["guarantee"]["grade"] == "X1"
    assert answer["before"] == right[0]
    assert answer["after"] == right[1]


def test_a_superlink_killed_in_forgetting_is_gone_on_from(
    processes: Trials, trained: Path, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    processes.watch()
    run = processes.submit(verb(trained, "forget", client=LEAVER))
    await_log(processes, run, "fedforget: forgetting 0/1")
    processes.federation.kill_superlink()
    processes.federation.start_superlink()
    assert not run.wait().completed
    processes.run(verb(trained, "forget"), verb(trained, "verify")).expect()
    check_forgot(trained, right)


def test_nodes_that_lie_when_asked_for_slices_are_seen_through(
    processes: Trials, trained: Path, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    """One gives wrong slices, one those of an older generation; two of four are honest, and that is enough."""
    wrong, older = holders(trained)[:2]
    processes.fault(wrong, "wrong")
    processes.fault(older, "older")
    another = next(p for p in processes.federation.nodes[older].slices.rglob("round-0001*.slice"))
    (processes.federation.nodes[older].folder / "old.slice").write_bytes(another.read_bytes())
    run = processes.run(verb(trained, "forget", client=LEAVER)).expect()
    for client in (wrong, older):
        assert re.search(rf"fedforget: .*{client}.* is altered", run.said)
    check_forgot(trained, right)


def test_nodes_that_give_nothing_or_too_late_are_erasures(
    processes: Trials, trained: Path, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    none, late = holders(trained)[:2]
    processes.fault(none, "none")
    processes.fault(late, f"late {DEADLINE + 10}")
    run = processes.run(verb(trained, "forget", client=LEAVER, deadline=DEADLINE))
    assert re.search(rf"fedforget: .*{none}.* is missing", run.said)
    assert any(f"no answer within {DEADLINE:g}" in line for line in named(processes, run, late))
    answer = found(trained, "forget")
    assert answer["before"] == right[0]
    # The late one is busy with what nobody waits for any more, so it may miss training, too; then that is said.
    assert answer["guarantee"]["grade"] == ("X1" if answer["after"] == right[1] else "X2")


def test_a_node_killed_in_recall_is_an_erasure(processes: Trials, trained: Path, tmp_path: Path) -> None:
    victim = holders(trained)[0]
    processes.fault(victim, f"kill {processes.pid(victim)}")
    run = processes.run(verb(trained, "forget", client=LEAVER, deadline=DEADLINE)).expect()
    processes.federation.kill(victim)
    assert named(processes, run, victim)
    answer = found(trained, "forget")
    where = [(victim, Place(0, 0, 1))]
    trained_here, after = locally(tmp_path / "w", CONFIG, {"client": LEAVER}, lost_forgetting=where)
    assert answer["before"] == trained_here
    assert answer["after"] == after
    assert answer["guarantee"]["grade"] == "X2"
    assert any(victim in condition for condition in answer["guarantee"]["conditions"])


# --- strangers and echoes -----------------------------------------------------------------------------------


def test_messages_sent_again_are_refused_by_nodes_and_server(
    processes: Trials, trained: Path, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    stale = holders(trained)[0]
    processes.fault(stale, "stale")
    run = processes.run(verb(trained, "forget", client=LEAVER, replay=True)).expect()
    assert re.search(r"REPLAYED to node \d+: .*was seen before: a replay", run.said)
    assert any("replayed" in line for line in named(processes, run, stale))
    answer = found(trained, "forget")
    assert answer["before"] == right[0]
    assert answer["guarantee"]["grade"] == ("X1" if answer["after"] == right[1] else "X2")


def test_a_stranger_does_not_get_in_and_the_run_goes_on(
    processes: Trials, trained: Path, right: tuple[Mapping[str, str], Mapping[str, str]]
) -> None:
    fed, name = processes.federation, "client-003"
    fed.stop(name)
    kept = fed.nodes[name].key.read_bytes()
    make_node_key(fed.nodes[name].key)
    try:
        with pytest.raises(ProcessFailed, match=f"{name} ended with code"):
            fed.start(name)
    finally:
        fed.nodes[name].key.write_bytes(kept)
    refused = fed.log(name).read_text()
    assert "Failed to activate" in refused or "not" in refused
    fed.start(name)
    processes.run(verb(trained, "forget", client=LEAVER)).expect()
    check_forgot(trained, right)


def place(words: str) -> Place:
    """'stage 0, shard 1, round 2'."""
    return Place(*map(int, re.findall(r"\d+", words)))
