"""The page for those who were not there."""

from pathlib import Path
from typing import Annotated

import typer

from .. import present
from .base import AsJson, Data, answer, app, opened, progress_bar


@app.command()
def report(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A workspace, or a directory of results.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where the page goes; else DIR.html, beside DIR.")] = (
        None
    ),
    evaluate: Annotated[bool, typer.Option(help="Predict with every model; the slowest part on large data.")] = True,
    verify: Annotated[bool, typer.Option(help="Check every slice and record.")] = True,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page of a workspace or of an experiment's results. It opens from disk, without a network.

    Example: fedforget report W --out W.html
    """
    from ..report.write import is_workspace, write_experiment, write_workspace

    if is_workspace(path):
        with opened(path, data) as space, progress_bar() as bar:
            written = write_workspace(space, out, bar, evaluate=evaluate, verify=verify)
    else:
        written = write_experiment(path, out)
    answer(written, as_json, present.reported)
