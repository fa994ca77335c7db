"""Forget: the request's way from the plan to the switch, each step durable, each resumable."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ..errors import (
    Damaged,
    FedForgetError,
    NoReference,
    SealBroken,
    SettingError,
    TrainingFailed,
    Unrecoverable,
    UpdateRefused,
)
from ..federation import Place, Round
from ..forgetting import (
    Calibration,
    Method,
    Rebuild,
    assess,
    estimate,
    forget,
    method_named,
    prepare_work,
)
from ..forgetting.rebuild import touched
from ..manifest import Label
from ..params import Params
from ..plan import Cell, Change, Taint
from ..requests import Scope
from ..sealing import Vault
from ..slices import ALL_SHARDS, SliceKey
from ..storage.ledger import Request
from ..storage.queue import Db
from . import certify, expect, seats, settle
from .progress import Progress, by_index, timed
from .reports import AbandonReport, ForgetReport, Reach
from .scopes import Erasure, Ground, Part, settled, stones
from .state import State, digests

if TYPE_CHECKING:
    from .workspace import Workspace


# What a rebuild that cannot be carried out as things are raises: it would raise it again. A full disk, missing data
# or an interruption are none of these, so that what was made until then is not lost.
REFUSING = (Damaged, Unrecoverable, SealBroken, NoReference, SettingError, UpdateRefused)

Enter = Callable[[Db, int], None]
Join = Callable[[Request, State, Rebuild], bool]


def check(space: "Workspace", change: Change, method: str, calibration: Calibration) -> State:
    """Raises what would stop it half-way."""
    row, state = method_named(method), space.state()
    space.refuse_unmerged(row)
    work = prepare_work(row, state.plan, state.past, change)
    estimate(row, work, space.training, calibration)
    state.archive.ahead(expect.bundles(state, row, work, space.merge is not None))
    _begin_at_all(state, row, work)
    space.keys.tombstones()  # damaged ones are said now, not when all is made
    return state


def open_request(space: "Workspace", part: Part, method: str, calibration: Calibration, enter: Enter) -> Request:
    """Enter the rebuild, with what it answers, once it is known that it can be carried out."""
    state = check(space, part.change, method, calibration)
    body = {
        **settled(space, Ground.of(space), part).body,
        "method": method,
        "calibration": asdict(calibration),
        "before": digests(state),
        "requested": certify.moment(space.ledger.clock()),
    }
    return space.ledger.open_request(body, enter)


def widened(request: Request, joint: Part) -> Mapping[str, Any]:
    """What a rebuild is for once others have joined it; `asked` stays what it was opened for."""
    return {**request.body, "leave": sorted(joint.leave)}


def same_request(request: Request, scope: Scope, method: str, calibration: Calibration | None) -> bool:
    """Whether this is what was asked for when the request was opened."""
    how = request.body["calibration"] if calibration is None else asdict(calibration)
    opened = (request.body["asked"], request.body["method"], request.body["calibration"])
    return ([scope.to_document()], method, how) == opened


def _begin_at_all(state: State, method: Method, work: Rebuild) -> None:
    """A forget whose first model or first uploads are lost is refused while another way can still be chosen."""
    for cell, taint in work.taints.items():
        place = Place(*cell, taint.round)
        if taint.round and work.after.present(*cell):
            state.past.checkpoint(place)
        if method.algorithm in ("calibrate", "clean") and not taint.inherited:
            state.past.uploads(place)


def carry_out(space: "Workspace", request: Request, progress: Progress, join: Join) -> ForgetReport:
    """Rebuild what is tainted, switch, delete. May be called again after any interruption.

    `join` is asked between rounds, and says whether others have joined: then the rebuild goes on for them too.
    """
    began = time.perf_counter()
    state = space.state()
    method, calibration = method_named(request.body["method"]), Calibration(**request.body["calibration"])
    try:
        while True:
            erasure = Erasure.of(request)
            work = prepare_work(method, state.plan, state.past, erasure.change)
            state.archive.ahead(expect.bundles(state, method, work, space.merge is not None))
            if not rebuild(space, state, request, method, calibration, work, progress, join):
                break
            request = space.ledger.request(request.id)
        vault, rewrapped = new_epoch(space, state, request, work)
    except REFUSING as fault:
        if not settle.under_way(space, erasure):  # past its tombstones a request is only ever finished
            seats.delete(space, space.ledger.refuse(request, str(fault)))
        raise
    made = tuple(space.ledger.rounds(request.id).values())
    guarantee = assess(method, work, made, calibration, space.changed_conditions(work, made))
    destroyed = sum(_tainted(label, work.taints) for label in state.records)
    outcome: dict[str, Any] = {
        "guarantee": asdict(guarantee),
        "touches": [asdict(r) for r in reaches(work)],
        "held": [[*cell, taint.round] for cell, taint in sorted(touched(state.plan, state.past, work.change).items())],
        "evidence": certify.evidence(space, request, made, state.vault.epoch, destroyed, time.perf_counter() - began),
    }
    space.keys.keep(stones(space.settings.federation, erasure))
    firsts = {cell: taint.round for cell, taint in work.taints.items()}
    space.ledger.switch(request, firsts, rewrapped, vault.epoch, outcome, space.settings.federation)
    after = space.state()
    debts = space.ledger.debts()
    owed = seats.delete(space, debts)
    space.keys.destroy_all_but(after.vault.epoch)
    seats.vacate(space, after, after.forgotten.keys())
    files = certify.certify(space)
    return ForgetReport(
        request.id,
        tuple(sorted(erasure.change.clients)),
        method.name,
        guarantee,
        reaches(work),
        len(made),
        sum(r.cost.client_epochs for r in made),
        sum(r.cost.seconds for r in made),
        sum(r.cost.slowest for r in made),
        time.perf_counter() - began,
        request.body["before"],
        digests(after),
        destroyed,
        len(debts) - len(owed),
        len(owed),
        tuple(sorted({s for (t, s) in work.emptied if t == state.stage and not after.plan.living(t, s)})),
        erasure.words,
        sum(map(len, erasure.drops.values())),
        str(files[-1]) if files else "",
    )


def rebuild(
    space: "Workspace",
    state: State,
    request: Request,
    method: Method,
    calibration: Calibration,
    work: Rebuild,
    progress: Progress,
    join: Join,
) -> bool:
    """Make the tainted rounds again as pending ones, going on from the last that was kept.

    Stops where somebody joins, and says so.
    """
    pending = space.state(request.id)
    done: dict[Cell, tuple[int, Params]] = {}
    for cell in {p.cell for p in pending.rows}:
        last = max(p.round for p in pending.rows if p.cell == cell)
        done[cell] = (last + 1, pending.past.final(cell))
    work = replace(work, done=done)
    total = sum(state.done(c) - t.round for c, t in work.taints.items() if work.after.present(*c))
    finished = len(pending.rows)
    paid: Collection[SliceKey] = ()
    progress("forgetting", finished, total)
    engine = space.engine(Erasure.of(request).drops)
    space.ledger.note("numerics", space.bits()[0])
    march = _sound(forget(method, engine, space.learner, work, space.training, calibration))
    for group in timed(by_index(march, lambda stage, index: _shards_at(work, stage, index))):
        dropped = _tainted_shards(work, group[0].place.stage, group[0].place.round)
        generation = state.vault.epoch + 1
        paid = space.keep(
            state, group, plan=work.after, generation=generation, pending=request.id, dropped=dropped, paid=paid
        )
        finished += len(group)
        progress("forgetting", finished, total)
        if join(request, state, work):
            space.ledger.pay(paid)
            return True
    if space.settings.keeping.layout == "cross":
        _drop_emptied_lanes(space, state, request, work)
    return False


def _sound(rounds: Iterator[Round]) -> Iterator[Round]:
    """The rounds, and in a word of ours whatever else than the machine the learner or the engine stumble over."""
    try:
        yield from rounds
    except (FedForgetError, OSError, MemoryError):
        raise
    except Exception as fault:
        raise TrainingFailed(f"{type(fault).__name__}: {' '.join(str(fault).split())}") from fault


def abandon(space: "Workspace", request: Request) -> AbandonReport:
    """Give up what was interrupted: what was made for it goes, and nothing was changed."""
    erasure = Erasure.of(request)
    if settle.under_way(space, erasure):
        raise SettingError(
            "abandon", erasure.words, "asked before its tombstones are kept; now it is only ever finished"
        )
    owed = seats.delete(space, space.ledger.refuse(request, "abandoned by the operator"))
    return AbandonReport(request.id, erasure.words, request.body["method"], len(owed))


def _shards_at(work: Rebuild, stage: int, index: int) -> int:
    """How many shards of the stage have that round made again."""
    count = 0
    for cell, taint in work.taints.items():
        first = work.done[cell][0] if cell in work.done else taint.round
        count += cell[0] == stage and bool(work.after.present(*cell)) and first <= index < work.past.rounds(cell)
    return count


def lanes(state: State, stage: int, round: int, without: Collection[int]) -> Mapping[int, Mapping[Label, bytes]]:
    """The cross layout's blocks of a round as they were sealed, but for some shards'."""
    for bundle in state.history:
        if (bundle.stage, bundle.shard, bundle.round) == (stage, ALL_SHARDS, round):
            found: dict[int, dict[Label, bytes]] = {}
            kept = [s.label for s in bundle.spots if s.label.shard not in without]
            for label, body in state.archive.sealed(bundle, kept).items():
                found.setdefault(label.shard, {})[label] = body
            return found
    return {}


def _drop_emptied_lanes(space: "Workspace", state: State, request: Request, work: Rebuild) -> None:
    """Shards nobody is left in make no round, but their blocks are still mixed into the others' slices."""
    made = {(b.stage, b.round) for b in space.ledger.bundles(space.settings.federation, request.id)}
    for stage, round in sorted(
        {(t, r) for (t, s) in work.emptied for r in range(work.taints[t, s].round, state.done((t, s)))} - made
    ):
        rest = lanes(state, stage, round, without=_tainted_shards(work, stage, round))
        entry = state.keeper(work.after).recode(stage, round, state.vault.epoch + 1, rest)
        space.ledger.enter(entry, request.id)


def _tainted_shards(work: Rebuild, stage: int, round: int) -> set[int]:
    return {s for (t, s), taint in work.taints.items() if t == stage and taint.round <= round}


def new_epoch(space: "Workspace", state: State, request: Request, work: Rebuild) -> tuple[Vault, Mapping[Label, bytes]]:
    """A new epoch key, and under it the keys of all records that survive or were made for the request."""
    pending = space.state(request.id)
    kept = [(label, record) for label, record in state.records.items() if not _tainted(label, work.taints)]
    vault = space.keys.make(state.vault.epoch + 1)
    return vault, {
        label: vault.wrap(state.vault.unwrap(record.wrapped, label), label)
        for label, record in (*kept, *pending.records.items())
    }


def _tainted(label: Label, taints: Mapping[Cell, Taint]) -> bool:
    taint = taints.get((label.stage, label.shard))
    return taint is not None and label.round >= taint.round


def reaches(work: Rebuild) -> tuple[Reach, ...]:
    return tuple(
        Reach(t, s, taint.round, work.past.rounds((t, s)) - taint.round, taint.inherited)
        for (t, s), taint in sorted(work.taints.items())
    )
