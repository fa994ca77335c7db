"""Every error FedForget raises, as one tree.

    FedForgetError                      exit  1
    ├── UsageError                            2   the call itself is off
    │   ├── SettingError                          a setting has a value it cannot have
    │   ├── UnknownClient                         nobody of that name was ever enrolled
    │   ├── AlreadyForgotten                      that client was forgotten before
    │   ├── UnknownRequest                        no request of that id was ever received
    │   └── NoReference                           clean forgetting found no untainted lengths
    ├── WorkspaceError                        3   the directory is not what it should be
    │   ├── NotAWorkspace
    │   ├── WorkspaceExists
    │   ├── LedgerTooNew                          written by a later version of FedForget
    │   ├── LedgerTooOld                          written by an earlier one, and not yet migrated
    │   ├── LedgerUnreachable                     its database server does not answer
    │   ├── Unfinished                            a forget was interrupted and goes first
    │   ├── NotTrained                            nothing there yet to forget from or serve
    │   └── NothingServed                         every shard is left out until requests are carried out
    ├── WorkspaceBusy                         4   another process works on it now
    ├── Damaged                               5   a file's bytes are not those that were written
    ├── Unrecoverable                         6   too few good slices: refused, never guessed
    │   └── TooManyErrors                         more lying holders than the code can locate
    ├── SealBroken                            7   a record does not open: wrong key, moved, swapped, replayed
    │   └── KeyDestroyed                          its key was destroyed; that was the point
    ├── StorageFull                           8   the disk is full
    ├── DataError                             9   a data set is missing, cut short or altered
    ├── UpdateRefused                        10   an upload no model can be made of (NaN, wrong shape)
    │   ├── NobodyLeft                            no client is left to train with
    │   └── TrainingFailed                        the learner or its engine fails at it
    ├── MissingExtra                         11   an optional dependency is not installed
    ├── VerificationFailed                   12   what was found is not what was recorded
    ├── RequestDenied                        13   not signed by whom it must be, or not for here, or too late
    │   └── NotAllowed                            nobody of that role may do that to a request in that state
    └── NeedsHuman                           14   a request cannot be carried out as things are

Each carries its data as attributes, and its message says the way out.
"""

from collections.abc import Iterable
from typing import ClassVar


class FedForgetError(Exception):
    """Root of the tree."""

    exit_code: ClassVar[int] = 1


class UsageError(FedForgetError):
    exit_code = 2


class SettingError(UsageError):
    def __init__(self, setting: str, value: object, expected: str) -> None:
        self.setting, self.value, self.expected = setting, value, expected
        super().__init__(f"{setting} is {value!r}, but must be {expected}")


class UnknownClient(UsageError):
    def __init__(self, clients: Iterable[str], known: Iterable[str] = ()) -> None:
        self.clients, self.known = tuple(sorted(clients)), tuple(sorted(known))
        some = ", ".join(self.known[:5]) + (", …" if len(self.known) > 5 else "")
        hint = f"; enrolled are {some}" if some else ""
        super().__init__(f"never enrolled: {', '.join(self.clients)}{hint}; `fedforget status DIR --clients` lists all")


class AlreadyForgotten(UsageError):
    def __init__(self, clients: Iterable[str]) -> None:
        self.clients = tuple(sorted(clients))
        super().__init__(
            f"forgotten before: {', '.join(self.clients)}; nothing to do, `fedforget verify DIR` shows that it holds"
        )


class UnknownRequest(UsageError):
    def __init__(self, request: str) -> None:
        self.request = request
        super().__init__(f"no request {request!r} was ever received; `fedforget requests list DIR` lists all")


class NoReference(UsageError):
    def __init__(self, shard: int, why: str) -> None:
        self.shard, self.why = shard, why
        super().__init__(
            f"clean forgetting needs step lengths the leaver never touched, and shard {shard} has none: {why}; "
            "give a public constant with --length, or use --method exact"
        )


class WorkspaceError(FedForgetError):
    exit_code = 3


class NotAWorkspace(WorkspaceError):
    def __init__(self, path: object) -> None:
        self.path = str(path)
        super().__init__(f"{path} is no workspace; `fedforget init {path}` makes one")


class WorkspaceExists(WorkspaceError):
    def __init__(self, path: object, why: str = "") -> None:
        self.path, self.why = str(path), why
        way_out = f"move them away first: {why}" if why else f"choose a new directory, or `fedforget status {path}`"
        super().__init__(f"{path} is not empty; {way_out}")


class LedgerTooNew(WorkspaceError):
    def __init__(self, path: object, found: int, known: int) -> None:
        self.path, self.found, self.known = str(path), found, known
        super().__init__(
            f"{path} has ledger version {found}, this FedForget knows up to {known}; "
            "upgrade with `pip install -U fedforget`"
        )


class LedgerTooOld(WorkspaceError):
    def __init__(self, path: object, found: int, known: int) -> None:
        self.path, self.found, self.known = str(path), found, known
        super().__init__(
            f"{path} has ledger version {found}, this FedForget works with {known}; "
            "`fedforget migrate DIR` brings it up to date, a backup first"
        )


