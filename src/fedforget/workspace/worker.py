"""Worker: carries requests out, batch by batch, and says when they are final. Holds the workspace's lock.

Each step is one transaction or may be done again, so it goes on wherever it was killed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..errors import (
    AlreadyForgotten,
    Damaged,
    FedForgetError,
    NoReference,
    SealBroken,
    SettingError,
    Unrecoverable,
    WorkspaceBusy,
)
from ..forgetting import Calibration
from ..requests.times import instant, next_warning, spell, warning
from ..storage import queue
from ..storage.ledger import Request
from ..storage.queue import Db, Moved, Queued
from . import forget as forgetting
from .joining import Joining
from .outlook import Outlook, advance, by_shards, outlook, scope_of, skip
from .progress import Progress
from .reports import ForgetReport
from .request_reports import PolicyReport, RunReport
from .scopes import Part, resolve, union
from .state import unfinished

if TYPE_CHECKING:
    from .workspace import Workspace

# What a rebuild that cannot be carried out as things are raises.
STUCK = (Damaged, Unrecoverable, SealBroken, NoReference, SettingError)
DEFAULT = PolicyReport(window_hours=24, backup_days=30)


def policy(space: "Workspace") -> PolicyReport:
    return PolicyReport(**space.ledger.get("policy", vars(DEFAULT)))


# --- batches ------------------------------------------------------------------------------------------------


def run(space: "Workspace", now: bool, method: str, calibration: Calibration, progress: Progress) -> RunReport:
    """One pass: what was interrupted, then what is due, then what has become final. Called with the lock held."""
    warnings = _warn(space)
    before = {one.id for one in _in(space, "needs_human")}
    done: list[ForgetReport] = []
    request = unfinished(space.ledger)
    if request is not None:
        done += _carried_out(space, request, progress)
    advance(space)
    while (request := _open_batch(space, now, method, calibration)) is not None:
        done += _carried_out(space, request, progress)
    executed = [one.id for report in done for one in _of_rebuild(space, report.request)]
    final = _finish(space)
    stuck = [(one.id, one.reason or "") for one in _in(space, "needs_human") if one.id not in before]
    waiting = _in(space, "quarantined")
    due = _due(space, waiting)
    return RunReport(
        tuple(executed), final, tuple(stuck), warnings, len(waiting), spell(due) if due else None, tuple(done)
    )


def _in(space: "Workspace", *states: str) -> tuple[Queued, ...]:
    with space.ledger.reading() as db:
        return queue.listed(db, states)


def _of_rebuild(space: "Workspace", rebuild: int) -> tuple[Queued, ...]:
    with space.ledger.reading() as db:
        return queue.of_rebuild(db, rebuild)


def _due(space: "Workspace", waiting: Sequence[Queued]) -> datetime | None:
    """When the window of the one that waits longest ends."""
    since = min((one.authorised for one in waiting if one.authorised), default=None)
    return None if since is None else instant(since) + timedelta(hours=policy(space).window_hours)


def _carried_out(space: "Workspace", request: Request, progress: Progress) -> list[ForgetReport]:
    """Its report; nothing where it cannot be carried out, for then its requests say why."""
    try:
        return [forgetting.carry_out(space, request, progress, Joining(space))]
    except forgetting.REFUSING:
        if unfinished(space.ledger) is not None:
            raise
        return []


def _open_batch(space: "Workspace", now: bool, method: str, calibration: Calibration) -> Request | None:
    """All that wait, in one rebuild; where some of them stand in the way, those of their shards wait for a human."""
    while True:
        waiting = _in(space, "quarantined")
        due = _due(space, waiting)
        if not waiting or not (now or (due is not None and due <= space.ledger.clock())):
            return None
        known = outlook(space)
        parts = _parts(space, known, waiting)
        if not parts:
            continue
        try:
            return _opened(space, parts, method, calibration)
        except Moved:
            continue
        except STUCK as fault:
            groups = list(by_shards(known.plan, parts).values())
            if len(groups) == 1:
                _give_up(space, groups[0], fault)
            elif not _give_up_some(space, groups, parts, method, calibration):
                return _opened(space, {one: parts[one] for one in groups[0]}, method, calibration)


def _parts(space: "Workspace", known: Outlook, waiting: Sequence[Queued]) -> dict[Queued, Part]:
    found: dict[Queued, Part] = {}
    for one in waiting:
        try:
            found[one] = resolve(space, known.ground, scope_of(one))
        except AlreadyForgotten:
            with space.ledger.transaction("skip") as db:
                skip(db, space, one, known.ground.seats, spell(space.ledger.clock()))
    return found


def _opened(space: "Workspace", parts: Mapping[Queued, Part], method: str, calibration: Calibration) -> Request:
    def enter(db: Db, rebuild: int) -> None:
        queue.demand(db, list(parts), "quarantined")
        queue.move(db, space.ledger.log, list(parts), "rebuilding", rebuild=rebuild)

    return forgetting.open_request(space, union(parts.values()), method, calibration, enter)


def _give_up_some(
    space: "Workspace",
    groups: Sequence[Sequence[Queued]],
    parts: Mapping[Queued, Part],
    method: str,
    calibration: Calibration,
) -> bool:
    """Those that could not be carried out alone either wait for a human. Whether there are any."""
    found = False
    for together in groups:
        try:
            forgetting.check(space, union(parts[one] for one in together).change, method, calibration)
        except STUCK as fault:
            _give_up(space, together, fault)
            found = True
    return found


def _give_up(space: "Workspace", some: Sequence[Queued], fault: FedForgetError) -> None:
    with space.ledger.transaction("give up") as db:
        there = queue.those_in(db, some, "quarantined")
        queue.move(db, space.ledger.log, there, "needs_human", reason=str(fault))


# --- the end, and the month ---------------------------------------------------------------------------------


def _finish(space: "Workspace") -> tuple[str, ...]:
    """Final: no holder still owes a deletion of its time, and no backup that is older is still kept."""
    kept = spell(space.ledger.clock() - timedelta(days=policy(space).backup_days))
    with space.ledger.reading() as db:
        old = queue.executed_by(db, kept)
        owed = queue.oldest_debt(db)
    rebuilds = {one.rebuild for one in old if one.rebuild is not None}
    settled = {r for r in rebuilds if owed is None or owed >= space.ledger.request(r).body["epoch"]}
    some = [one for one in old if owed is None or one.rebuild in settled]
    if some:
        with space.ledger.transaction("finish") as db:
            queue.move(db, space.ledger.log, some, "final")
    return tuple(one.id for one in some)


def _warn(space: "Workspace") -> tuple[tuple[str, str], ...]:
    """Whose month has come to day 7, 20 or 27, or is over: told once a time, and then every day."""
    now = space.ledger.clock()
    with space.ledger.reading() as db:
        if not queue.to_warn(db, spell(now)):
            return ()
    with space.ledger.transaction("warn") as db:
        due = queue.to_warn(db, spell(now))
        when = {one.number: spell(next_warning(instant(one.received), now)) for one in due}
        queue.warned(db, space.ledger.log, when, [one.id for one in due])
    return tuple((one.id, warning(instant(one.received), now)) for one in due)


def watch(
    work: Callable[[], RunReport], told: Callable[[RunReport], None], every: float, sleep: Callable[[float], None]
) -> None:
    """Pass after pass until interrupted; a workspace somebody else works on is looked at again later."""
    while True:
        with suppress(WorkspaceBusy):
            told(work())
        sleep(every)
