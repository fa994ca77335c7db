"""Ask every node who it is, and log it."""

import json
import logging
import time

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    while len(nodes := sorted(grid.get_node_ids())) < int(context.run_config["nodes"]):
        time.sleep(1)
    record = RecordDict({"greeting": ConfigRecord({"text": context.run_config["greeting"]})})
    for reply in grid.send_and_receive([Message(record, node, "query") for node in nodes], timeout=60):
        what = {"error": reply.error.code} if reply.has_error() else dict(reply.content["said"])
        logging.getLogger("flwr").info("ANSWER %s", json.dumps(what))
