"""What every SuperNode runs: training its share of the task, and keeping its slices."""

from fedforget.flower import client_app

app = client_app()
