"""Inspect: what a workspace is, would do and is worth. Nothing here changes anything."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..evaluation.combination import pool
from ..evaluation.quality import accuracy, loss
from ..examples import Examples
from ..federation import Place, Round
from ..forgetting import Calibration, Method, estimate, prepare_work, standing
from ..params import mean
from ..slices import HEAD, SERVER
from ..storage import erasures
from .estimate import estimate_seconds
from .forget import reaches
from .progress import Progress
from .reports import EvaluateReport, PlanReport, Score, ShardStatus, StatusReport, TrainReport
from .scopes import Erasure, asked, effective
from .serving import served, serving
from .state import State, unfinished

if TYPE_CHECKING:
    from .workspace import Workspace

Said = NDArray[Any]


def plan_report(space: "Workspace", erasure: Erasure, method: Method, calibration: Calibration) -> PlanReport:
    state = space.state()
    work = prepare_work(method, state.plan, state.past, erasure.change)
    found = estimate(method, work, space.settings.training, calibration)
    seconds, wall = estimate_seconds(state, work, found.client_epochs)
    return PlanReport(
        tuple(sorted(erasure.change.clients)),
        method.name,
        reaches(work),
        found.rounds,
        found.client_epochs,
        seconds,
        found.guarantee,
        tuple(sorted({s for t, s in work.emptied if t == state.stage and not work.after.living(t, s)})),
        erasure.words,
        sum(map(len, erasure.drops.values())),
        wall_seconds=wall,
    )


def train_report(stage: int, rounds: Sequence[Round], before: int, after: State) -> TrainReport:
    return TrainReport(
        stage,
        len(rounds),
        before,
        sum(r.cost.client_epochs for r in rounds),
        sum(r.cost.seconds for r in rounds),
        tuple((a.client, str(r.place), a.why) for r in rounds for a in r.absent),
        {
            str(s): after.rows[Place(stage, s, after.done((stage, s)) - 1)].model_digest
            for s in after.plan.living_shards(stage)
            if after.done((stage, s))
        },
    )


def status_report(space: "Workspace", members: bool) -> StatusReport:
    state = space.state()
    request = unfinished(space.ledger)
    now = serving(space, state)
    server, fullest, total = stored_bytes(state)
    return StatusReport(
        str(space.path),
        state.settings.federation,
        state.settings.task,
        state.settings.learner,
        state.stage,
        state.plan.stages[state.stage].handover,
        tuple(_shard_status(state, shard) for shard in range(state.plan.shards)),
        sum(m.present(state.stage) for m in state.plan.members),
        tuple(sorted(state.forgotten)),
        sum(r.state == "executed" for r in space.ledger.requests()),
        asked(request) if request else (),
        state.vault.epoch,
        len(space.ledger.debts()),
        state.settings.keeping.layout,
        state.settings.keeping.keep,
        tuple(sorted({b.code for b in state.history})),
        len({h for b in state.history for h in b.holders}),
        server,
        fullest,
        total,
        tuple((c, state.plan.shard_of(c)) for c in state.plan.clients) if members else (),
        now.guarantee if now.shards else None,
        tuple(sorted(now.out.items())),
    )


def _shard_status(state: State, shard: int) -> ShardStatus:
    cell = (state.stage, shard)
    done = state.done(cell)
    generations = [row.generation for place, row in state.rows.items() if place.shard == shard]
    living = state.plan.living(*cell)
    return ShardStatus(
        shard,
        len(state.plan.present(*cell)),
        done,
        state.plan.stages[state.stage].rounds,
        max(generations, default=0),
        standing(state.plan, state.past)[shard],
        living,
        state.final(cell).digest if living else "",
    )


def stored_bytes(state: State) -> tuple[int, int, int]:
    """Bytes of slices on the server, on the fullest holder, and over all, from the manifests."""
    held: dict[str, int] = {}
    for bundle in state.bundles:
        for key in bundle.keys:
            held[key.holder] = held.get(key.holder, 0) + bundle.width
    server = held.pop(SERVER, 0) + held.pop(HEAD, 0)
    return server, max(held.values(), default=0), server + sum(held.values())


def evaluate_report(space: "Workspace", progress: Progress) -> EvaluateReport:
    """Accuracy of every shard model and every combination, on test, retained and forgotten examples."""
    state, task = space.state(), space.task
    now = served(space, state)
    models = now.models
    drops = erasures.drops(space.ledger)
    left = effective(task.examples, drops)
    present = [c for c in state.plan.clients if c in left]
    retained = _joined(left[c] for c in present)
    forgotten = [task.examples[c] for c in sorted(state.forgotten) if c in task.examples]
    forgotten += [task.examples[c].take(sorted(drops[c])) for c in present if c in drops]
    views = {
        "test": task.test,
        "retained": retained and sample(retained, len(task.test)),  # as many as there are to test with
        "forgotten": _joined(forgotten),
    }
    average = mean(list(models.values()))
    said: dict[str, list[Said]] = {}
    for at, model in enumerate([*models.values(), average]):
        progress("evaluating", at, len(models) + 1)
        for view, examples in views.items():
            if examples is not None:
                said.setdefault(view, []).append(space.learner.predict(model, examples.x))
    scores = [_score(f"shard {shard}", views, {v: p[at] for v, p in said.items()}) for at, shard in enumerate(models)]
    scores.append(_score("average", views, {v: p[-1] for v, p in said.items()}))
    pooled: tuple[Literal["ensemble", "vote"], ...] = ("ensemble", "vote")
    scores += [_score(kind, views, {v: pool(kind, p[:-1]) for v, p in said.items()}) for kind in pooled]
    return EvaluateReport(tuple(scores), len(task.test), now.guarantee)


def sample(examples: Examples, most: int) -> Examples:
    """Evenly spaced examples, where there are more than a mean needs."""
    if len(examples) <= most:
        return examples
    return examples.take(np.linspace(0, len(examples) - 1, most).astype(np.intp))


def _joined(parts: Iterable[Examples]) -> Examples | None:
    found = [p for p in parts if len(p)]
    return Examples.join(found) if found else None


def _score(name: str, views: Mapping[str, Examples | None], said: Mapping[str, Said]) -> Score:
    def right(view: str) -> float | None:
        examples = views[view]
        return None if examples is None else accuracy(said[view], examples.y)

    test = views["test"]
    assert test is not None
    return Score(
        name, accuracy(said["test"], test.y), loss(said["test"], test.y), right("retained"), right("forgotten")
    )
