"""A Flower app of one's own, with FedAdam, gains forgetting in a few lines: exact, its moments included."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg, FedAvgM, FedMedian, FedProx, FedYogi, Strategy

from fedforget.engines.flower_strategy import Alone, StrategyMerge, StrategyTalk, step, to_arrays, to_params
from fedforget.errors import Damaged, FedForgetError, NotTrained, SettingError, UpdateRefused
from fedforget.federation import FitTask, Place, Upload
from fedforget.flower import Unlearning, enable_unlearning
from fedforget.flower.strategy import own_task
from fedforget.params import Params
from fedforget.workspace import Workspace
from flower_twin import Twin, federation
from flower_worlds import OWN, ZERO, adam, client_app, never_joined

CLIENTS, ROUNDS = 6, 4
ADAM = (adam, "FedAdam")
STOCK: list[tuple[Callable[[], Strategy], str]] = [
    ADAM,
    (FedAvg, "FedAvg"),
    (lambda: FedProx(proximal_mu=0.1), "FedProx"),
    (lambda: FedAvgM(server_learning_rate=0.5, server_momentum=0.9), "FedAvgM"),
    (lambda: FedYogi(eta=0.1), "FedYogi"),
    (FedMedian, "FedMedian"),
]


@pytest.fixture
def grid(tmp_path: Path) -> Twin:
    found = federation(tmp_path, client_app.app, CLIENTS)
    for number, node in enumerate(found.nodes.values()):
        node.config["partition-id"] = number
    return found


@pytest.fixture
def go(grid: Twin, tmp_path: Path) -> Callable[..., Any]:
    """One `flwr run` of the server app."""

    def submit(make: Callable[[], Strategy] = ADAM[0], rounds: int = ROUNDS, **config: Any) -> Any:
        wrapper = {"clients": CLIENTS, "participants": 2, "deterministic": True} | config.pop("wrapper", {})
        usual = {"workspace": str(tmp_path / "W"), "wait": 0.2, "deadline": 60.0}
        context = Context(1, 0, {}, RecordDict(), {**usual, **config})
        wrapped = Unlearning(make, context, **wrapper)
        initial = ArrayRecord({"w": Array(config.get("initial", np.zeros(3, np.float32)))})
        seen: list[int] = []

        def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord:
            seen.append(round)
            return MetricRecord({"norm": float(np.linalg.norm(arrays["w"].numpy()))})

        result = wrapped.start(grid, initial, rounds, train_config=ConfigRecord({"lr": 0.05}), evaluate_fn=evaluate)
        assert seen == [0, rounds]
        return result

    return submit


def opened(tmp_path: Path, name: str = "W") -> Workspace:
    return Workspace.open(tmp_path / name, task=own_task(ZERO, deterministic=True))


def rows(tmp_path: Path, name: str = "W") -> dict[Place, tuple[str, tuple[str, ...]]]:
    """Every round in force: the model it ended in, and who was in it."""
    with opened(tmp_path, name) as space:
        return {place: (row.model_digest, row.roster) for place, row in space.ledger.rounds().items()}


def late_comer(tmp_path: Path) -> tuple[str, int]:
    """Somebody who first takes part after the first round, so that the strategy has a past to be given back."""
    for client in (f"client-{i:03d}" for i in range(CLIENTS)):
        first = min((p.round for p, (_, roster) in rows(tmp_path).items() if client in roster), default=0)
        if first > 0:
            return client, first
    raise AssertionError("everybody was there at once")


@pytest.mark.parametrize(("make", "name"), STOCK, ids=[name for _, name in STOCK])
def test_forgetting_gives_back_the_strategys_state_and_ends_in_the_run_the_leaver_never_joined(
    make: Callable[[], Strategy], name: str, go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    go(make)
    client, first = late_comer(tmp_path)
    before = rows(tmp_path)
    result = go(make, forget=client, verify=True)
    after = rows(tmp_path)
    assert not [p for p, (_, roster) in after.items() if client in roster]
    assert [p for p in before if before[p] != after[p]]
    assert all(before[p] == after[p] for p in before if p.round < first)
    with opened(tmp_path) as space:
        assert space.ledger.requests()[-1].body["outcome"]["guarantee"]["grade"] == "X1"
        world = never_joined(space, make)
    assert world == {p: digest for p, (digest, _) in after.items()}
    assert result.arrays["w"].numpy().shape == (3,)


def test_a_forget_that_was_interrupted_goes_on_with_the_moments_it_had(
    go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    go()
    client, _ = late_comer(tmp_path)
    pushed, left = grid.push_messages, iter(range(4))

    def push(messages: Any) -> Any:
        if next(left, None) is None:
            raise ConnectionError("the SuperLink is gone")
        return pushed(messages)

    grid.push_messages = push  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        go(forget=client)
    grid.push_messages = pushed  # type: ignore[method-assign]
    go(forget=client)  # the same run again: goes on, and asks for nothing twice
    with opened(tmp_path) as space:
        assert never_joined(space, ADAM[0]) == {p: digest for p, (digest, _) in rows(tmp_path).items()}
        assert [r.state for r in space.ledger.requests()] == ["executed"]


def test_training_that_was_interrupted_goes_on_with_the_moments_it_had(
    go: Callable[..., Any], grid: Twin, tmp_path: Path
) -> None:
    go()
    whole = rows(tmp_path)
    pushed, left = grid.push_messages, iter(range(3))

    def push(messages: Any) -> Any:
        if next(left, None) is None:
            raise ConnectionError("the SuperLink is gone")
        return pushed(messages)

    grid.push_messages = push  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        go(workspace=str(tmp_path / "V"))
    grid.push_messages = pushed  # type: ignore[method-assign]
    result = go(workspace=str(tmp_path / "V"))
    assert rows(tmp_path, "V") == whole
    assert set(result.train_metrics_clientapp) == {3, 4}
    assert {"shard-0.loss", "shard-1.loss"} <= set(result.train_metrics_clientapp[4])


def test_a_client_app_nobody_vouches_for_gets_x2(go: Callable[..., Any], tmp_path: Path) -> None:
    go(wrapper={"deterministic": False})
    go(wrapper={"deterministic": False}, forget="client-001")
    with opened(tmp_path) as space:
        guarantee = space.ledger.requests()[-1].body["outcome"]["guarantee"]
    assert guarantee["grade"] == "X2"
    assert "not known to be deterministic" in guarantee["conditions"][-1]


def test_what_cannot_be_is_refused_before_anything_happens(go: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(NotTrained):
        go(forget="client-001", workspace=str(tmp_path / "V"))
    go()
    with pytest.raises(SettingError, match="num_rounds"):
        go(rounds=7)
    go(initial=np.ones(3, np.float32))  # what it began with is kept; a model initialised anew changes nothing
    kept = tmp_path / "W" / "initial.safetensors"
    kept.write_bytes(Params.of({"w": np.ones(3, np.float32)}).to_bytes())
    with pytest.raises(Damaged):
        go()
    kept.unlink()
    with pytest.raises(Damaged):
        go()
    with pytest.raises(FedForgetError, match="absolute"):
        go(workspace="here")


def test_a_past_that_leads_elsewhere_is_damage() -> None:
    merge = StrategyMerge(ADAM[0], {}, lambda _: (), lambda _: ZERO)
    other = Upload("a", Params.of({"w": np.ones(3, np.float32)}), 5)
    model = merge(Place(0, 0, 0), ZERO, (other,))
    with pytest.raises(Damaged, match="strategy"):  # it is not the model its past leads to
        merge(Place(0, 0, 3), Params.of({"w": np.full(3, 7, np.float32)}), (other,))
    assert merge(Place(0, 0, 0), ZERO, (other,)) == model  # a round again: from a fresh strategy


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"arrays": to_arrays(ZERO)}),
        RecordDict({"arrays": to_arrays(ZERO), "metrics": MetricRecord({"loss": 1.0})}),
    ],
)
def test_an_upload_that_is_none_is_refused(content: RecordDict) -> None:
    with pytest.raises(UpdateRefused):
        StrategyTalk(FedAvg, {}).read(FitTask(Place(0, 0, 0), "a", ZERO, 1, 0), content, 0.0)


def test_counters_come_back_as_counters_and_tensors_of_others_are_refused() -> None:
    like = Params.of({"w": np.zeros(2, np.float32), "n": np.array(3, np.int64)})
    mixed = ArrayRecord({"w": Array(np.ones(2)), "n": Array(np.array(2.6))})
    assert to_params(mixed, like).arrays()["n"] == 3
    assert to_params(mixed, like).layout == like.layout
    with pytest.raises(SettingError, match="arrays"):
        to_params(ArrayRecord({"v": Array(np.ones(2))}), like)


def test_a_strategy_sees_no_real_nodes() -> None:
    alone = Alone(3)
    assert list(alone.get_node_ids()) == [1, 2, 3]
    for call in (alone.push_messages, alone.pull_messages, alone.send_and_receive, alone.set_run, alone.create_message):
        with pytest.raises(SettingError):
            call([])
    with pytest.raises(SettingError):
        _ = alone.run
    with pytest.raises(SettingError, match="fraction_train"):
        step(FedAvg(fraction_train=0.0), Place(0, 0, 0), ZERO, (), {})


def test_evaluation_is_the_applications_own_affair(tmp_path: Path) -> None:
    plain = ClientApp()

    @plain.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return Message(RecordDict({"m": MetricRecord({"x": 1})}), reply_to=message)

    grid = federation(tmp_path, enable_unlearning(plain), 1)
    (reply,) = grid.send_and_receive([Message(RecordDict(), 100, "evaluate")])
    assert reply.content["m"]["x"] == 1


def test_ten_lines_are_enough_and_the_documentation_shows_them() -> None:
    written = "\n".join(path.read_text() for path in [*OWN.rglob("*.py"), OWN / "pyproject.toml"])
    marked = [line.partition("  # forgets")[0].strip() for line in written.splitlines() if "  # forgets" in line]
    page = (Path(__file__).parents[2] / "docs" / "flower.md").read_text()
    shown = [line[1:].strip() for block in re.findall(r"```diff\n(.*?)```", page, re.S) for line in block.splitlines()]
    assert len(marked) <= 10
    assert {line.replace(", deterministic=True", "") for line in marked} <= set(shown)
