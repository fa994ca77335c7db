"""Serving: which shards are served, what that promises, and who was given them.

From the moment a request is authorised the shards that hold what it wants forgotten are left out: exact for what is
served, at once. They come back with the switch of the rebuild that makes them again.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..errors import NobodyLeft, NothingServed, NotTrained, SettingError
from ..evaluation.combination import COMBINES, Combine
from ..evaluation.combination import combine as combined
from ..federation import Place
from ..forgetting import Guarantee, standing
from ..forgetting.guarantee import weakest
from ..forgetting.rebuild import with_ancestors
from ..params import Params, mean
from ..plan import Cell
from ..requests.times import spell
from ..storage import exports
from ..storage.exports import Export
from .reports import ExportReport, ExportRow, ExportsReport
from .state import State

if TYPE_CHECKING:
    from .workspace import Workspace

RECIPIENT = 128  # letters


@dataclass(frozen=True)
class Serving:
    """The verbs of who serves a federation's models."""

    space: "Workspace"

    def standpoint(self) -> object:
        """Changes whenever what is served may."""
        return self.space.ledger.height(), tuple(exports.left_out(self.space.ledger).items())

    def now(self) -> "Served":
        """Which shards are served, which are left out, and what is promised."""
        return self.space._steady(lambda: serving(self.space, self.space.state()))

    def model(self, combine: str = "average") -> "Model":
        """The served combination as a safetensors file; whoever is given it belongs in the register (`hand_over`)."""
        return self.space._steady(lambda: model(self.space, combine))

    def predict(self, x: NDArray[Any], combine: str = "average") -> tuple[NDArray[Any], Guarantee]:
        """What the served combination says of `x`, as probabilities, and what is promised of it."""
        return self.space._steady(lambda: predict(self.space, x, combine))

    def hand_over(self, made: "Model", to: str) -> Export:
        """Enter in the register who is given it."""
        return hand_over(self.space, made, to)

    def export(self, out: str | Path, combine: str = "average", to: str = "this machine") -> ExportReport:
        """Write the served combination as safetensors; the register remembers who has it."""
        return export(self.space, Path(out), combine, to)

    def exports(self, told: Iterable[int] = ()) -> ExportsReport:
        """Who was given what, and who must be told that it holds what was forgotten since; `told` were."""
        ids = tuple(told)
        return tell(self.space, ids) if ids else exports_report(self.space)


@dataclass(frozen=True)
class Served:
    """The shards of the newest stage that are served, and those that are not, for which requests."""

    state: State
    shards: tuple[int, ...]
    out: Mapping[int, tuple[str, ...]]

    @cached_property
    def models(self) -> dict[int, Params]:
        return {s: self.state.final((self.state.stage, s)) for s in self.shards}

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of the combination of all that is served."""
        standings = standing(self.state.plan, self.state.past)
        grades = [standings[s] for s in self.shards]
        less = [f"shard {s} is {standings[s]}" for s in self.shards if standings[s] != "X1"]
        if self.out:
            requests = sorted({request for several in self.out.values() for request in several})
            shards = ", ".join(map(str, sorted(self.out)))
            reason = f"shard {shards} is left out until {', '.join(requests)} is carried out"
            return Guarantee(weakest(["Q", *grades]), "; ".join([reason, *less]))
        reason = "; ".join(less) or "every round served was made by plain training, without what was forgotten"
        return Guarantee(weakest(["X1", *grades]), reason)

    @cached_property
    def lineage(self) -> tuple[tuple[int, int, int], ...]:
        """Every cell that went into it, and how many of its rounds."""
        found = with_ancestors(self.state.plan, ((self.state.stage, s) for s in self.shards))
        return tuple((*cell, self.state.done(cell)) for cell in sorted(found) if self.state.done(cell))


def serving(space: "Workspace", state: State) -> Served:
    """What is served now; nothing of a shard whose lineage a quarantined cell is part of."""
    out = exports.left_out(space.ledger)
    found: dict[int, tuple[str, ...]] = {}
    shards: list[int] = []
    for shard in state.plan.living_shards(state.stage):
        requests = _requests(state, (state.stage, shard), out)
        if requests:
            found[shard] = requests
        else:
            shards.append(shard)
    return Served(state, tuple(shards), found)


def _requests(state: State, cell: Cell, out: Mapping[Cell, tuple[str, ...]]) -> tuple[str, ...]:
    lineage = with_ancestors(state.plan, [cell])
    return tuple(sorted({request for one in lineage for request in out.get(one, ())}))


def served(space: "Workspace", state: State) -> Served:
    """As `serving`, or why there is nothing to serve."""
    found = serving(space, state)
    if not found.shards:
        if found.out:
            raise NothingServed(space.path, {request for several in found.out.values() for request in several})
        raise NobodyLeft("the federation")
    return found


# --- the model as a file ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A served combination as a safetensors file, and what is said of it."""

    combine: Combine
    digest: str
    generation: int
    guarantee: Guarantee
    shards: tuple[int, ...]
    lineage: tuple[tuple[int, int, int], ...]
    blob: bytes


