"""What can go wrong between real processes does: nothing is lost, no model is wrong, the log names node and cause."""

import os
import re
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

# Three of four take part in a round, and any slice brings a record back. By this seed client-000 takes part from round
# 1 on: to forget it, what the others sent in round 0 is recalled.
SIZE = {"clients": 4, "shards": 1, "participants": 3, "rounds": 2, "epochs": 1}
CONFIG = {**SIZE, "holders": 4, "threshold": 1, "seed": 4}
LEAVER = "client-000"
# Where somebody does not answer: long enough for those who do. A loaded machine wants more.
DEADLINE = float(os.environ.get("FEDFORGET_TEST_DEADLINE", "45"))
SILENCE = rf"no answer within {DEADLINE:g} seconds|dead or away|crashed|got lost"
Digests = tuple[Mapping[str, str], Mapping[str, str]]


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
def right(tmp_path_factory: pytest.TempPathFactory) -> Digests:
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


# --- training -----------------------------------------------------------------------------------------------

BATTERED = {"raise": "client-001", "crash": "client-002", "kill-training": "client-003"}


@pytest.fixture(scope="module")
def battered(processes: Trials) -> tuple[Run, Any]:
    """A round in which one ClientApp raises, one crashes, and one SuperNode is killed; and its report."""
    processes.heal()
    for fault, victim in BATTERED.items():
        processes.fault(victim, f"{fault} {processes.pid(victim)}")
    space = processes.new()
    run = processes.run(verb(space, "train", participants=0, rounds=1, deadline=DEADLINE)).expect()
    processes.federation.kill(BATTERED["kill-training"])
    return run, found(space, "train")


@pytest.mark.parametrize(
    ("fault", "cause"), [("raise", "was told to raise"), ("crash", SILENCE), ("kill-training", SILENCE)]
)
def test_who_fails_in_training_is_named_with_the_cause(
    processes: Trials, battered: tuple[Run, Any], fault: str, cause: str
) -> None:
    assert any(re.search(cause, line) for line in named(processes, battered[0], BATTERED[fault]))


def test_who_fails_in_training_is_left_out_and_the_others_go_on(battered: tuple[Run, Any], tmp_path: Path) -> None:
    answer = battered[1]
    assert {client for client, _, _ in answer["absent"]} == set(BATTERED.values())
    lost = [(client, place(where)) for client, where, _ in answer["absent"]]
    config = {**CONFIG, "participants": 0, "rounds": 1}
    assert answer["digests"] == locally(tmp_path / "w", config, lost=lost)[0]


def test_a_superlink_killed_in_training_is_gone_on_from(processes: Trials, right: Digests) -> None:
    space = processes.new()
    run = processes.submit(verb(space, "train"))
    run.wait_for("fedforget: training 1/2")
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


def check_forgot(space: Path, right: Digests, folder: Path) -> None:
    """The models are those of the local engine, without whom the report says was lost; nobody was, where it says X1."""
    answer = found(space, "forget")
    lost = [LOST.search(condition) for condition in answer["guarantee"]["conditions"]]
    assert all(lost), answer["guarantee"]
    assert answer["guarantee"]["grade"] == ("X2" if lost else "X1")
    assert answer["before"] == right[0]
    places = [(one[1], place(one[2])) for one in lost if one]
    expected = locally(folder / "w", CONFIG, {"client": LEAVER}, lost_forgetting=places) if places else right
    assert answer["after"] == expected[1]


LOST = re.compile(r"(client-\d+) was lost in (stage \d+, shard \d+, round \d+)")


def test_a_superlink_killed_in_forgetting_is_gone_on_from(
    processes: Trials, trained: Path, right: Digests, tmp_path: Path
) -> None:
    run = processes.submit(verb(trained, "forget", client=LEAVER))
    run.wait_for("fedforget: forgetting 0/1")
    processes.federation.kill_superlink()
    processes.federation.start_superlink()
    assert not run.wait().completed
    processes.run(verb(trained, "forget"), verb(trained, "verify")).expect()
    assert found(trained, "forget")["guarantee"]["grade"] == "X1"
    check_forgot(trained, right, tmp_path)


def test_holders_that_die_or_come_too_late_are_erasures_and_one_that_lies_is_seen_through(
    processes: Trials, trained: Path, right: Digests, tmp_path: Path
) -> None:
    """They are asked in this order; the fourth is honest, and that is enough."""
    killed, late, wrong, _ = holders(trained)
    processes.fault(killed, f"kill {processes.pid(killed)}")
    processes.fault(late, f"late {DEADLINE + 10:g}")
    processes.fault(wrong, "wrong")
    run = processes.run(verb(trained, "forget", client=LEAVER, deadline=DEADLINE)).expect()
    processes.federation.kill(killed)
    assert any(re.search(SILENCE, line) for line in named(processes, run, killed))
    assert any(f"no answer within {DEADLINE:g} seconds" in line for line in named(processes, run, late))
    assert re.search(rf"fedforget: .*at {wrong} is altered", run.said)
    check_forgot(trained, right, tmp_path)


def test_empty_hands_older_generations_and_echoes_are_refused(
    processes: Trials, trained: Path, right: Digests, tmp_path: Path
) -> None:
    """One holder gives nothing, one an older slice, one its last reply again; and every message is sent twice."""
    none, older, stale, _ = holders(trained)
    processes.fault(none, "none")
    processes.fault(older, "older")
    processes.fault(stale, "stale")
    another = next(processes.federation.nodes[older].slices.rglob("round-0001*.slice"))
    (processes.federation.nodes[older].folder / "old.slice").write_bytes(another.read_bytes())
    run = processes.run(verb(trained, "forget", client=LEAVER, replay=True)).expect()
    assert re.search(rf"fedforget: .*at {none} is missing", run.said)
    assert re.search(rf"fedforget: .*at {older} is altered", run.said)
    assert any("replayed" in line for line in named(processes, run, stale))
    assert re.search(r"REPLAYED to node \d+: .*was seen before: a replay", run.said)
    check_forgot(trained, right, tmp_path)


# --- strangers ----------------------------------------------------------------------------------------------


def test_a_stranger_does_not_get_in_and_the_run_goes_on(
    processes: Trials, trained: Path, right: Digests, tmp_path: Path
) -> None:
    fed, name = processes.federation, "client-003"
    fed.stop(name)
    kept = fed.nodes[name].key.read_bytes()
    make_node_key(fed.nodes[name].key)
    try:
        with pytest.raises(ProcessFailed, match=f"{name} ended with code") as refused:
            fed.start(name)
    finally:
        fed.nodes[name].key.write_bytes(kept)
    assert "could not establish a connection to the SuperLink" in "\n".join(refused.value.tail)
    fed.start(name)
    processes.run(verb(trained, "forget", client=LEAVER)).expect()
    check_forgot(trained, right, tmp_path)


def place(words: str) -> Place:
    """'stage 0, shard 1, round 2'."""
    return Place(*map(int, re.findall(r"\d+", words)))
