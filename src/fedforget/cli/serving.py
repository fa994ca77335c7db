"""Verbs that hand models out: export, the register of exports, and the HTTP endpoint."""

from pathlib import Path
from typing import Annotated

import typer

from .. import present
from .base import AsJson, Data, Folder, answer, app, opened

Combine = Annotated[str, typer.Option("--combine", help="average | ensemble | vote: how shard models make one.")]


@app.command()
def export(
    path: Folder,
    out: Annotated[Path, typer.Option("--out", help="The safetensors file to write.")],
    combine: Combine = "average",
    to: Annotated[str, typer.Option("--to", help="Who is given it; the register of exports remembers.")] = (
        "this machine"
    ),
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write what is served as safetensors. With its digest and lineage; quarantined shards are left out.

    Example: fedforget export W --out model.safetensors --combine ensemble --to hospital-17
    """
    with opened(path, data) as space:
        report = space.serving.export(out, combine, to)
    answer(report, as_json, present.exported)


@app.command()
def exports(
    path: Folder,
    told: Annotated[list[int] | None, typer.Option("--told", help="The recipient of this export was told.")] = None,
    as_json: AsJson = False,
) -> None:
    """Who was given what, and who must be told. For it holds what was forgotten since.

    Example: fedforget exports W --told 3
    """
    with opened(path) as space:
        report = space.serving.exports(told or ())
    answer(report, as_json, present.exports)


@app.command("serve-model")
def serve_model(
    path: Folder,
    port: Annotated[int, typer.Option(help="On this machine's own address; 0: any that is free.")] = 8080,
    combine: Combine = "average",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Serve the model over HTTP on this machine. GET /model, GET /status, POST /predict; until interrupted.

    Example: fedforget serve-model W --port 8080
    """
    from ..serve import Shelf, server
    from ..workspace.reports import ServeReport

    with opened(path, data) as space:
        shelf = Shelf(space, combine)
        space.serving.model(combine)  # nothing to serve is said now
        with server(shelf, port) as listening:
            answer(ServeReport(f"http://127.0.0.1:{listening.server_port}", combine), as_json, present.serving)
            listening.serve_forever(poll_interval=0.2)
