"""The command says what `reproduce` and `check` say: one JSON document, and a code where cells and tables differ."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedforget import cli

pytest.importorskip("matplotlib")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedforget", "reproduce", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


def document(said: tuple[int, str, str]) -> Any:
    assert said[2] == ""
    return json.loads(said[1])


def test_a_table_is_made_shown_kept_and_checked(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "results"
    first = document(run("storage", "--preset", "test", "--out", out, "--json"))["outcomes"][0]
    assert (first["target"], first["made"], first["cells"], first["of"]) == ("storage", 1, 1, 1)
    code, text, _ = run("storage", "--preset", "test", "--out", out, "--resume")
    assert code == 0
    assert "0 made now" in text
    assert "What keeping the history costs" in text
    assert document(run("all", "--check", "--out", out, "--json")) == {"pages": 1, "findings": []}
    (out / "test" / "storage.md").write_text("something else")
    code, text, error = run("storage", "--check", "--out", out)
    assert code == 12
    assert "storage.md is not what the cells say" in error
    assert run("storage", "--preset", "test", "--out", out, "--draw")[0] == 0
    assert run("storage", "--check", "--out", out)[0] == 0


def test_wrong_use_is_two_and_nothing_to_draw_nine(run: Run, tmp_path: Path) -> None:
    assert run("table2", "--out", tmp_path)[0] == 2
    assert run("theory", "--preset", "slow", "--out", tmp_path)[0] == 2
    assert run("theory", "--draw", "--out", tmp_path)[0] == 9
    assert run("theory", "--recipes", tmp_path, "--out", tmp_path)[0] == 9
