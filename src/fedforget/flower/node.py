"""The node's side: keep slices around any ClientApp, and the ready one that trains our tasks."""

from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from ..engines.flower_node import Node, federation_folder, slice_folder
from ..engines.flower_wire import opened
from ..engines.local import LocalCohort, numerics
from ..errors import DataError, SettingError
from ..examples import Examples
from ..storage.directory import DirectoryStore
from ..storage.disk import Disk
from ..workspace import FederationSettings
from ..workspace.tasks import build, seat_names
from .task import read_task, write_upload


def enable_unlearning(app: ClientApp) -> ClientApp:
    """The same app, on a node that keeps, returns and deletes sealed slices under its node-config's `slice-dir`."""
    outer = ClientApp()

    def serve(message: Message, context: Context) -> Message:
        if opened(message.content) is None:
            return app(message, context)  # a plain Flower message: nothing of ours is in it
        folder, disk = federation_folder(slice_folder(context), message), Disk()
        return Node(folder, disk, DirectoryStore(folder / "slices", disk)).serve(message, context, app)

    outer.train()(serve)
    outer.query("fedforget")(serve)
    outer.query()(app)
    outer.evaluate()(app)
    return outer


def client_app() -> ClientApp:
    """The ready ClientApp: trains the task the server names, on this node's share of it."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return Message(_fit(message.content, context), reply_to=message)

    return enable_unlearning(app)


def _fit(content: RecordDict, context: Context) -> RecordDict:
    task, settings = read_task(content)
    mine = _own_name(context, settings)
    if mine not in ("", task.client):
        raise SettingError("client", task.client, f"this node's own, {mine}")
    data = context.node_config.get("data")
    world = build(settings, Path(str(data)) if data else None)
    own = context.node_config.get("examples")
    examples = _read_examples(Path(str(own))) if own else world.examples[task.client]
    results = list(LocalCohort(world.learner, {task.client: examples}).fit([task]))
    if not results:
        raise DataError(task.client, "examples to train on", "none", "give this node data, or let its client leave")
    (result,) = results
    return write_upload(result, numerics(world.learner))


def _own_name(context: Context, settings: FederationSettings) -> str:
    """The client this node is by its own configuration."""
    named = str(context.node_config.get("client", ""))
    at = int(context.node_config.get("partition-id", -1))
    names = seat_names(settings)
    return named or (names[at] if 0 <= at < len(names) else "")


def _read_examples(path: Path) -> Examples:
    """A site's own examples: an .npz file with `x` and `y`."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return Examples(found["x"], found["y"])
    except (OSError, ValueError, KeyError) as fault:
        raise DataError(
            path, "an .npz file with x and y", str(fault), "name it as `examples` in the node-config"
        ) from fault
