"""Facts: everything worth showing of a workspace in one value, for a page whose reader can ask it nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..errors import FedForgetError
from ..federation import Kind, Place
from ..forgetting import standing
from ..plan import Cell
from .progress import Progress
from .reports import EvaluateReport, StatusReport, VerifyReport
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace


@dataclass(frozen=True)
class Stretch:
    """Rounds in a row that were made alike: of one generation and kind."""

    first: int
    last: int
    generation: int
    kind: Kind
    source: int | None  # the shard whose step lengths were borrowed


@dataclass(frozen=True)
class CellFacts:
    """One shard in one stage."""

    stage: int
    shard: int
    clients: int
    rounds: int
    of: int
    handover: str
    comes_from: tuple[Cell, ...]
    stretches: tuple[Stretch, ...]
    digest: str
    client_epochs: int
    seconds: float


@dataclass(frozen=True)
class RequestFacts:
    """One wish to be forgotten, as the ledger has it."""

    id: int
    state: str
    clients: tuple[str, ...]
    method: str
    grade: str
    reason: str
    conditions: tuple[str, ...]
    touches: tuple[Mapping[str, Any], ...]
    why: str  # where it was refused


@dataclass(frozen=True)
class Facts:
    name: str
    seed: int
    epochs: int
    participants: int
    partition: str
    events: int
    as_of: str  # when the ledger's last event was entered
    status: StatusReport
    cells: tuple[CellFacts, ...]
    standing: Mapping[int, str]
    requests: tuple[RequestFacts, ...]
    evaluation: EvaluateReport | None
    verification: VerifyReport | None
    missing: str  # why there is no evaluation, where one was asked for


def facts(space: "Workspace", progress: Progress, *, evaluate: bool = True, verify: bool = True) -> Facts:
    """Read it all; evaluating and verifying take the longest and can be left out."""
    status, state, settings = space.status(), space.state(), space.settings
    evaluation, missing = None, ""
    if evaluate:
        try:
            evaluation = space.evaluate(progress)
        except FedForgetError as fault:  # no data at hand, or nobody left: the rest of the page stands without
            missing = str(fault)
    verification = space.verify(progress=progress) if verify else None
    events = tuple(space.ledger.events())
    return Facts(
        space.path.resolve().name,
        settings.seed,
        settings.epochs,
        settings.participants,
        settings.partition,
        len(events),
        events[-1].time,
        status,
        tuple(_cell(state, stage, s) for stage in range(len(state.plan.stages)) for s in range(state.plan.shards)),
        standing(state.plan, state.past),
        tuple(_request(r.id, r.state, r.body) for r in space.ledger.requests()),
        evaluation,
        verification,
        missing,
    )


def _cell(state: State, stage: int, shard: int) -> CellFacts:
    done = state.done((stage, shard))
    rows = [state.rows[Place(stage, shard, r)] for r in range(done)]
    stretches = []
    for (generation, kind, source), run in groupby(rows, lambda row: (row.generation, row.kind, row.source)):
        made = list(run)
        stretches.append(Stretch(made[0].place.round, made[-1].place.round, generation, kind, source))
    return CellFacts(
        stage,
        shard,
        len(state.plan.present(stage, shard)),
        done,
        state.plan.stages[stage].rounds,
        state.plan.stages[stage].handover,
        state.plan.predecessors((stage, shard)),
        tuple(stretches),
        rows[-1].model_digest if rows else "",
        sum(row.cost.client_epochs for row in rows),
        sum(row.cost.seconds for row in rows),
    )


def _request(number: int, state: str, body: Mapping[str, Any]) -> RequestFacts:
    outcome = body.get("outcome", {})
    guarantee = outcome.get("guarantee", {})
    return RequestFacts(
        number,
        state,
        (*body.get("leave", ()), *body.get("edit", ())),
        body.get("method", ""),
        guarantee.get("grade", ""),
        guarantee.get("reason", ""),
        tuple(guarantee.get("conditions", ())),
        tuple(outcome.get("touches", ())),
        body.get("why", ""),
    )
