"""The command line: the workspace's verbs, no logic of its own.

One JSON document on stdout with --json and nothing else there; progress on stderr, and only on a terminal.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from . import __version__, present
from .errors import FedForgetError
from .forgetting import Calibration
from .workspace import FederationSettings, Workspace
from .workspace.progress import Progress, silent
from .workspace.reports import to_json

app = typer.Typer(
    name="fedforget",
    help="Federated learning that can forget a client, and show that it did.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The workspace: one directory, one federation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
Data = Annotated[Path | None, typer.Option("--data", help="Where the data sets lie (else FEDFORGET_DATA).")]
Clients = Annotated[list[str] | None, typer.Option("--client", "-c", help="Who is to be forgotten; may be repeated.")]
MethodName = Annotated[str, typer.Option("--method", "-m", help="exact | clean | calibrated")]
Ratio = Annotated[float, typer.Option("--ratio", help="r: clean and calibrated train this much shorter.")]
Interval = Annotated[int, typer.Option("--interval", help="Calibrate only every such round (Δt).")]
Compat = Annotated[str, typer.Option("--compat", help="paper | released: as the public FedEraser code computes.")]
Length = Annotated[float | None, typer.Option("--length", help="clean: a public constant for every step's length.")]


_INTERRUPTED = 130  # as shells have it: 128 and the number of the signal


def _passphrase() -> str | None:
    return os.environ.get("FEDFORGET_PASSPHRASE") or None


def _open(path: Path, data: Path | None = None) -> Workspace:
    return Workspace.open(path, data=data, passphrase=_passphrase())


def _answer(report: Any, as_json: bool, show: Callable[[Console, Any], None]) -> None:
    if as_json:
        sys.stdout.write(json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n")
    else:
        show(Console(soft_wrap=False), report)


@contextmanager
def _bar() -> Iterator[Progress]:
    """A progress bar on stderr with the time left; nothing where there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"fedforget {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@app.command()
