"""Options that say what is to be forgotten: clients, samples, a class, stages."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SettingError
from ..requests import Scope

Samples = Annotated[str | None, typer.Option("--samples", help="Of one client: these examples, as in 3,5,9.")]
SamplesFile = Annotated[Path | None, typer.Option("--samples-file", help="The same, from a file of numbers.")]
Label = Annotated[int | None, typer.Option("--label", help="A class: of the clients named, or of all.")]
Stages = Annotated[str | None, typer.Option("--stages", help="What was contributed in these, as in 0-1.")]

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBERS = re.compile(r"\s*\d+(?:[\s,]+\d+)*[\s,]*")


def scope_of(
    client: list[str] | None,
    samples: str | None = None,
    samples_file: Path | None = None,
    label: int | None = None,
    stages: str | None = None,
) -> Scope | None:
    """The scope these options name; none where they name nothing."""
    given = {"samples": samples, "samples-file": samples_file, "label": label, "stages": stages}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise SettingError(named[1], given[named[1]], f"left out where --{named[0]} is given: one scope a request")
    clients = tuple(client or ())
    if samples is not None or samples_file is not None:
        return Scope.of_samples({_one(clients): _numbers(samples, samples_file)})
    if label is not None:
        return Scope.of_class(label, clients)
    if stages is not None:
        found = _RANGE.fullmatch(stages)
        if found is None:
            raise SettingError("stages", stages, "a stage or a range of them, as in 0-1")
        return Scope.of_stages(int(found[1]), int(found[2] or found[1]), clients)
    return Scope.of_clients(clients) if clients else None


def _one(clients: tuple[str, ...]) -> str:
    if len(clients) != 1:
        raise SettingError("client", ", ".join(clients), "the one client whose samples these are")
    return clients[0]


def _numbers(text: str | None, path: Path | None) -> tuple[int, ...]:
    name, found = ("samples", text) if path is None else ("samples-file", path.read_text(errors="replace"))
    if found is None or not _NUMBERS.fullmatch(found):
        raise SettingError(name, found if path is None else str(path), "numbers with commas between, as in 3,5,9")
    return tuple(int(number) for number in re.findall(r"\d+", found))
