"""The command that reproduces the paper's tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from .. import present
from ..errors import VerificationFailed
from .base import AsJson, Data, answer, app, progress_bar

_OUT = Path("experiments/results")


@app.command()
def reproduce(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="table1 | fig3 | fig4 | fig5 | theory | storage | all")
    ],
    preset: Annotated[str, typer.Option(help="quick: minutes | paper: the paper's full setting, hours")] = "quick",
    seeds: Annotated[list[int] | None, typer.Option(help="Instead of the preset's; may be repeated.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the cells that are there, go on where a run was interrupted.")
    ] = False,
    draw: Annotated[bool, typer.Option("--draw", help="Make no cells: tables and pictures from those there.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: do tables, pictures and docs say what the cells say?")
    ] = False,
    docs: Annotated[Path | None, typer.Option(help="A page whose block for this target is kept in step.")] = None,
    out: Annotated[Path, typer.Option(help="Where cells, tables and pictures go.")] = _OUT,
    recipes: Annotated[Path | None, typer.Option(help="A folder of other TOMLs than those that come along.")] = None,
    room: Annotated[Path | None, typer.Option(help="Scratch for what is under way; else below --out.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; one a processor by default.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a table or figure of the paper: ours beside the paper's. Exit code 12 if --check finds a difference.

    Example: fedforget reproduce theory
    """
    from .. import experiments

    place = experiments.Place(out, data, recipes, room, workers)
    targets = tuple(experiments.TARGETS) if target == "all" else (target,)
    if check:
        found = experiments.check(place, docs, targets)
        answer(found, as_json, present.checked)
        if found.findings:
            raise VerificationFailed(found.findings)
        return
    with progress_bar() as bar:
        outcomes = experiments.Outcomes(
            tuple(
                experiments.reproduce(
                    name,
                    preset,
                    place,
                    seeds=tuple(seeds or ()),
                    resume=resume,
                    draw_only=draw,
                    docs=docs,
                    progress=bar,
                )
                for name in targets
            )
        )
    answer(outcomes, as_json, present.reproduced)
