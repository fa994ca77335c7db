"""Tasks and uploads of the ready app, as Flower's records. The numbers travel as the model's own bytes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from ..errors import Damaged
from ..federation import FitResult, FitTask, Place
from ..params import Params
from ..storage.ledger import Ledger
from ..workspace import FederationSettings
from ..workspace.tasks import NODES

TASK, UPLOAD = "fedforget.task", "fedforget.upload"


@dataclass(frozen=True)
class Talk:
    """Tasks and uploads of one federation: its settings go along, for a node knows nothing of it.

    Whose arithmetic an upload was made by is noted in the ledger: a replay by another may end in other bits.
    """

    settings: FederationSettings
    ledger: Ledger

    def write(self, task: FitTask) -> RecordDict:
        record = ConfigRecord()
        record["settings"], record["client"], record["solver"] = self._text, task.client, task.solver
        record["place"], record["epochs"], record["seed"] = list(task.place), task.epochs, task.seed
        record["params"] = task.params.to_bytes()
        return RecordDict({TASK: record})

    def read(self, task: FitTask, content: RecordDict, _: float) -> FitResult:
        row: dict[str, Any] = dict(_config(content, UPLOAD))
        self.ledger.note(NODES, f"{task.client}: {row['numerics']}")
        params = Params.from_bytes(row["params"], f"the upload of {task.client}")
        return FitResult(task.place, task.client, params, int(row["examples"]), float(row["seconds"]))

    @cached_property
    def _text(self) -> str:
        return self.settings.to_toml()


def read_task(content: RecordDict) -> tuple[FitTask, FederationSettings]:
    row: dict[str, Any] = dict(_config(content, TASK))
    params = Params.from_bytes(row["params"], "the task's model")
    task = FitTask(Place(*row["place"]), row["client"], params, row["epochs"], row["seed"], row["solver"])
    return task, FederationSettings.from_toml(row["settings"])


def write_upload(result: FitResult, arithmetic: str) -> RecordDict:
    record = ConfigRecord()
    record["params"], record["examples"] = result.params.to_bytes(), result.examples
    record["seconds"], record["numerics"] = result.seconds, arithmetic
    return RecordDict({UPLOAD: record})


def _config(content: RecordDict, name: str) -> ConfigRecord:
    record = content.get(name)
    if not isinstance(record, ConfigRecord):
        raise Damaged(f"the record {name}", "a record of settings", type(record).__name__)
    return record
