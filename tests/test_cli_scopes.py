"""What is to be forgotten, as options: a client, its samples, a class, stages; one of them a request."""

from pathlib import Path

import pytest

from fedforget.cli.scopes import scope_of
from fedforget.errors import SettingError
from fedforget.requests import Scope
from test_cli import SIZE, Run, run  # noqa: F401  (a fixture)


@pytest.mark.parametrize(
    ("options", "scope"),
    [
        ({}, None),
        ({"client": ["b", "a"]}, Scope.of_clients(["a", "b"])),
        ({"client": ["a"], "samples": "3,5,9"}, Scope.of_samples({"a": [3, 5, 9]})),
        ({"client": ["a"], "samples": " 3 5,\n9,"}, Scope.of_samples({"a": [3, 5, 9]})),
        ({"label": 7}, Scope.of_class(7)),
        ({"client": ["a"], "label": 0}, Scope.of_class(0, ["a"])),
        ({"stages": "0-1"}, Scope.of_stages(0, 1)),
        ({"client": ["a"], "stages": "2"}, Scope.of_stages(2, 2, ["a"])),
    ],
)
def test_options_name_a_scope(options: dict[str, object], scope: Scope | None) -> None:
    assert scope_of(options.pop("client", None), **options) == scope  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"samples": "1"}, "the one client whose"),
        ({"client": ["a", "b"], "samples": "1"}, "the one client whose"),
        ({"client": ["a"], "samples": "1-3"}, "numbers with commas"),
        ({"client": ["a"], "samples": ""}, "numbers with commas"),
        ({"client": ["a"], "samples": "1", "label": 7}, "one scope a request"),
        ({"stages": "1-"}, "as in 0-1"),
        ({"stages": "3-1"}, "in this order"),
    ],
)
def test_options_that_name_none_say_what_is_meant(options: dict[str, object], word: str) -> None:
    with pytest.raises(SettingError, match=word):
        scope_of(options.pop("client", None), **options)  # type: ignore[arg-type]


def test_samples_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("3\n5\n9\n")
    assert scope_of(["a"], samples_file=path) == Scope.of_samples({"a": [3, 5, 9]})
    path.write_text("three")
    with pytest.raises(SettingError, match=r"rows\.txt"):
        scope_of(["a"], samples_file=path)


def test_samples_a_class_and_stages_from_plan_to_verify(run: Run, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "w"
    run("init", path, *SIZE)
    run("train", path)
    asked = ("--client", "client-002", "--samples", "3,5,9")
    planned = run("plan", path, *asked)
    assert "Forgetting samples of client-002 by exact would\n  drop 3 examples of clients that stay\n" in planned.out
    assert "before any forgotten example was used" in planned.out
    forgot = run("forget", path, *asked)
    assert forgot.out.startswith(
        "Forgot samples of client-002 by exact (request 1).\n  3 examples of clients that stay"
    )
    again = run("forget", path, *asked)
    assert (again.code, "forgotten before: samples of client-002" in again.err) == (2, True)
    assert run("forget", path, "--label", 7, "--json").document["guarantee"]["grade"] == "X1"
    assert run("forget", path, "--client", "client-003", "--stages", "0-0", "--json").document["scope"] == (
        "stage 0 of client-003"
    )
    verified = run("verify", path, "--never-joined")
    assert verified.code == 0, verified.out
    assert "bit-identical" in verified.out
