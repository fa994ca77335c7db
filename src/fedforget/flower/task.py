"""Tasks and uploads of the ready app, as Flower's records. The numbers travel as the model's own bytes."""

from collections.abc import Callable

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
        fields = {
            "settings": text,
            "place": list(task.place),
            "client": task.client,
            "params": task.params.to_bytes(),
            "epochs": task.epochs,
            "seed": task.seed,
            "solver": task.solver,
        }
        return RecordDict({TASK: ConfigRecord(fields)})  # type: ignore[arg-type]

    return write


def read_task(config: ConfigRecord) -> FitTask:
    params = Params.from_bytes(config["params"], "the task's model")  # type: ignore[arg-type]
    place = Place(*config["place"])  # type: ignore[misc]
    return FitTask(place, config["client"], params, config["epochs"], config["seed"], config["solver"])  # type: ignore[arg-type]


def read_upload(task: FitTask, content: RecordDict, _: float) -> FitResult:
    upload = content[UPLOAD]
    if not isinstance(upload, ConfigRecord):
        raise Damaged(f"the upload of {task.client}", "a record of it", type(upload).__name__)
    params = Params.from_bytes(upload["params"], f"the upload of {task.client}")  # type: ignore[arg-type]
    return FitResult(task.place, task.client, params, int(upload["examples"]), float(upload["seconds"]))  # type: ignore[arg-type]
