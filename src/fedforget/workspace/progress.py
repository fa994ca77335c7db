"""Progress: how long work tells whoever waits for it where it is."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

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


def timed(
    groups: Iterator[tuple[Round, ...]], clock: Callable[[], float] = time.perf_counter
) -> Iterator[tuple[Round, ...]]:
    """The groups, each round with its share of the time since the group before came: `plan` estimates by it."""
    last = clock()
    for group in groups:
        now = clock()
        share, last = (now - last) / len(group), now
        yield tuple(replace(round, cost=replace(round.cost, wall=share)) for round in group)
