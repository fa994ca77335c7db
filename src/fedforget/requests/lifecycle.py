"""Lifecycle: what may become of a request, by whose hand. One table, and nothing that is not in it is allowed.

    received → authorised → planned → quarantined → rebuilding → sealed → executed → final
    and aside: on_hold, rejected, needs_human

Roles: a *client* asks for itself, an *operator* asks for anybody with a second operator's approval, an *auditor* looks,
the *custodian* is whoever has the workspace's directory in hand (`fedforget forget` is its verb), and the *worker* is
FedForget itself, taking requests from one state to the next.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import NotAllowed

State = Literal[
    "received",
    "authorised",
    "planned",
    "quarantined",
    "rebuilding",
    "sealed",
    "executed",
    "final",
    "on_hold",
    "rejected",
    "needs_human",
]
Role = Literal["client", "operator", "auditor", "custodian", "worker"]
Action = Literal[
    "ask", "vouch", "approve", "plan", "quarantine", "rebuild", "seal", "execute", "skip", "finish",
    "hold", "release", "reject", "give_up", "go_back",
]  # fmt: skip

STATES: tuple[State, ...] = get_args(State)
ROLES: tuple[Role, ...] = get_args(Role)
ACTIONS: tuple[Action, ...] = get_args(Action)

DONE: frozenset[State] = frozenset({"executed", "final", "rejected"})  # the legal clock has stopped
WAITING: frozenset[State] = frozenset({"received", "authorised", "planned", "quarantined"})


@dataclass(frozen=True)
class Rule:
    """Who may take a request where. `own`: roles that may only where the scope is their own part and nobody else's."""

    action: Action
    roles: frozenset[Role]
    source: frozenset[State] | None  # None: there is no request yet
    target: State | None  # None: back to received, or to authorised if it once was
    own: frozenset[Role] = frozenset()


def _rule(action: Action, roles: str, source: str, target: State | None, own: str = "") -> Rule:
    states = frozenset(source.split()) if source else None
    return Rule(action, frozenset(roles.split()), states, target, frozenset(own.split()))  # type: ignore[arg-type]


_BEFORE = "received authorised planned quarantined"

RULES: tuple[Rule, ...] = (
    _rule("ask", "client operator custodian", "", "received", own="client"),
    _rule("vouch", "worker", "received", "authorised"),  # the client's own signature, or the custodian's own hand
    _rule("approve", "operator", "received", "authorised"),  # and never with the key or the name that asked
    _rule("plan", "worker", "authorised", "planned"),
    _rule("quarantine", "worker", "planned", "quarantined"),
    _rule("rebuild", "worker", "quarantined", "rebuilding"),
    _rule("seal", "worker", "rebuilding", "sealed"),
    _rule("execute", "worker", "sealed", "executed"),
    _rule("skip", "worker", "authorised planned quarantined", "executed"),  # another request had done it already
    _rule("finish", "worker", "executed", "final"),
    _rule("hold", "operator custodian", f"{_BEFORE} needs_human", "on_hold"),
    _rule("release", "operator custodian", "on_hold needs_human", None),
    _rule("reject", "client operator custodian", f"{_BEFORE} on_hold needs_human", "rejected", own="client"),
    _rule("give_up", "worker", "authorised planned quarantined rebuilding", "needs_human"),
    _rule("go_back", "worker", "planned quarantined rebuilding", "authorised"),  # a restored ledger, a new stage
)


def target(action: Action, role: Role, state: State | None, *, own: bool, authorised: bool = False) -> State:
    """The state an action leads to; refused unless a rule says so.

    `own`: whether the scope is the part of whoever acts, and nobody else's. `authorised`: whether the request once was.
    """
    for rule in RULES:
        if rule.action != action:
            continue
        right_state = state is None if rule.source is None else state in rule.source
        right_role = role in rule.roles and (own or role not in rule.own)
        if right_state and right_role:
            return rule.target or ("authorised" if authorised else "received")
    raise NotAllowed(action, role, state or "not there yet", own)
