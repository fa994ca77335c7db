"""What every command shares: the application, its common options, answers, progress bars and errors.

One JSON document on stdout with --json and nothing else there; progress on stderr, and only on a terminal.
"""

import io
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

from .. import __version__
from ..errors import FedForgetError
from ..workspace import Workspace
from ..workspace.progress import Progress, silent
from ..workspace.reports import to_json

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


Seed = Annotated[int, typer.Option("--seed", help="Everything random follows from it.", min=-(2**63), max=2**63 - 1)]

INTERRUPTED = 130  # as shells have it: 128 and the number of the signal


def passphrase() -> str | None:
    return os.environ.get("FEDFORGET_PASSPHRASE") or None


def ledger_password() -> str | None:
    """Of a ledger in PostgreSQL; without it libpq looks where it always looks (PGPASSFILE)."""
    return os.environ.get("FEDFORGET_LEDGER_PASSWORD") or None


def opened(path: Path, data: Path | None = None) -> Workspace:
    return Workspace.open(path, data=data, passphrase=passphrase(), ledger_password=ledger_password())


def answer(report: Any, as_json: bool, show: Callable[[Console, Any], None]) -> None:
    if as_json:
        sys.stdout.write(json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n")
    else:
        show(Console(soft_wrap=False), report)


@contextmanager
def progress_bar() -> Iterator[Progress]:
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


def main() -> None:
    """Run a command; an error prints one line and ends with the exit code of its kind."""
    code = 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no reason to fail
    try:
        code = app(standalone_mode=False)
    except FedForgetError as fault:
        _fail(str(fault), fault.exit_code)
    except typer.Abort:
        code = INTERRUPTED
    except OSError as fault:
        _fail(f"{fault.filename or 'the system'}: {fault.strerror or fault}", 1)
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if usage is None:
            raise
        _fail(usage(), 2)
    if code == INTERRUPTED:
        _fail("interrupted; the same command goes on from here", code)
    sys.exit(code)


def _fail(message: str, code: int) -> None:
    line = " ".join(message.split())
    Console(stderr=True, soft_wrap=True).print(f"fedforget: {line}", style="red", markup=False, highlight=False)
    sys.exit(code)
