"""The verbs of a federation, one a run: flwr run . -c "action='train' workspace='/srv/federation'"."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedforget.flower import run

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    run(grid, context)
