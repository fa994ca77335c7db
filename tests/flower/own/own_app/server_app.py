"""FedAdam on the server."""

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam

from fedforget.flower import Unlearning  # forgets

server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    initial = ArrayRecord({"w": Array(np.zeros(3, np.float32))})
    strategy = Unlearning(lambda: FedAdam(eta=0.1), context, clients=4, deterministic=True)  # forgets
    result = strategy.start(grid=grid, initial_arrays=initial, num_rounds=4, train_config=ConfigRecord({"lr": 0.05}))
    print(result)  # noqa: T201
