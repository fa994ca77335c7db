"""Progress: how long work tells whoever waits for it where it is."""

from collections.abc import Callable, Iterator

from ..federation import Round

Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Nobody waits."""


def by_index(rounds: Iterator[Round], shards: Callable[[int, int], int]) -> Iterator[tuple[Round, ...]]:
    """A march's rounds, those of one stage and index together: what one durable step records.

    `shards(stage, index)` says how many are to come, so that none of the next index is trained before these are kept.
    """
    group: list[Round] = []
    for round in rounds:
        group.append(round)
        if len(group) == shards(round.place.stage, round.place.round):
            yield tuple(group)
            group = []
    assert not group
