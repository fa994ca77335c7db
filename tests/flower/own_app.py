"""A Flower app somebody might have: least squares by gradient descent in its own ClientApp, FedAdam on the server.

What makes it able to forget is marked; the documentation shows these very lines, and a test counts them.
"""

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam

from fedforget.flower import Unlearning, enable_unlearning  # + forget

# --- client_app.py

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


client = enable_unlearning(client)  # + forget

# --- server_app.py

server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    initial = ArrayRecord({"w": Array(np.zeros(3, np.float32))})
    strategy = Unlearning(lambda: FedAdam(eta=0.1), context, clients=6, deterministic=True)  # + forget
    result = strategy.start(grid=grid, initial_arrays=initial, num_rounds=4, train_config=ConfigRecord({"lr": 0.05}))
    print(result)  # noqa: T201
