"""`times`: stock FedAvg and the same with unlearning, turn by turn. `recall`: one recall alone, for its bytes."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedforget.engines.flower import GridStore
from fedforget.flower import Unlearning
from fedforget.flower.verbs import nodes_of
from fedforget.workspace import Workspace

app = ServerApp()


@dataclass
class Timed:
    """A grid that notes when training was asked for."""

    grid: Grid
    asked: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.grid, name)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = list(messages)
        if any(m.metadata.message_type == MessageType.TRAIN for m in sent):
            self.asked.append(time.perf_counter())
        return self.grid.push_messages(sent)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Flower's own, and Flower's own waiting: only the moment is noted."""
        sent = list(messages)
        if any(m.metadata.message_type == MessageType.TRAIN for m in sent):
            self.asked.append(time.perf_counter())
        return self.grid.send_and_receive(sent, timeout=timeout)

    def rounds(self, end: float) -> list[float]:
        """From asking to asking: with whatever the server does of a round before the next."""
        stops = [*self.asked[1:], end]
        return [after - before for before, after in zip(self.asked, stops, strict=True)]


@dataclass(frozen=True)
class Bench:
    grid: Grid
    context: Context

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.context.run_config)

    def strategy(self) -> FedAvg:
        nodes = int(self.config["clients"])
        return FedAvg(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)

    def initial(self) -> ArrayRecord:
        return ArrayRecord({"w": Array(np.zeros(int(self.config["parameters"]), np.float32))})

    def unlearning(self, space: str) -> Unlearning:
        clients = int(self.config["clients"])
        return Unlearning(
            self.strategy, self.context, space, clients, shards=1, holders=clients, threshold=clients // 2
        )

    def train(self, space: str) -> list[float]:
        timed = Timed(self.grid)
        self.unlearning(space).start(timed, self.initial(), int(self.config["rounds"]))
        return timed.rounds(time.perf_counter())

    def stock(self) -> list[float]:
        timed = Timed(self.grid)
        self.strategy().start(timed, self.initial(), int(self.config["rounds"]))
        return timed.rounds(time.perf_counter())

    def recall(self, space: str) -> dict[str, Any]:
        """Every round's uploads in one exchange, and as many bytes from the same nodes in the plain."""
        unlearning, rounds = self.unlearning(space), int(self.config["rounds"])
        with (
            unlearning._opened(Path(space), self.initial(), rounds) as opened,
            nodes_of(opened, self.grid, {"wait": 300.0}) as store,
        ):
            began = time.perf_counter()
            sent = fetch(replace(opened, store=store), store)
            seconds = time.perf_counter() - began
            asked = [self.plainly(store.post.peers[client].node, count) for client, count in sent.items()]
            began = time.perf_counter()
            list(self.grid.send_and_receive(asked, timeout=300))
            plain = time.perf_counter() - began
        return {"seconds": seconds, "plain": plain, "bytes": sum(sent.values()), "nodes": len(asked)}

    def plainly(self, node: int, count: int) -> Message:
        return Message(RecordDict({"config": ConfigRecord({"count": count})}), node, "query")


def fetch(space: Workspace, store: GridStore) -> Counter[str]:
    """k slices of every round, as a forget that needs all of them would; how many bytes came from whom."""
    state = space.state()
    state.archive.ahead(state.history)
    sent: Counter[str] = Counter()
    for key, blob in store._fetched.items():
        sent[key.holder] += len(blob or b"")
    return +sent


@app.main()
def main(grid: Grid, context: Context) -> None:
    bench, found = Bench(grid, context), {}
    space = str(bench.config["workspace"])
    while len(list(grid.get_node_ids())) < int(bench.config["clients"]):
        time.sleep(0.5)
    if bench.config["what"] == "recall":
        with Workspace.open(space) as opened, nodes_of(opened, grid, {"wait": 300.0}) as store:
            found["bytes"] = fetch(replace(opened, store=store), store).total()
    else:
        for turn in range(int(bench.config["turns"])):
            found.setdefault("stock", []).append(bench.stock())
            found.setdefault("unlearning", []).append(bench.train(f"{space}-{turn}"))
            found.setdefault("recalls", []).append(bench.recall(f"{space}-{turn}"))
    Path(str(bench.config["report"])).write_text(json.dumps(found))
