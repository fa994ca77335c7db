"""Several runs of the ready app, one after the other: `steps` is JSON, a list of their configurations.

A step with `wipe` empties the nodes' slice folders named there first: the next federation begins on clean nodes. One
with `replay` sends every message that goes to a node a second time, as somebody who recorded it would.
"""

import json
import logging
import shutil
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from fedforget.flower import run

app = ServerApp()


@dataclass
class Recorded:
    """A grid that delivers each message twice, the second time under an id nobody waits for."""

    grid: Grid

    def __getattr__(self, name: str) -> Any:
        return getattr(self.grid, name)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = list(messages)
        ids = list(self.grid.push_messages(sent))
        again = [Message(copy(m.content), m.metadata.dst_node_id, m.metadata.message_type) for m in sent]
        kinds = [m.content["fedforget"]["kind"] for m in sent]
        second = [m for m, kind in zip(again, kinds, strict=True) if kind == "request"]
        if second:
            answers = {m.metadata.src_node_id: m for m in self.grid.send_and_receive(second, timeout=60)}
            for node, answer in answers.items():
                kind = answer.error.reason if answer.has_error() else answer.content["fedforget"]
                logging.getLogger("flwr").info("REPLAYED to node %d: %s", node, dict(kind))
        return ids


@app.main()
def main(grid: Grid, context: Context) -> None:
    for step in json.loads(str(context.run_config["steps"])):
        for folder in step.pop("wipe", ()):
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir()
        through: Any = Recorded(grid) if step.pop("replay", False) else grid
        run(through, replace(context, run_config=step))
