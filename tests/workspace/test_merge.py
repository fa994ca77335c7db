"""A federation whose models are no means of uploads: the same laws, through the seam a strategy comes in by."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from small import client, every_digest, make, opened

from fedforget.errors import Elsewhere, SettingError
from fedforget.federation import Place, Settings, Upload, average
from fedforget.forgetting import METHODS, prepare_work
from fedforget.params import Params
from fedforget.plan import Change
from fedforget.workspace import Workspace


@dataclass(frozen=True)
class Momentum:
    """The server goes on in the direction it came from: a model that depends on the two rounds before."""

    recorded: Callable[[Place], tuple[Upload, ...]]
    begin: Callable[[tuple[int, int]], Params]

    def __call__(self, place: Place, start: Params, uploads: tuple[Upload, ...]) -> Params:
        return self._models(place, uploads)[-1]

    def _models(self, place: Place, uploads: tuple[Upload, ...]) -> list[Params]:
        """Every model of the shard up to this round, from what is recorded."""
        models = [self.begin(place.cell)]
        for round in range(place.round + 1):
            given = uploads if round == place.round else self.recorded(place._replace(round=round))
            step = average(models[-1], given, True).vector - models[-1].vector
            push = models[-1].vector - models[-2].vector if round else np.zeros_like(step)
            models.append(Params(models[-1].layout, (models[-1].vector + step + 0.5 * push).astype(np.float32)))
        return models


def merging(space: Workspace, pending: bool = False) -> Workspace:
    def recorded(place: Place) -> tuple[Upload, ...]:
        for request in space.ledger.requests() if pending else ():
            made = space.state(request.id)
            if request.state == "rebuilding" and place in made.rows:
                return made.past.uploads(place)
        return space.state().past.uploads(place)

    return replace(space, merge=Momentum(recorded, lambda cell: space.state().begin(cell)))


def test_exact_forgetting_ends_in_the_run_the_leaver_never_joined(tmp_path: Path) -> None:
    """Who joins late leaves rounds before the restart, whose momentum has to come back."""
    make(tmp_path / "w", seed=4).close()
    with opened(tmp_path / "w") as plain:
        space = merging(plain, pending=True)
        space.train()
        before = every_digest(space)
        firsts = {
            c: space.state().plan.first_round(0, space.state().plan.shard_of(c), {c}) for c in map(client, range(8))
        }
        leaver = next(c for c, first in firsts.items() if first)
        assert space.forget([leaver]).guarantee.grade == "X1"
        assert every_digest(space) != before
        assert space.verify(replay=2, never_joined=True).passed


def test_only_ways_that_train_again_will_do(tmp_path: Path) -> None:
    make(tmp_path / "w").close()
    with opened(tmp_path / "w") as plain:
        space = merging(plain)
        space.train()
        for method in ("clean", "calibrated", "RR"):
            with pytest.raises(SettingError, match="not means"):
                space.forget([client(1)], method)
            with pytest.raises(SettingError, match="not means"):
                space.plan([client(1)], method)
        assert space.ledger.requests() == ()


def test_a_round_nobody_came_to_keeps_the_model(tmp_path: Path) -> None:
    def refuse(place: Place, start: Params, uploads: tuple[Upload, ...]) -> Params:
        raise AssertionError("nothing to merge")

    start = Params.of({"w": np.ones(2)})
    assert Settings(merge=refuse).merged(Place(0, 0, 0), start, ()) == start
    assert Settings() == Settings(merge=refuse)


def test_a_node_that_computes_otherwise_than_before_is_a_condition(tmp_path: Path) -> None:
    make(tmp_path / "w").close()
    with opened(tmp_path / "w") as space:
        state = space.state()
        work = prepare_work(METHODS["exact"], state.plan, state.past, Change(frozenset({client(1)})))
        space.ledger.note("numerics of nodes", "client-001: numpy 1")
        assert space.changed_conditions(work) == ()
        space.ledger.note("numerics of nodes", "client-002: numpy 2")
        space.ledger.note("numerics of nodes", "client-001: numpy 2")
        assert space.changed_conditions(work) == ("client-001 computed under numpy 1, then numpy 2",)


def test_a_workspace_whose_slices_lie_elsewhere_is_left_alone(tmp_path: Path) -> None:
    """Its holders' folders are empty here: taken for the truth, every slice would be lost and every deletion done."""
    make(tmp_path / "w").close()
    with opened(tmp_path / "w") as space:
        space.train()
        space.ledger.put("holders", "flower")
        for verb in (space.train, space.verify, space.scrub, space.repair, lambda: space.forget([client(1)])):
            with pytest.raises(Elsewhere, match="flwr run"):
                verb()
        assert space.status().clients == 8
        assert space.plan([client(1)]).guarantee.grade == "X1"
