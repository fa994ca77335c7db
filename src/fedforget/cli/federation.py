"""A federation of processes on this machine."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from .. import present
from ..errors import VerificationFailed
from ..processes import up as bring_up
from .base import AsJson, answer, app, progress_bar

federation = typer.Typer(help="A federation of real processes on this machine, by Flower.", rich_markup_mode=None)
app.add_typer(federation, name="federation")


@federation.command()
def up(
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="How many SuperNodes: one a client.")] = 4,
    tls: Annotated[
        bool, typer.Option("--tls", help="Encrypt, and let registered keys in only, as a real deployment does.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where it keeps everything; else a temporary one that goes with it.")
    ] = None,
    port: Annotated[int, typer.Option(help="The SuperLink's port; 0: a free one.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Start a SuperLink and its SuperNodes, and stop them all at Ctrl-C. On the loopback address only.

    Example: fedforget federation up --nodes 8 --tls --dir F
    """
    with (
        _terminated_is_interrupted(),
        progress_bar() as bar,
        bring_up(nodes, tls=tls, folder=folder, port=port, progress=bar) as found,
    ):
        answer(found.report(), as_json, present.raised)
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            found.watch(lambda line: typer.echo(f"fedforget: {line}", err=True))


@federation.command()
def demo(
    app_folder: Annotated[Path, typer.Option("--app", help="The Flower app's folder.")] = Path("flower"),
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where it keeps everything; else a temporary one that goes with it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train on 8 real nodes, let one leave and one die, forget, verify. In a few minutes, without a network.

    Example: fedforget federation demo --app flower
    """
    from ..federation_demo import run

    with _terminated_is_interrupted():
        report = run(app_folder, folder, lambda line: typer.echo(line, err=True))
    answer(report, as_json, present.federation_demo)
    if not report.passed:
        raise VerificationFailed(["the federation's models or checks are not what they should be"])


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """So that whoever ends this command, by Ctrl-C or `kill`, ends what it started."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