def model(space: "Workspace", combine: str) -> Model:
    """One model (average), or every shard's, its tensors named `shard-0/…` (ensemble, vote)."""
    if combine not in COMBINES:
        raise SettingError("combine", combine, "one of " + ", ".join(COMBINES))
    state = space.state()
    now = served(space, state)
    if not state.rows:
        raise NotTrained(space.path)
    if combine == "average":
        params = mean(list(now.models.values()))
    else:
        params = Params.of(
            {f"shard-{s}/{name}": array for s, one in now.models.items() for name, array in one.arrays().items()}
        )
    said = {
        "fedforget.federation": state.settings.federation,
        "fedforget.combine": combine,
        "fedforget.digest": params.digest,
        "fedforget.generation": str(state.vault.epoch),
        "fedforget.guarantee": json.dumps(asdict(now.guarantee), sort_keys=True),
        "fedforget.lineage": json.dumps(_lineage(now), sort_keys=True),
    }
    blob = params.to_bytes(said)
    return Model(combine, params.digest, state.vault.epoch, now.guarantee, now.shards, now.lineage, blob)


def predict(space: "Workspace", x: NDArray[Any], kind: str) -> tuple[NDArray[Any], Guarantee]:
    if kind not in COMBINES:
        raise SettingError("combine", kind, "one of " + ", ".join(COMBINES))
    now = served(space, space.state())
    return combined(kind, space.learner, list(now.models.values()), x), now.guarantee


def _lineage(now: Served) -> list[dict[str, object]]:
    """Each cell's rounds, the generation they were made in, and the digest of the model they ended in."""
    found = []
    for stage, shard, rounds in now.lineage:
        row = now.state.rows[Place(stage, shard, rounds - 1)]
        found.append(
            {
                "stage": stage,
                "shard": shard,
                "rounds": rounds,
                "generation": row.generation,
                "digest": row.model_digest,
            }
        )
    return found


# --- the register -----------------------------------------------------------------------------------------


def hand_over(space: "Workspace", made: Model, recipient: str) -> Export:
    if not recipient or len(recipient) > RECIPIENT or not recipient.isprintable():
        raise SettingError("recipient", recipient[:40], f"1 to {RECIPIENT} printable letters")
    time = spell(space.ledger.clock())
    row = Export(0, time, recipient, made.combine, made.digest, made.generation, _carried_out(space), made.lineage)
    return exports.register(space.ledger, row)


def export(space: "Workspace", out: Path, combine: str, recipient: str) -> ExportReport:
    """Write what is served to a file, entered in the register first."""
    made = space.serving.model(combine)
    row = hand_over(space, made, recipient)
    space.disk.write(out, made.blob)
    return ExportReport(
        row.id, str(out), recipient, combine, made.digest, made.generation, made.shards, made.guarantee, len(made.blob)
    )


def exports_report(space: "Workspace") -> ExportsReport:
    """Every hand-over, and which rebuilds have since forgotten something that is in it."""
    forgot = {r.id: r.body["outcome"].get("held", []) for r in space.ledger.requests() if r.state == "executed"}
    rows = []
    for one in exports.exported(space.ledger):
        since = max(one.rebuild, one.told or 0)
        held = tuple(id for id, cells in sorted(forgot.items()) if id > since and _holds(one, cells))
        rows.append(
            ExportRow(one.id, one.time, one.recipient, one.combine, one.digest, one.generation, held, one.restored)
        )
    return ExportsReport(tuple(rows))


def _holds(one: Export, cells: Iterable[tuple[int, int, int]]) -> bool:
    """Whether a round of it is one of those that held what was forgotten."""
    rounds = {(stage, shard): count for stage, shard, count in one.cells}
    return any(first < rounds.get((stage, shard), 0) for stage, shard, first in cells)


def tell(space: "Workspace", ids: tuple[int, ...]) -> ExportsReport:
    """Their recipients were told of all that is forgotten by now."""
    unknown = sorted(set(ids) - {one.id for one in exports.exported(space.ledger)})
    if unknown:
        raise SettingError("told", unknown[0], "the number of an export: `fedforget exports DIR` lists them")
    exports.told(space.ledger, ids, _carried_out(space))
    return exports_report(space)


def _carried_out(space: "Workspace") -> int:
    return max((r.id for r in space.ledger.requests() if r.state == "executed"), default=0)
