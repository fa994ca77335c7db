"""Desk: the verbs of requests. What `Workspace.requests` answers to, and the command line with it.

space.requests.enrol("client", "client-007", key)      whose key it is
space.requests.ask(signed, …)                          signed wishes, delivered as often as one likes
space.requests.decide(signed)                          a signed verdict: approve, hold, release, reject
space.requests.run(now=True)                           works the queue once
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from ..errors import DataError, MissingExtra, SettingError, UnknownRequest, WorkspaceBusy
from ..forgetting import Calibration, method_named
from ..requests import Scope
from ..requests.admission import Enrolment
from ..requests.signed import Signed
from ..requests.times import a_month_after, instant, spell, warning
from ..requests.wish import Said, Saying, Verdict, Wish
from ..signing import PublicKey, SecretKey
from ..storage import queue
from ..storage.queue import Queued
from . import gate, outlook, worker
from .progress import Progress, silent
from .request_reports import (
    DeliveryReport,
    KeyReport,
    KeysReport,
    PolicyReport,
    Receipt,
    RequestLine,
    RequestReport,
    RequestsReport,
    RunReport,
    SaidLine,
)
from .signer import fresh

if TYPE_CHECKING:
    from .workspace import Workspace

_MOST_HOURS = 20 * 24  # of the month, a week must be left


@dataclass(frozen=True)
class Desk:
    space: "Workspace"

    # --- who may ask --------------------------------------------------------------------------------------

    def enrol(self, role: str, name: str, key: PublicKey) -> KeyReport:
        """From now on this key speaks for a client, an operator or an auditor."""
        return _key(gate.enrol(self.space, role, name, key))

    def revoke(self, key: PublicKey) -> KeyReport:
        """From now on it speaks for nobody."""
        return _key(gate.revoke(self.space, key))

    def keys(self) -> KeysReport:
        with self.space.ledger.reading() as db:
            return KeysReport(tuple(_key(one) for one in queue.enrolments(db)))

    # --- asking and answering -----------------------------------------------------------------------------

    def ask(self, *signed: bytes) -> DeliveryReport:
        """Take in signed wishes; what is authorised by its signature is planned and quarantined at once."""
        return DeliveryReport(self._onward(gate.deliver(self.space, signed)))

    def decide(self, signed: bytes) -> DeliveryReport:
        """Take in a signed verdict."""
        return DeliveryReport(self._onward((gate.decide(self.space, signed),)))

    def say(self, request: str, saying: Saying, reason: str = "", key: SecretKey | None = None) -> DeliveryReport:
        """Say it here: signed with the key of whoever says it, or by the custodian's own hand."""
        if key is not None:
            return self.decide(self.verdict(request, saying, reason, key).to_bytes())
        if saying == "approve":
            raise SettingError("key", None, "an operator's, for nobody approves unsigned")
        return DeliveryReport(self._onward((gate.by_hand(self.space, request, saying, reason),)))

    def wish(
        self, scope: Scope, key: SecretKey, reason: str = "", basis: str = "", request: str = "", days: int = 31
    ) -> Signed:
        """A wish signed with an enrolled key, to be given to `ask` here or elsewhere."""
        said = self._said(key, request, days)
        return Signed.sign(Wish(said, scope, reason, basis).to_document(), key)

    def verdict(self, request: str, saying: Saying, reason: str, key: SecretKey) -> Signed:
        one, said = self._found(request), self._said(key, request, 1)
        return Signed.sign(Verdict(said, one.digest or "0" * 64, saying, reason).to_document(), key)

    def _said(self, key: SecretKey, request: str, days: int) -> Said:
        with self.space.ledger.reading() as db:
            who = queue.enrolment(db, str(key.public))
        if who is None:
            raise SettingError("key", str(key.public), "one that is enrolled: `fedforget enroll DIR` does that")
        now = self.space.ledger.clock()
        return fresh(self.space.settings.federation, who.role, who.name, now, timedelta(days=days), request)

    def _onward(self, receipts: tuple[Receipt, ...]) -> tuple[Receipt, ...]:
        """Plan and quarantine at once; where that cannot be done here and now, `run` does it."""
        if not any(receipt.state == "authorised" for receipt in receipts):
            return receipts
        with suppress(DataError, MissingExtra, WorkspaceBusy):
            outlook.advance(self.space)
        with self.space.ledger.reading() as db:
            now = {receipt.request: queue.find(db, receipt.request) for receipt in receipts}
        return tuple(
            Receipt(r.request, one.state, r.again, r.kind, r.why) if (one := now[r.request]) else r for r in receipts
        )

    # --- looking ------------------------------------------------------------------------------------------

    def list(self, states: Iterable[str] = (), after: int = 0, limit: int | None = None) -> RequestsReport:
        """In order of receipt. A page (`after` the number of a request, at most `limit`) counts nothing but itself."""
        with self.space.ledger.reading() as db:
            some = queue.listed(db, tuple(states), after, limit)
            whole = limit is None
            cells = tuple((t, s, since) for (t, s), since in queue.left_out(db).items()) if whole else ()
            return RequestsReport(tuple(map(self._line, some)), queue.counts(db) if whole else {}, cells)

    def show(self, request: str) -> RequestReport:
        one = self._found(request)
        with self.space.ledger.reading() as db:
            said = queue.verdicts(db, one)
        outcome = None
        if one.rebuild is not None:
            outcome = self.space.ledger.request(one.rebuild).body.get("outcome")
        verdicts = tuple(
            SaidLine(v.verdict, v.time, *_by(v.document), reason=str(v.document.get("reason", ""))) for v in said
        )
        return RequestReport(self._line(one), one.digest, one.document, one.key, one.signature, verdicts, outcome)

    def _found(self, request: str) -> Queued:
        with self.space.ledger.reading() as db:
            one = queue.find(db, request)
        if one is None:
            raise UnknownRequest(request)
        return one

    def _line(self, one: Queued) -> RequestLine:
        received = instant(one.received)
        open_still = one.warn is not None
        return RequestLine(
            one.id,
            one.state,
            str(outlook.scope_of(one)),
            *_by(one.document),
            one.received,
            spell(a_month_after(received)),
            warning(received, self.space.ledger.clock()) if open_still else "",
            one.reason or "",
            one.rebuild,
            one.executed,
        )

    # --- working ------------------------------------------------------------------------------------------

    def run(
        self,
        now: bool = False,
        method: str = "exact",
        calibration: Calibration | None = None,
        progress: Progress = silent,
    ) -> RunReport:
        """Work the queue once: carry out what is due (with `now`: all that waits), finish what was interrupted."""
        method_named(method)
        with self.space._working():
            return worker.run(self.space, now, method, calibration or Calibration(), progress)

    def watch(
        self,
        told: Callable[[RunReport], None],
        every: float = 60.0,
        method: str = "exact",
        calibration: Calibration | None = None,
        progress: Progress = silent,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Work the queue again and again, until interrupted."""
        if not every > 0:
            raise SettingError("every", every, "more than 0 seconds")
        worker.watch(lambda: self.run(False, method, calibration, progress), told, every, sleep)

    def policy(self, window_hours: int | None = None, backup_days: int | None = None) -> PolicyReport:
        """How long requests are gathered, and how long backups are kept: told, or declared anew."""
        known = worker.policy(self.space)
        if window_hours is None and backup_days is None:
            return known
        new = PolicyReport(
            known.window_hours if window_hours is None else window_hours,
            known.backup_days if backup_days is None else backup_days,
        )
        if not 0 <= new.window_hours <= _MOST_HOURS:
            raise SettingError("window", new.window_hours, f"from 0 to {_MOST_HOURS} hours, for a month is short")
        if not 0 <= new.backup_days <= 3660:
            raise SettingError("backup days", new.backup_days, "from 0 to 3660")
        self.space.ledger.declare("policy", vars(new))
        return new


def _key(one: Enrolment) -> KeyReport:
    return KeyReport(one.key, PublicKey.parse(one.key).id, one.role, one.name, one.enrolled, one.revoked)


def _by(document: object) -> tuple[str, str]:
    """Role and name of whoever signed it; unsigned it was the custodian."""
    by = document.get("by") if isinstance(document, dict) else None
    return (str(by["role"]), str(by["name"])) if isinstance(by, dict) else ("custodian", "")