def init(
    path: Folder,
    task: Annotated[str, typer.Option(help="digits | mnist | fashion-mnist | cifar10 | shakespeare")] = "digits",
    learner: Annotated[str, typer.Option(help="softmax | mlp | cnn | nanogpt; else the task's own")] = "",
    clients: Annotated[int, typer.Option(help="How many clients enrol.")] = 100,
    seats: Annotated[int, typer.Option(help="Room for these and those who join at later stages; 0: these.")] = 0,
    shards: Annotated[int, typer.Option(help="Shards, isolated from one another.")] = 4,
    participants: Annotated[int, typer.Option("--participants", "-m", help="Clients a shard a round; 0: all.")] = 5,
    draw: Annotated[str, typer.Option(help="round | stage: how often the participants are drawn.")] = "round",
    rounds: Annotated[int, typer.Option(help="G: rounds a stage.")] = 30,
    epochs: Annotated[int, typer.Option(help="L: local epochs a round.")] = 10,
    weighted: Annotated[bool, typer.Option(help="Average by examples, or evenly.")] = True,
    partition: Annotated[str, typer.Option(help="iid | by-class | buckets (text)")] = "iid",
    share: Annotated[float, typer.Option(help="by-class: how much of a client's data is of its primary class.")] = 0.8,
    lr: Annotated[float, typer.Option(help="Learning rate; 0: the task's own.")] = 0.0,
    momentum: Annotated[float, typer.Option(help="Of the descent, from 0 up to 1.")] = 0.9,
    batch: Annotated[int, typer.Option(help="Batch size; 0: the task's own.")] = 0,
    hidden: Annotated[int, typer.Option(help="mlp: hidden units.")] = 32,
    context: Annotated[int, typer.Option(help="text: characters a window.")] = 64,
    precision: Annotated[str, typer.Option(help="fp32 | bf16 (cnn only; part of the digest)")] = "fp32",
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    holders: Annotated[int, typer.Option(help="n: how many clients hold a slice of each record; 0: up to 20.")] = 0,
    threshold: Annotated[int, typer.Option(help="k: how many slices give it back; 0: n/2.")] = 0,
    layout: Annotated[str, typer.Option(help="shard | cross (the paper's) | server (uncoded)")] = "shard",
    history: Annotated[str, typer.Option(help="full | lean: all uploads, or what a forget can need")] = "full",
    compress: Annotated[bool, typer.Option(help="Compress records before sealing.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a new federation.

    Example: fedforget init W --clients 100 --shards 4 --participants 5
    """
    given = {k: v for k, v in locals().items() if k in FederationSettings.__dataclass_fields__ and k != "learner"}
    keeping = {
        "layout": layout,
        "keep": history,
        "holders": holders or min(clients, 20),
        "threshold": threshold or max(1, (holders or min(clients, 20)) // 2),
        "compress": compress,
    }
    settings = FederationSettings.of({**given, "learner": learner, "keeping": keeping})
    with Workspace.init(path, settings, data=data, passphrase=_passphrase()) as space:
        _answer(space.status(), as_json, present.made)


@app.command()
def train(path: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Train the newest stage to its end. Goes on where it was interrupted.

    Example: fedforget train W
    """
    with _open(path, data) as space, _bar() as bar:
        report = space.train(bar)
    _answer(report, as_json, present.trained)


@app.command()
def stage(
    path: Folder,
    rounds: Annotated[int, typer.Option(help="Rounds of the new stage; 0: as many as before.")] = 0,
    handover: Annotated[str, typer.Option(help="lineage | fresh | merged (taints every shard)")] = "lineage",
    join: Annotated[int, typer.Option(help="How many new clients take free seats.")] = 0,
    leave: Annotated[list[str] | None, typer.Option(help="Who takes part no longer (is not forgotten).")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Open the next stage: clients may join and leave.

    Example: fedforget stage W --join 2 --leave client-003
    """
    with _open(path, data) as space:
        report = space.open_stage(rounds or None, handover, join, leave or ())
    _answer(report, as_json, present.staged)


@app.command()
def plan(
    path: Folder,
    client: Clients = None,
    method: MethodName = "exact",
    ratio: Ratio = 2.0,
    interval: Interval = 1,
    compat: Compat = "paper",
    length: Length = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """What forgetting would touch, cost and promise; changes nothing.

    Example: fedforget plan W --client client-007 --method clean
    """
    calibration = Calibration(ratio, interval, compat, length)  # type: ignore[arg-type]
    with _open(path, data) as space:
        report = space.plan(client or (), method, calibration)
    _answer(report, as_json, present.planned)


@app.command()
def forget(
    path: Folder,
    client: Clients = None,
    method: MethodName = "exact",
    ratio: Ratio = 2.0,
    interval: Interval = 1,
    compat: Compat = "paper",
    length: Length = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make the federation forget clients. With none named, finish an interrupted forget.

    Example: fedforget forget W --client client-007 --client client-012
    """
    calibration = Calibration(ratio, interval, compat, length)  # type: ignore[arg-type]
    with _open(path, data) as space, _bar() as bar:
        report = space.forget(client or (), method, calibration, bar)
    _answer(report, as_json, present.forgot)


@app.command()
def status(
    path: Folder,
    clients: Annotated[bool, typer.Option("--clients", help="List every client and its shard.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Where the federation stands.

    Example: fedforget status W --clients
    """
    with _open(path, data) as space:
        report = space.status(clients)
    _answer(report, as_json, present.status)


@app.command()
def verify(
    path: Folder,
    replay: Annotated[int, typer.Option(help="Train so many random rounds again and compare bits.")] = 0,
    never_joined: Annotated[
        bool, typer.Option("--never-joined", help="Train the world without the forgotten, and compare every model.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Which rounds --replay draws.")] = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Check that all is there and nothing of the forgotten is. Exit code 12 if not.

    Example: fedforget verify W --never-joined
    """
    with _open(path, data) as space, _bar() as bar:
        report = space.verify(replay, never_joined, seed, bar)
    _answer(report, as_json, present.verified)
    report.raise_if_failed()


@app.command()
def scrub(
    path: Folder,
    portion: Annotated[int, typer.Option(help="So many records' slices; the next scrub goes on. 0: all.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check slices against their hashes, in portions. `repair` makes the bad ones again.

    Example: fedforget scrub W --portion 50
    """
    with _open(path) as space, _bar() as bar:
        report = space.scrub(portion, bar)
    _answer(report, as_json, present.scrubbed)


@app.command()
def repair(
    path: Folder,
    gone: Annotated[list[str] | None, typer.Option("--gone", help="A holder that left for good; repeatable.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make missing and altered slices again. Those of holders that are gone, on others.

    Example: fedforget repair W --gone client-019
    """
    with _open(path, data) as space, _bar() as bar:
        report = space.repair(gone or (), bar)
    _answer(report, as_json, present.repaired)


@app.command()
def evaluate(path: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Accuracy of every shard's model and every combination.

    Example: fedforget evaluate W
    """
    with _open(path, data) as space, _bar() as bar:
        report = space.evaluate(bar)
    _answer(report, as_json, present.evaluated)


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
    from .workspace.storage import storage_report

    report = storage_report(parameters, layers, clients, shards, participants, rounds, wrong, rate)
    _answer(report, as_json, present.storage)


@app.command()
def demo(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="Where the demo leaves its workspace.")] = Path("demo"),
    seed: Annotated[int, typer.Option()] = 0,
    as_json: AsJson = False,
) -> None:
    """Forget one client five ways, side by side. On bundled data, in under a minute.

    Example: fedforget demo
    """
    from .demo import run

    with _bar() as bar:
        report = run(path, FederationSettings(seed=seed), bar)
    _answer(report, as_json, present.demo)


@app.command("data")
def data_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="digits | mnist | fashion-mnist | cifar10 | shakespeare")],
    download: Annotated[bool, typer.Option("--download", help="Fetch it, going on where it stopped.")] = False,
    show: Annotated[bool, typer.Option("--show", help="How it is dealt to the clients, as a plot.")] = False,
    partition: Annotated[str, typer.Option(help="iid | by-class | buckets (text)")] = "iid",
    clients: Annotated[int, typer.Option(help="To how many clients it is dealt.")] = 100,
    seed: Annotated[int, typer.Option()] = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Look at a data set, or fetch it.

    Example: fedforget data mnist --show --partition by-class --clients 20
    """
    from .workspace import datasets

    with _bar() as bar:
        report = datasets.describe(name, data, partition if show else "", clients, seed, download, bar)
    _answer(report, as_json, present.dataset)


def main() -> None:
    """Run a command; an error prints one line and ends with the exit code of its kind."""
    code = 0
    try:
        code = app(standalone_mode=False)
    except FedForgetError as fault:
        _fail(str(fault), fault.exit_code)
    except typer.Abort:
        code = _INTERRUPTED
    except OSError as fault:
        _fail(f"{fault.filename or 'the system'}: {fault.strerror or fault}", 1)
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if usage is None:
            raise
        _fail(usage(), 2)
    if code == _INTERRUPTED:
        _fail("interrupted; the same command goes on from here", code)
    sys.exit(code)


def _fail(message: str, code: int) -> None:
    line = " ".join(message.split())
    Console(stderr=True, soft_wrap=True).print(f"fedforget: {line}", style="red", markup=False, highlight=False)
    sys.exit(code)
