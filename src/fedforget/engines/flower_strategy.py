"""Any stock strategy of Flower as the way a shard's uploads become its next model.

A strategy may keep state of its own (the moments of FedAdam), and forgetting has to bring back the state it had before
the round it restarts from. That state is a function of the rounds before, so it is made again from their recorded
uploads: no strategy has to be understood, pickled or changed for it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from ..errors import Damaged, SettingError, UpdateRefused
from ..federation import FitResult, FitTask, Place, Upload
from ..params import Params
from ..plan import Cell

MakeStrategy = Callable[[], Strategy]


class Alone(Grid):
    """What a strategy sees of the nodes: as many as it wants, for who takes part is the plan's to draw."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get_node_ids(self) -> Iterable[int]:
        return list(range(1, self.count + 1))

    def _refuse(self) -> Any:
        raise SettingError("strategy", "one that sends messages itself", "one that sends them by configure_train")

    def set_run(self, run: Any) -> None:
        self._refuse()

    @property
    def run(self) -> Any:
        return self._refuse()

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise self._refuse()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise self._refuse()

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise self._refuse()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise self._refuse()


def to_arrays(params: Params) -> ArrayRecord:
    return ArrayRecord({name: Array(np.array(value)) for name, value in params.arrays().items()})


def to_params(arrays: ArrayRecord, like: Params | None = None) -> Params:
    """As one float32 vector; what counts in `like` is rounded back to a count."""
    found = {name: array.numpy() for name, array in arrays.items()}
    if like is None:
        return Params.of(found)
    if set(found) != set(like.layout.names):
        raise SettingError("arrays", sorted(found), f"those of the model, {sorted(like.layout.names)}")
    kinds = dict(zip(like.layout.names, like.layout.dtypes, strict=True))
    return Params.of({n: found[n] if k == "float32" else np.rint(found[n]).astype(k) for n, k in kinds.items()})


def configured(strategy: Strategy, place: Place, start: Params, config: Mapping[str, Any]) -> RecordDict:
    """What the strategy would send a client for this round; the model before it is noted by the strategy as always."""
    few = max(2, *(int(getattr(strategy, name, 0)) for name in ("min_available_nodes", "min_train_nodes")))
    record = ConfigRecord(dict(config))
    messages = list(strategy.configure_train(place.round + 1, to_arrays(start), record, Alone(few)))
    if not messages:
        raise SettingError("fraction_train", getattr(strategy, "fraction_train", None), "above 0: nobody would train")
    return messages[0].content


def weight_key(strategy: Strategy) -> str:
    return str(getattr(strategy, "weighted_by_key", "num-examples"))


def step(
    strategy: Strategy, place: Place, start: Params, uploads: Iterable[Upload], config: Mapping[str, Any]
) -> Params:
    """The model the strategy makes of a round's uploads, in the order of the clients' names."""
    configured(strategy, place, start, config)
    replies = []
    for upload in uploads:
        metrics = MetricRecord({weight_key(strategy): upload.examples})
        content = RecordDict({"arrays": to_arrays(upload.params), "metrics": metrics})
        replies.append(Message(content, 1, "train"))
    arrays, _ = strategy.aggregate_train(place.round + 1, replies)
    return start if arrays is None else to_params(arrays, start)


@dataclass
class StrategyMerge:
    """A strategy a shard of a stage; one that has not seen the rounds before is shown them first.

    `recorded` gives a round's uploads as they are in force, `begin` the model a shard started the stage from.
    """

    make: MakeStrategy
    config: Mapping[str, Any]
    recorded: Callable[[Place], tuple[Upload, ...]]
    begin: Callable[[Cell], Params]
    _live: dict[Cell, tuple[Strategy, int, str]] = field(default_factory=dict)

    def __call__(self, place: Place, start: Params, uploads: tuple[Upload, ...]) -> Params:
        strategy, next_round, digest = self._live.pop(place.cell, (None, -1, ""))
        if strategy is None or (next_round, digest) != (place.round, start.digest):
            strategy = self._shown(place, start)
        model = step(strategy, place, start, uploads, self.config)
        self._live[place.cell] = (strategy, place.round + 1, model.digest)
        return model

    def _shown(self, place: Place, start: Params) -> Strategy:
        """A new strategy, brought by the recorded rounds to where it was before this one."""
        strategy = self.make()
        if not place.round:
            return strategy
        model = self.begin(place.cell)
        for round in range(place.round):
            earlier = place._replace(round=round)
            uploads = self.recorded(earlier)
            model = step(strategy, earlier, model, uploads, self.config) if uploads else model
        if model.digest != start.digest:
            raise Damaged(
                f"the strategy before {place}", f"model {start.digest[:12]}", f"{model.digest[:12]} when replayed"
            )
        return strategy


@dataclass
class StrategyTalk:
    """Tasks and uploads as the application's own records: what the strategy configures, what the client returns."""

    make: MakeStrategy
    config: Mapping[str, Any]
    metrics: dict[Place, list[tuple[int, dict[str, Any]]]] = field(default_factory=dict)

    @cached_property
    def _one(self) -> Strategy:
        """Asked only what it would send."""
        return self.make()

    def write(self, task: FitTask) -> RecordDict:
        content = configured(self._one, task.place, task.params, self.config)
        for record in content.config_records.values():
            record.setdefault("seed", task.seed % (1 << 31))  # whoever draws by it ends in the same bits again
        return content

    def read(self, task: FitTask, content: RecordDict, seconds: float) -> FitResult:
        arrays, metrics = list(content.array_records.values()), list(content.metric_records.values())
        if len(arrays) != 1 or len(metrics) != 1:
            raise UpdateRefused(task.client, "it is not one ArrayRecord and one MetricRecord")
        key = weight_key(self._one)
        if key not in metrics[0]:
            raise UpdateRefused(task.client, f"its metrics have no {key!r}")
        examples = int(metrics[0][key])  # type: ignore[arg-type]
        self.metrics.setdefault(task.place, []).append((examples, dict(metrics[0])))
        return FitResult(task.place, task.client, to_params(arrays[0], task.params), examples, seconds)

    def summary(self) -> dict[int, MetricRecord]:
        """Each round's metrics, a shard's clients weighed by their examples: for people, never for the model."""
        found: dict[int, MetricRecord] = {}
        for place, rows in sorted(self.metrics.items()):
            record = found.setdefault(place.round + 1, MetricRecord())
            total = sum(weight for weight, _ in rows)
            for name in sorted(rows[0][1]):
                values = [(w, row[name]) for w, row in rows if isinstance(row.get(name), int | float)]
                if len(values) == len(rows) and total:
                    record[f"shard-{place.shard}.{name}"] = sum(w * float(v) for w, v in values) / total
        return found
