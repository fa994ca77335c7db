"""What tests compare with: models trained in memory by the core alone, and what must not change when a verb refuses."""

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small import every_digest, opened

from fedforget.engines.local import LocalCohort
from fedforget.errors import FedForgetError
from fedforget.federation import train_all
from fedforget.workspace import Workspace

Digests = Mapping[tuple[int, int, int], tuple[str, str]]


def world_without(space: Workspace, *leavers: str) -> Digests:
    """Every round of the workspace's plan had the leavers never joined, from nothing, in memory, none of it kept."""
    task, plan = space.task, space.state().plan
    cohort = LocalCohort(task.learner, task.examples)
    rounds = train_all(cohort, plan.without(leavers), task.learner, space.settings.training)
    return {tuple(r.place): (r.start.digest, r.model.digest) for r in rounds}


def as_far_as(world: Digests, space: Workspace) -> Digests:
    """The world, as far as the workspace has got."""
    there = every_digest(space)
    return {place: bits for place, bits in world.items() if place in there}


def contents(path: Path) -> dict[str, bytes]:
    """Every file but the lock's."""
    return {
        str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock"
    }


@contextmanager
def refused(path: Path, kind: type[FedForgetError], *words: str) -> Any:
    """A clear refusal: this kind of error, one line that has these words, and not a byte of the workspace changed."""
    before = contents(path)
    with pytest.raises(kind) as caught:
        yield caught
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text
    assert contents(path) == before


def drawn_from(path: Path, stage: int = 0, seats: int = 8) -> dict[str, int | None]:
    """Each client and the first round it is drawn in."""
    with opened(path, seats=seats) as space:
        plan = space.state().plan
        return {c: plan.first_round(stage, plan.shard_of(c), [c]) for c in plan.clients}


def shards_of(space: Workspace) -> dict[int, tuple[str, ...]]:
    plan = space.state().plan
    return {s: tuple(c for c in plan.clients if plan.shard_of(c) == s) for s in range(plan.shards)}
