"""The verbs of a federation, as methods of `Workspace` have them."""

from typing import Annotated

import typer

from .. import present
from ..errors import SettingError
from ..forgetting import Calibration
from ..workspace import FederationSettings, Workspace
from .base import (
    AsJson,
    Clients,
    Compat,
    Data,
    Folder,
    Interval,
    Length,
    MethodName,
    Ratio,
    Seed,
    answer,
    app,
    ledger_password,
    opened,
    passphrase,
    progress_bar,
)
from .scopes import Label, Samples, SamplesFile, Stages, scope_of


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
    partition: Annotated[str, typer.Option(help="iid | by-class | buckets (text) | non-iid: the paper's")] = "iid",
    share: Annotated[float, typer.Option(help="by-class: how much of a client's data is of its primary class.")] = 0.8,
    lr: Annotated[float, typer.Option(help="Learning rate; 0: the task's own.")] = 0.0,
    momentum: Annotated[float, typer.Option(help="Of the descent, from 0 up to 1.")] = 0.9,
    batch: Annotated[int, typer.Option(help="Batch size; 0: the task's own.")] = 0,
    hidden: Annotated[int, typer.Option(help="mlp: hidden units.")] = 32,
    context: Annotated[int, typer.Option(help="text: characters a window.")] = 64,
    precision: Annotated[str, typer.Option(help="fp32 | bf16 (cnn only; part of the digest)")] = "fp32",
    seed: Seed = 0,
    holders: Annotated[int, typer.Option(help="n: how many clients hold a slice of each record; 0: up to 20.")] = 0,
    threshold: Annotated[int, typer.Option(help="k: how many slices give it back; 0: n/2.")] = 0,
    layout: Annotated[str, typer.Option(help="shard | cross (the paper's) | server (uncoded)")] = "shard",
    history: Annotated[str, typer.Option(help="full | lean: all uploads, or what a forget can need")] = "full",
    compress: Annotated[bool, typer.Option(help="Compress records before sealing.")] = False,
    backup_days: Annotated[
        int, typer.Option(help="How long backups are kept; a certificate is final after that.")
    ] = 30,
    ledger: Annotated[
        str, typer.Option(help="postgresql://USER@HOST/NAME (password: FEDFORGET_LEDGER_PASSWORD); else a file.")
    ] = "",
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
    secret = ledger_password()
    with Workspace.init(path, settings, data=data, passphrase=passphrase(), ledger_password=secret) as space:
        answer(space.status(), as_json, present.made)


@app.command()
def train(path: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Train the newest stage to its end. Goes on where it was interrupted.

    Example: fedforget train W
    """
    with opened(path, data) as space, progress_bar() as bar:
        report = space.train(bar)
    answer(report, as_json, present.trained)


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
    with opened(path, data) as space:
        report = space.open_stage(rounds or None, handover, join, leave or ())
    answer(report, as_json, present.staged)


@app.command()
def plan(
    path: Folder,
    client: Clients = None,
    samples: Samples = None,
    samples_file: SamplesFile = None,
    label: Label = None,
    stages: Stages = None,
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
    with opened(path, data) as space:
        scope = scope_of(client, samples, samples_file, label, stages)
        report = space.plan(method=method, calibration=calibration, scope=scope)
    answer(report, as_json, present.planned)


@app.command()
def forget(
    path: Folder,
    client: Clients = None,
    samples: Samples = None,
    samples_file: SamplesFile = None,
    label: Label = None,
    stages: Stages = None,
    method: MethodName = "exact",
    ratio: Ratio = 2.0,
    interval: Interval = 1,
    compat: Compat = "paper",
    length: Length = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="Give up the one that was interrupted.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make the federation forget clients, examples, a class or stages. With none named, finish what was interrupted.

    Example: fedforget forget W --client client-007 --samples 3,5,9
    """
    calibration = Calibration(ratio, interval, compat, length)  # type: ignore[arg-type]
    with opened(path, data) as space, progress_bar() as bar:
        scope = scope_of(client, samples, samples_file, label, stages)
        if abandon and scope is not None:
            raise SettingError("abandon", str(scope), "given alone: it gives up the forget that was interrupted")
        if not abandon:
            report = space.forget(method=method, calibration=calibration, progress=bar, scope=scope)
        else:
            given_up = space.abandon()
    if abandon:
        answer(given_up, as_json, present.abandoned)
    else:
        answer(report, as_json, present.forgot)


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
    with opened(path, data) as space:
        report = space.status(clients)
    answer(report, as_json, present.status)


@app.command()
def verify(
    path: Folder,
    replay: Annotated[int, typer.Option(help="Train so many rounds again, drawn by --seed, and compare bits.")] = 0,
    never_joined: Annotated[
        bool, typer.Option("--never-joined", help="Train the world without the forgotten, and compare every model.")
    ] = False,
    seed: Seed = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Check that all is there and nothing of the forgotten is. Exit code 12 if not.

    Example: fedforget verify W --never-joined
    """
    with opened(path, data) as space, progress_bar() as bar:
        report = space.verify(replay, never_joined, seed, bar)
    answer(report, as_json, present.verified)
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
    with opened(path) as space, progress_bar() as bar:
        report = space.scrub(portion, bar)
    answer(report, as_json, present.scrubbed)


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
    with opened(path, data) as space, progress_bar() as bar:
        report = space.repair(gone or (), bar)
    answer(report, as_json, present.repaired)


@app.command()
def evaluate(path: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Accuracy of every shard's model and every combination.

    Example: fedforget evaluate W
    """
    with opened(path, data) as space, progress_bar() as bar:
        report = space.evaluate(bar)
    answer(report, as_json, present.evaluated)


@app.command()
def migrate(path: Folder, as_json: AsJson = False) -> None:
    """Bring a workspace of an earlier FedForget up to date. A ledger in a file is copied first.

    Example: fedforget migrate W
    """
    from ..workspace.migrate import migrate as work

    answer(work(path, ledger_password=ledger_password()), as_json, present.migrated)
