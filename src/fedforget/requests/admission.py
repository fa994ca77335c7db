"""Admission: may this signed document do what it asks? Pure: who is enrolled and what time it is are told to it."""

from dataclasses import dataclass
from datetime import datetime

from ..errors import RequestDenied
from . import lifecycle
from .lifecycle import State
from .signed import Signed
from .wish import Said, Verdict, Wish


@dataclass(frozen=True)
class Enrolment:
    """Whose key it is, and as what. `revoked`: when it stopped to count."""

    key: str
    role: str  # client | operator | auditor
    name: str
    enrolled: str
    revoked: str | None = None


@dataclass(frozen=True)
class Standing:
    """A request as far as a verdict on it has to know: who asked for what, and where it stands."""

    wish: Wish
    digest: str
    key: str  # that signed it
    state: State
    authorised: bool = False


def admit(signed: Signed, enrolment: Enrolment | None, federation: str, now: datetime) -> Wish:
    """The wish, if whoever signed it may ask for it."""
    wish = Wish.from_document(signed.document)
    _check(wish.said, enrolment, federation, now)
    lifecycle.target("ask", wish.said.role, None, own=wish.own)
    return wish


def weigh(
    verdict: Verdict,
    key: str,
    enrolment: Enrolment | None,
    asker: Enrolment | None,
    standing: Standing,
    federation: str,
    now: datetime,
) -> State:
    """The state the verdict leads to, if whoever signed it may say so. `asker`: whose key asked."""
    _check(verdict.said, enrolment, federation, now)
    wish = standing.wish
    if verdict.wish != standing.digest or verdict.said.request != wish.id:
        raise RequestDenied("other", "it is about another request than the one it names")
    if verdict.saying == "approve":
        if key == standing.key or verdict.said.name == wish.said.name:
            raise RequestDenied("alone", "who asked cannot approve: it takes a second operator")
        if asker is None or asker.revoked is not None:
            raise RequestDenied("revoked", "the key that signed the request has been revoked meanwhile")
    own = wish.own and verdict.said.role == "client" and verdict.said.name == wish.said.name
    role, state = verdict.said.role, standing.state
    return lifecycle.target(verdict.saying, role, state, own=own, authorised=standing.authorised)


def _check(said: Said, enrolment: Enrolment | None, federation: str, now: datetime) -> None:
    if said.federation != federation:
        raise RequestDenied("elsewhere", f"it is for federation {said.federation}, not {federation}")
    if enrolment is None:
        raise RequestDenied("unknown", "the key that signed it is not enrolled")
    if enrolment.revoked is not None:
        raise RequestDenied("revoked", f"the key that signed it was revoked at {enrolment.revoked}")
    if (enrolment.role, enrolment.name) != (said.role, said.name):
        raise RequestDenied(
            "posing", f"it says it is by {said.role} {said.name}, its key is {enrolment.role} {enrolment.name}'s"
        )
    said.check_time(now)
