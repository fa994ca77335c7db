"""Commands that measure what forgetting came to: membership attacks, and the distance to the retrained model."""

from typing import Annotated

import typer

from .. import present
from ..forgetting import Calibration
from .base import AsJson, Data, Folder, Ratio, answer, app, opened, progress_bar

Whom = Annotated[
    list[str] | None,
    typer.Option("--client", "-c", help="Ask what forgetting this client, alone, would come to; repeatable."),
]
Methods = Annotated[list[str] | None, typer.Option("--method", "-m", help="exact | clean | calibrated …; repeatable.")]


@app.command()
def audit(
    path: Folder,
    client: Whom = None,
    method: Methods = None,
    references: Annotated[int, typer.Option(help="Reference federations, half of them with each client.")] = 64,
    trainings: Annotated[int, typer.Option(help="Trainings under attack: the federation's own, and others.")] = 1,
    ratio: Ratio = 2.0,
    seed: Annotated[int, typer.Option(help="Of the references and the intervals.")] = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Can anybody tell who was forgotten? Membership attacks (LiRA, RMIA) with reference federations.

    Without --client: of the models served, about those who were forgotten. Changes nothing.

    Example: fedforget audit W --references 64
    """
    from ..workspace.audit import audit_report

    with opened(path, data) as space, progress_bar() as bar:
        report = audit_report(
            space,
            client or (),
            method or (),
            references=references,
            trainings=trainings,
            calibration=Calibration(ratio),
            seed=seed,
            progress=bar,
        )
    answer(report, as_json, present.audited)
