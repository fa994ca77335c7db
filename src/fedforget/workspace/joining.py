"""Joining: requests that come while a rebuild runs.

Between two rounds: who came meanwhile, and is drawn in none of the rounds made so far, joins it; the others wait. For
exact forgetting only, where that ends in the very bits of having asked for all of them at once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import AlreadyForgotten, SettingError
from ..forgetting import Rebuild, method_named, prepare_work
from ..plan import Cell
from ..storage import queue
from ..storage.ledger import Request
from ..storage.queue import Db, Moved, Queued
from . import forget as forgetting
from .outlook import advance, scope_of
from .scopes import Ground, Part, resolve, union
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


class Joining:
    """Asked between two rounds. Whoever could not join at one cannot at a later one, so each is looked at once."""

    def __init__(self, space: "Workspace") -> None:
        self.space = space
        self.seen: set[int] = set()

    def __call__(self, request: Request, state: State, work: Rebuild) -> bool:
        """Whether somebody joined."""
        opened = Part(leave=work.change.leave)
        if request.body["method"] != "exact" or opened.change != work.change or request.body["drops"]:
            return False
        advance(self.space)
        with self.space.ledger.reading() as db:
            came = [one for one in queue.listed(db, {"quarantined"}) if one.number not in self.seen]
        self.seen |= {one.number for one in came}
        joint, joining = opened, list[Queued]()
        for one in came:
            wider = self._with(joint, one)
            if wider is not None and fits(state, work, wider, self._made(request)):
                joint, joining = wider, [*joining, one]
        return bool(joining) and self._enter(request, joint, joining)

    def _with(self, joint: Part, one: Queued) -> Part | None:
        try:
            part = resolve(self.space, Ground.of(self.space), scope_of(one))
        except (AlreadyForgotten, SettingError):
            return None
        return union([joint, part]) if part.plain else None

    def _made(self, request: Request) -> dict[Cell, int]:
        """How far each shard has got."""
        made: dict[Cell, int] = {}
        for place in self.space.ledger.rounds(request.id):
            made[place.cell] = max(made.get(place.cell, 0), place.round + 1)
        return made

    def _enter(self, request: Request, joint: Part, joining: Sequence[Queued]) -> bool:
        def enter(db: Db, rebuild: int) -> None:
            queue.demand(db, joining, "quarantined")
            queue.move(db, self.space.ledger.log, joining, "rebuilding", rebuild=rebuild)

        try:
            self.space.ledger.widen(request, forgetting.widened(request, joint), enter)
        except Moved:  # somebody held one of them just now: they wait
            return False
        return True


def fits(state: State, work: Rebuild, joint: Part, made: Mapping[Cell, int]) -> bool:
    """Whether the rebuild for all of them would begin where this one did and have made the same rounds so far."""
    wider = prepare_work(method_named("exact"), state.plan, state.past, joint.change)
    new = joint.leave - work.change.leave
    return wider.taints == work.taints and not any(
        new & set(work.after.cohort(*cell, index))
        for cell, upto in made.items()
        for index in range(work.taints[cell].round, upto)
    )
