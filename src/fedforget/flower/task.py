"""Tasks and uploads of the ready app, as Flower's records. The numbers travel as the model's own bytes."""

from collections.abc import Callable
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from ..errors import Damaged
from ..federation import FitResult, FitTask, Place
from ..params import Params
from ..workspace import FederationSettings

TASK, UPLOAD = "fedforget.task", "fedforget.upload"


def writer(settings: FederationSettings) -> Callable[[FitTask], RecordDict]:
    """Tasks of one federation: its settings go along, for a node knows nothing of it."""
    text = settings.to_toml()

    def write(task: FitTask) -> RecordDict:
        record = ConfigRecord()
        record["settings"], record["client"], record["solver"] = text, task.client, task.solver
        record["place"], record["epochs"], record["seed"] = list(task.place), task.epochs, task.seed
        record["params"] = task.params.to_bytes()
        return RecordDict({TASK: record})

    return write


def read_task(content: RecordDict) -> tuple[FitTask, FederationSettings]:
    row: dict[str, Any] = dict(_config(content, TASK))
    params = Params.from_bytes(row["params"], "the task's model")
    task = FitTask(Place(*row["place"]), row["client"], params, row["epochs"], row["seed"], row["solver"])
    return task, FederationSettings.from_toml(row["settings"])


def write_upload(result: FitResult) -> RecordDict:
    record = ConfigRecord()
    record["params"], record["examples"] = result.params.to_bytes(), result.examples
    record["seconds"] = result.seconds
    return RecordDict({UPLOAD: record})


def read_upload(task: FitTask, content: RecordDict, _: float) -> FitResult:
    row: dict[str, Any] = dict(_config(content, UPLOAD))
    params = Params.from_bytes(row["params"], f"the upload of {task.client}")
    return FitResult(task.place, task.client, params, int(row["examples"]), float(row["seconds"]))


def _config(content: RecordDict, name: str) -> ConfigRecord:
    record = content.get(name)
    if not isinstance(record, ConfigRecord):
        raise Damaged(f"the record {name}", "a record of settings", type(record).__name__)
    return record
