"""Least squares by gradient descent."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedforget.flower import enable_unlearning  # forgets

client = ClientApp()


def data(context: Context) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(int(context.node_config["partition-id"]))
    x = rng.normal(size=(20, 3)).astype(np.float32)
    return x, x @ np.array([1.0, -2.0, 0.5], np.float32) + rng.normal(size=20).astype(np.float32)


@client.train()
def train(message: Message, context: Context) -> Message:
    w = message.content["arrays"]["w"].numpy()
    x, y = data(context)
    rng = np.random.default_rng(message.content["config"]["seed"])
    for _ in range(5):
        rows = rng.permutation(len(x))[:10]
        w = (w - 0.05 * x[rows].T @ (x[rows] @ w - y[rows]) / len(rows)).astype(np.float32)
    metrics = MetricRecord({"num-examples": len(x), "loss": float(((x @ w - y) ** 2).mean())})
    arrays = ArrayRecord({"w": Array(w)})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


app = enable_unlearning(client)  # forgets
