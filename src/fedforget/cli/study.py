"""Commands for those who compare: the demo, what storage costs, the data sets."""

from pathlib import Path
from typing import Annotated

import typer

from .. import present
from ..workspace import FederationSettings
from .base import AsJson, Data, Seed, answer, app, progress_bar


@app.command()
def storage(
    parameters: Annotated[int, typer.Option(help="Parameters of the model; the paper's CNN on MNIST by default.")] = (
        857_738
    ),
    layers: Annotated[int, typer.Option(help="Tensors of the model.")] = 8,
    clients: Annotated[int, typer.Option()] = 100,
    shards: Annotated[int, typer.Option()] = 4,
    participants: Annotated[int, typer.Option(help="A shard a round, drawn once.")] = 5,
    rounds: Annotated[int, typer.Option()] = 30,
    wrong: Annotated[float, typer.Option(help="μ: the share of holders that may be wrong.")] = 0.1,
    rate: Annotated[float, typer.Option(help="Bits a second, for the paper's communication time.")] = 1e8,
    as_json: AsJson = False,
) -> None:
    """What each way of keeping the history costs. The server, a holder, all together, the wire.

    Example: fedforget storage --clients 100 --shards 4 --wrong 0.1
    """
    from ..workspace.storage import storage_report

    report = storage_report(parameters, layers, clients, shards, participants, rounds, wrong, rate)
    answer(report, as_json, present.storage)


@app.command()
def demo(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="Where the demo leaves its workspace.")] = Path("demo"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Forget one client five ways, side by side. On bundled data, in under a minute.

    Example: fedforget demo
    """
    from ..demo import run

    with progress_bar() as bar:
        report = run(path, FederationSettings(seed=seed), bar)
    answer(report, as_json, present.demo)


@app.command("data")
def data_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="digits | mnist | fashion-mnist | cifar10 | shakespeare")],
    download: Annotated[bool, typer.Option("--download", help="Fetch it, going on where it stopped.")] = False,
    show: Annotated[bool, typer.Option("--show", help="How it is dealt to the clients, as a plot.")] = False,
    partition: Annotated[str, typer.Option(help="iid | by-class | buckets (text)")] = "iid",
    clients: Annotated[int, typer.Option(help="To how many clients it is dealt.")] = 100,
    seed: Seed = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Look at a data set, or fetch it.

    Example: fedforget data mnist --show --partition by-class --clients 20
    """
    from ..workspace import datasets

    with progress_bar() as bar:
        report = datasets.describe(name, data, partition if show else "", clients, seed, download, bar)
    answer(report, as_json, present.dataset)
