"""The commands of log and certificates, each in words and as one JSON document."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fedforget import cli
from fedforget.workspace import FederationSettings, Workspace


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evidence") / "w"
    settings = FederationSettings(learner="softmax", clients=6, shards=2, participants=2, rounds=2, epochs=1)
    with Workspace.init(path, settings) as space:
        space.train()
        space.forget([space.state().plan.cohort(0, 0, 0)[0]])
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["fedforget", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        assert (end.value.code or 0) == code, said
        return said.out if code == 0 else said.err

    return call


def test_every_command_answers_in_words_and_as_json(made: Path, run: Any, tmp_path: Path) -> None:
    key = run("log", "key", made).strip()
    assert json.loads(run("log", "key", made, "--json")) == {"key": key}
    (file,) = made.glob("certificates/*.json")
    size = json.loads(run("log", "checkpoint", made, "--json"))["size"]
    (tmp_path / "kept").write_text(run("log", "checkpoint", made))
    (tmp_path / "later").write_text(run("log", "checkpoint", made, "--since", size, "--json"))
    with Workspace.open(made) as space:
        (leaver,) = space.state().forgotten
    salt = json.loads(run("certificate", "salt", made, "--request", 1, "--client", leaver, "--json"))["salt"]
    told = {
        ("log", "show", made, "--last", 3): "certified",
        ("log", "checkpoint", made, "--since", 2): "goes on from the log of 2",
        ("log", "prove", made, "--event", 1): "is in the log of",
        ("log", "verify", made, "--checkpoint", tmp_path / "kept", "--key", key): "unchanged",
        ("certificate", "list", made): "Not final yet: request 1",
        ("certificate", "show", file): "Not verified",
        ("certificate", "verify", file, "--key", key): "ok   the envelope is signed",
        ("certificate", "verify", file, "--key", key, "--replay", 1, made): "1 rounds trained again",
        ("certificate", "verify", file, "--key", key, "--client", leaver, "--salt", salt): f"it is about {leaver}",
        ("certificate", "salt", made, "--request", 1, "--client", leaver): salt,
        ("log", "redact", made, "--event", 1, "--why", "a test"): "Deleted what events 1 said",
        ("certificate", "issue", made, "--verifier"): "executed",
    }
    for words, said in told.items():
        assert said in run(*words), words
        if words[1] != "redact":
            assert json.loads(run(*words, "--json"))
    assert "redacted" in run("log", "show", made, "--last", 0)
    later = json.loads((tmp_path / "later").read_text())
    assert later["proof"] == []
    assert "goes on from it" in run("certificate", "verify", file, "--key", key, "--later", tmp_path / "later")


def test_what_does_not_hold_ends_with_exit_code_12(made: Path, run: Any, tmp_path: Path) -> None:
    (file,) = made.glob("certificates/*.json")
    (tmp_path / "forged").write_bytes(file.read_bytes().replace(b"payload", b"Payload", 1))
    key = run("log", "key", made).strip()
    assert "verification failed" in run("certificate", "verify", tmp_path / "forged", "--key", key, code=12)
    other = "ed25519:" + "00" * 32
    assert "not signed by" in run("certificate", "verify", file, "--key", other, code=12)
    run("certificate", "verify", file, "--key", "nothing", code=1)
    run("log", "prove", made, "--event", 999, code=2)


def test_before_anything_was_certified_the_list_says_what_makes_it_so(tmp_path: Path, run: Any) -> None:
    settings = FederationSettings(learner="softmax", clients=6, shards=2, participants=2, rounds=1, epochs=1)
    Workspace.init(tmp_path / "w", settings).close()
    assert "No certificates yet" in run("certificate", "list", tmp_path / "w")
