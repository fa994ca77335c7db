"""A client that trains for a moment, and gives bytes back when asked for some in the plain."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedforget.flower import enable_unlearning

plain = ClientApp()


@plain.train()
def train(message: Message, context: Context) -> Message:
    w = message.content["arrays"]["w"].numpy()
    rng = np.random.default_rng(int(context.node_config["partition-id"]))
    aim = rng.standard_normal(w.shape, dtype=np.float32)
    for _ in range(20):
        w = w - np.float32(0.1) * (w - aim)
    metrics = MetricRecord({"num-examples": 20})
    return Message(RecordDict({"arrays": ArrayRecord({"w": Array(w)}), "metrics": metrics}), reply_to=message)


@plain.query()
def query(message: Message, context: Context) -> Message:
    """As many bytes as are asked for: a recall without seals, folders or keys."""
    count = int(message.content["config"]["count"])
    found = np.random.default_rng(0).integers(0, 256, count, dtype=np.uint8)
    return Message(RecordDict({"arrays": ArrayRecord({"bytes": Array(found)})}), reply_to=message)


app = enable_unlearning(plain)
