"""The error tree: what the docstring draws is what there is, and every message says the way out."""

import re
from collections.abc import Iterator

import pytest

from fedforget import errors
from fedforget.errors import FedForgetError

EXAMPLES: dict[str, FedForgetError] = {
    "SettingError": errors.SettingError("rounds", 0, "1 or more"),
    "UnknownClient": errors.UnknownClient(["b", "a"], ["c1", "c2"]),
    "AlreadyForgotten": errors.AlreadyForgotten(["b", "a"]),
    "UnknownRequest": errors.UnknownRequest("r-1"),
    "NoReference": errors.NoReference(2, "it is alone"),
    "NotAWorkspace": errors.NotAWorkspace("W"),
    "WorkspaceExists": errors.WorkspaceExists("W"),
    "LedgerTooNew": errors.LedgerTooNew("W", 3, 2),
    "LedgerTooOld": errors.LedgerTooOld("W", 1, 2),
    "LedgerUnreachable": errors.LedgerUnreachable("postgresql://db/f", "connection refused"),
    "Unfinished": errors.Unfinished("W", ["b", "a"], "exact"),
    "NotTrained": errors.NotTrained("W"),
    "NothingServed": errors.NothingServed("W", ["by-hand-1"]),
    "WorkspaceBusy": errors.WorkspaceBusy("W", "process 7"),
    "Damaged": errors.Damaged("W/m", "4 bytes", "3"),
    "Unrecoverable": errors.Unrecoverable("record 1", 5, 4),
    "TooManyErrors": errors.TooManyErrors("record 1", 5, 4, "they disagree"),
    "SealBroken": errors.SealBroken("record 1"),
    "KeyDestroyed": errors.KeyDestroyed("record 1"),
    "StorageFull": errors.StorageFull("W/m"),
    "DataError": errors.DataError("d", "60000 pictures", "12", "fetch it again"),
    "UpdateRefused": errors.UpdateRefused("a", "it holds NaN"),
    "TrainingFailed": errors.TrainingFailed("ValueError: no such solver"),
    "NobodyLeft": errors.NobodyLeft("shard 3"),
    "MissingExtra": errors.MissingExtra("the CNN", "torch"),
    "VerificationFailed": errors.VerificationFailed(["one", "two"]),
    "RequestDenied": errors.RequestDenied("forged", "its signature does not fit"),
    "NotAllowed": errors.NotAllowed("approve", "auditor", "received", own=False),
    "NeedsHuman": errors.NeedsHuman(["r-1"], "too few slices"),
}

WAYS_OUT = {
    "SettingError": "must be 1 or more",
    "UnknownClient": "`fedforget status DIR --clients` lists all",
    "AlreadyForgotten": "nothing to do",
    "UnknownRequest": "`fedforget requests list DIR` lists all",
    "NoReference": "--length, or use --method exact",
    "NotAWorkspace": "`fedforget init W` makes one",
    "WorkspaceExists": "choose a new directory",
    "LedgerTooNew": "`pip install -U fedforget`",
    "LedgerTooOld": "`fedforget migrate DIR`",
    "LedgerUnreachable": "run the same command again",
    "Unfinished": "`fedforget forget W` takes it to its end",
    "NotTrained": "`fedforget train W` goes first",
    "NothingServed": "carrying the requests out brings them back",
    "WorkspaceBusy": "wait for it or end it",
    "Damaged": "restore it from a backup",
    "Unrecoverable": "bring holders back and try again",
    "TooManyErrors": "bring holders back and try again",
    "SealBroken": "is refused",
    "KeyDestroyed": "is refused",
    "StorageFull": "free some and run the same command again",
    "DataError": "fetch it again",
    "UpdateRefused": "the round goes on without it",
    "TrainingFailed": "mend it or choose another way",
    "NobodyLeft": "the other shards serve on",
    "MissingExtra": "`pip install 'fedforget[torch]'`",
    "VerificationFailed": "one; two",
    "RequestDenied": "nothing was done but log the denial",
    "NotAllowed": "is not for the auditor to approve",
    "NeedsHuman": "`fedforget requests release DIR ID`",
}


def drawn() -> Iterator[tuple[str, int, int | None]]:
    """(name, depth, exit code if one stands beside it) of every error in the docstring's tree."""
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([│ ├└─]*)(\w+)(?: +(?:exit +)?(\d+))?(?:   .*)?$", line)
        if found:
            yield found[2], len(found[1]) // 4, int(found[3]) if found[3] else None


def all_errors(root: type[FedForgetError] = FedForgetError) -> Iterator[type[FedForgetError]]:
    yield root
    for kind in root.__subclasses__():
        yield from all_errors(kind)


def test_the_tree_drawn_is_the_tree_there_is() -> None:
    path: list[str] = []
    parents = {}
    for name, depth, _ in drawn():
        path[depth:] = [name]
        parents[name] = path[depth - 1] if depth else "Exception"
    ours = [kind for kind in all_errors() if kind.__module__ == errors.__name__]
    assert parents == {kind.__name__: kind.__base__.__name__ for kind in ours}


def test_the_exit_codes_drawn_are_those_used_and_the_rest_is_inherited() -> None:
    for name, _, code in drawn():
        kind = getattr(errors, name)
        assert kind.exit_code == (kind.__base__.exit_code if code is None else code)
    own = [code for _, _, code in drawn() if code is not None]
    assert own == sorted(set(own)) == list(range(1, len(own) + 1))


def test_every_error_that_is_raised_is_tried_here() -> None:
    assert set(EXAMPLES) == {name for name, *_ in drawn()} - {"FedForgetError", "UsageError", "WorkspaceError"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_says_the_way_out_in_one_line(name: str) -> None:
    error = EXAMPLES[name]
    assert type(error).__name__ == name
    assert "\n" not in str(error)
    assert WAYS_OUT[name] in str(error)


def test_each_carries_its_data() -> None:
    assert EXAMPLES["UnknownClient"].clients == ("a", "b")
    assert EXAMPLES["NoReference"].shard == 2
    assert EXAMPLES["SettingError"].setting == "rounds"
    assert (EXAMPLES["LedgerTooNew"].found, EXAMPLES["LedgerTooNew"].known) == (3, 2)
    assert (EXAMPLES["Unrecoverable"].needed, EXAMPLES["Unrecoverable"].good) == (5, 4)
    assert EXAMPLES["VerificationFailed"].findings == ("one", "two")
    assert EXAMPLES["NobodyLeft"].where == "shard 3"


def test_some_of_those_enrolled_are_named_and_not_all_of_a_thousand() -> None:
    many = errors.UnknownClient(["x"], [f"c{i}" for i in range(1000)])
    assert "enrolled are c0, c1, c10, c100, c101, …" in str(many)
    assert "enrolled are" not in str(errors.UnknownClient(["x"]))