class LedgerUnreachable(WorkspaceError):
    def __init__(self, path: object, why: str) -> None:
        self.path, self.why = str(path), why
        super().__init__(
            f"the ledger's server at {path} does not answer: {why}; start it or mend the address, and run the same "
            "command again, nothing was changed"
        )


class NotTrained(WorkspaceError):
    def __init__(self, path: object, needed: str = "a trained model") -> None:
        self.path = str(path)
        super().__init__(f"{path} has no {needed.removeprefix('a ')} yet; `fedforget train {path}` goes first")


class NothingServed(WorkspaceError):
    def __init__(self, path: object, requests: Iterable[str]) -> None:
        self.path, self.requests = str(path), tuple(sorted(requests))
        super().__init__(
            f"{path} serves nothing: every shard holds what {', '.join(self.requests)} wants forgotten; "
            f"`fedforget status {path}` shows which, carrying the requests out brings them back"
        )


class Unfinished(WorkspaceError):
    def __init__(self, path: object, clients: Iterable[str], method: str) -> None:
        self.path, self.clients, self.method = str(path), tuple(sorted(clients)), method
        super().__init__(
            f"{path} is in the middle of forgetting {', '.join(self.clients)} ({method}); "
            f"`fedforget forget {path}` takes it to its end first, `fedforget forget {path} --abandon` gives it up"
        )


class WorkspaceBusy(FedForgetError):
    exit_code = 4

    def __init__(self, path: object, holder: str) -> None:
        self.path, self.holder = str(path), holder
        super().__init__(f"{path} is being worked on by {holder}; wait for it or end it, nothing was changed")


class Damaged(FedForgetError):
    exit_code = 5

    def __init__(self, path: object, expected: str, found: str) -> None:
        self.path, self.expected, self.found = str(path), expected, found
        super().__init__(
            f"{path} is damaged: expected {expected}, found {found}; restore it from a backup, "
            "or `fedforget verify DIR` to see what else is"
        )


class Unrecoverable(FedForgetError):
    exit_code = 6

    def __init__(self, record: str, needed: int, good: int, why: str = "") -> None:
        self.record, self.needed, self.good = record, needed, good
        super().__init__(
            f"{record} needs {needed} good slices and has {good}{': ' + why if why else ''}; "
            "bring holders back and try again"
        )


class TooManyErrors(Unrecoverable):
    """Raised when slices disagree and the liars cannot be told from the honest."""


class SealBroken(FedForgetError):
    exit_code = 7

    def __init__(self, record: str, why: str = "it was altered, moved or replayed") -> None:
        self.record, self.why = record, why
        super().__init__(f"{record} does not open: {why}; it is refused, never guessed")


class KeyDestroyed(SealBroken):
    def __init__(self, record: str) -> None:
        super().__init__(record, "its key was destroyed when a client was forgotten")


class StorageFull(FedForgetError):
    exit_code = 8

    def __init__(self, path: object) -> None:
        self.path = str(path)
        super().__init__(
            f"no space left to write {path}; free some and run the same command again, it goes on from here"
        )


class DataError(FedForgetError):
    exit_code = 9

    def __init__(self, path: object, expected: str, found: str, mend: str) -> None:
        self.path, self.expected, self.found, self.mend = str(path), expected, found, mend
        super().__init__(f"{path}: expected {expected}, found {found}; {mend}")


class UpdateRefused(FedForgetError):
    exit_code = 10

    def __init__(self, client: str, why: str) -> None:
        self.client, self.why = client, why
        super().__init__(f"the upload of {client} is refused: {why}; the round goes on without it")


class NobodyLeft(UpdateRefused):
    def __init__(self, where: str) -> None:
        self.where = where
        FedForgetError.__init__(self, f"no client is left in {where}; its model ends here, the other shards serve on")


class TrainingFailed(UpdateRefused):
    def __init__(self, why: str) -> None:
        self.why = why
        FedForgetError.__init__(
            self,
            f"training fails: {why}; the forget is given up and nothing was changed, mend it or choose another way",
        )


class MissingExtra(FedForgetError):
    exit_code = 11

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(f"{feature} needs an optional dependency; `pip install 'fedforget[{extra}]'`")


class VerificationFailed(FedForgetError):
    exit_code = 12

    def __init__(self, findings: Iterable[str]) -> None:
        self.findings = tuple(findings)
        super().__init__("verification failed: " + "; ".join(self.findings))


class RequestDenied(FedForgetError):
    """`kind` in a word, for the log: malformed, forged, unknown, revoked, posing, expired, taken …"""

    exit_code = 13

    def __init__(self, kind: str, why: str) -> None:
        self.kind, self.why = kind, why
        super().__init__(f"the request is denied: {why}; nothing was done but log the denial")


class NotAllowed(RequestDenied):
    def __init__(self, action: str, role: str, state: str, own: bool) -> None:
        self.action, self.role, self.state, self.own = action, role, state, own
        whose = "of its own " if own else ""
        super().__init__("not allowed", f"a request {whose}that is {state} is not for the {role} to {action}")


class NeedsHuman(FedForgetError):
    exit_code = 14

    def __init__(self, requests: Iterable[str], why: str) -> None:
        self.requests, self.why = tuple(requests), why
        super().__init__(
            f"{', '.join(self.requests)} cannot be carried out as things are: {why}; "
            "mend it and `fedforget requests release DIR ID`, or reject it"
        )
