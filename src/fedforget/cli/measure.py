"""Commands that measure what forgetting came to: membership attacks, and the distance to the retrained model."""

from typing import Annotated

import typer

from .. import present
from ..forgetting import Calibration
from .base import AsJson, Data, Folder, Ratio, answer, app, opened, progress_bar

Whom = Annotated[
    list[str] | None,
    typer.Option("--client", "-c", help="Ask what forgetting this client would come to; repeatable."),
]
Methods = Annotated[list[str] | None, typer.Option("--method", "-m", help="exact | clean | calibrated …; repeatable.")]


@app.command()
def audit(
    path: Folder,
    client: Whom = None,
    method: Methods = None,
    each: Annotated[bool, typer.Option("--each", help="Forget each --client alone; else together.")] = False,
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
            each=each,
            references=references,
            trainings=trainings,
            calibration=Calibration(ratio),
            seed=seed,
            progress=bar,
        )
    answer(report, as_json, present.audited)


@app.command()
def compare(
    path: Folder,
    client: Whom = None,
    method: Methods = None,
    ratio: Ratio = 2.0,
    relearn: Annotated[int, typer.Option(help="Relearn time: at most so many epochs; 0 leaves it out.")] = 20,
    backdoor: Annotated[bool, typer.Option("--backdoor", help="Plant a trigger at the leavers (pictures).")] = False,
    seed: Annotated[int, typer.Option(help="Of the other training to compare with.")] = 0,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """How far from the model retrained without them? Distance, relearn time, accuracy, a backdoor.

    Without --client: the models served, about those who were forgotten. Changes nothing.

    Example: fedforget compare W --client client-007 --backdoor
    """
    from ..workspace.compare import compare_report

    with opened(path, data) as space, progress_bar() as bar:
        report = compare_report(
            space,
            client or (),
            method or (),
            calibration=Calibration(ratio),
            relearn=relearn,
            backdoor=backdoor,
            seed=seed,
            progress=bar,
        )
    answer(report, as_json, present.compared)
