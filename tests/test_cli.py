"""The command line: the workspace's verbs, one JSON document where asked, an exit code a kind of error.

`run` calls what the console script calls, in this process; where terminals and streams matter a real one is started.
"""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fedforget import __version__, cli, errors
from fedforget.workspace import FederationSettings, Workspace
from fedforget.workspace.lock import locked

SIZE = ("--clients", "6", "--shards", "2", "--participants", "2", "--rounds", "2", "--epochs", "1")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document that is all of stdout."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`fedforget …` in this process."""
    monkeypatch.delenv("FEDFORGET_PASSPHRASE", raising=False)
    monkeypatch.delenv("FEDFORGET_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["fedforget", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        code = end.value.code or 0
        assert isinstance(code, int)
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def failing(run: Run) -> Callable[..., str]:
    """A call that must fail with this exit code, in one line, with nothing on stdout."""

    def call(code: int, *words: object) -> str:
        said = run(*words)
        assert said.out == ""
        assert said.err.startswith("fedforget: ")
        assert said.err.count("\n") == 1
        assert said.err.endswith("\n")
        assert said.code == code, said.err
        return said.err.removeprefix("fedforget: ").rstrip("\n")

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained workspace."""
    path = tmp_path_factory.mktemp("cli") / "made"
    Workspace.init(path, FederationSettings(clients=6, shards=2, participants=2, rounds=2, epochs=1)).close()
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, made: Path) -> Path:
    import shutil

    path = tmp_path_factory.mktemp("cli") / "trained"
    shutil.copytree(made, path)
    with Workspace.open(path) as space:
        space.train()
    return path


@pytest.fixture(scope="module")
def drawn(trained: Path) -> str:
    """Somebody who took part in the first round."""
    with Workspace.open(trained) as space:
        return space.state().plan.cohort(0, 0, 0)[0]


@pytest.fixture
def workspace(trained: Path, tmp_path: Path) -> Path:
    """A trained one, to be changed."""
    import shutil

    return Path(shutil.copytree(trained, tmp_path / "w"))


# --- every verb ---------------------------------------------------------------------------------------------


def test_a_federations_life_from_the_command_line(run: Run, tmp_path: Path) -> None:
    w = tmp_path / "w"
    for words, expected in (
        (("init", w, *SIZE, "--seats", 8), "6 clients in 2 shards"),
        (("train", w), "4 shard rounds"),
        (("train", w), "0 shard rounds, going on after 4"),
        (("status", w), "digits"),
        (("status", w, "--clients"), "client-005  shard"),
        (("plan", w, "--client", "client-001"), "would"),
        (("forget", w, "--client", "client-001", "-c", "client-002"), "Guarantee X1 (exact)"),
        (("stage", w, "--join", 2, "--leave", "client-003", "--handover", "merged"), "warning"),
        (("train", w), "Stage 1"),
        (("verify", w, "--replay", 1, "--never-joined"), "ok   never joined"),
        (("scrub", w), "0 missing or altered"),
        (("repair", w, "--gone", "client-000"), "slices again"),
        (("evaluate", w), "ensemble"),
        (("storage", "--clients", 20, "--rounds", 2), "coded, shard"),
        (("data", "digits", "--show"), "digits"),
    ):
        said = run(*words)
        assert said.code == 0, said
        assert said.err == ""
        assert expected in said.out
        assert "\x1b" not in said.out


def test_with_json_each_verb_prints_one_document_and_nothing_else(run: Run, tmp_path: Path) -> None:
    w = tmp_path / "w"
    for words, key, value in (
        (("init", w, *SIZE), "clients", 6),
        (("train", w), "rounds", 4),
        (("status", w), "stage", 0),
        (("status", w, "--clients"), "members", [[f"client-{i:03d}", s] for i, s in _shards(tmp_path).items()]),
        (("plan", w, "-c", "client-001"), "clients", ["client-001"]),
        (("forget", w, "-c", "client-001"), "method", "exact"),
        (("stage", w), "stage", 1),
        (("train", w), "stage", 1),
        (("verify", w, "--never-joined"), "findings", []),
        (("scrub", w), "findings", []),
        (("repair", w), "lost", []),
        (("evaluate", w), "test_examples", 360),
        (("storage", "--rounds", 2), "rounds", 2),
        (("data", "digits", "--show"), "name", "digits"),
    ):
        said = run(*words, "--json")
        assert said.code == 0, said
        assert said.err == ""
        assert said.out.count("\n}\n") == 1
        if value is not None:
            assert said.document[key] == value


def _shards(tmp_path: Path) -> dict[int, int]:
    with Workspace.init(tmp_path / "twin", FederationSettings(clients=6, shards=2, participants=2)) as space:
        return {int(c[-3:]): s for c, s in space.status(members=True).members}


def test_the_command_line_says_what_the_workspace_says(run: Run, workspace: Path, tmp_path: Path) -> None:
    import shutil

    from fedforget.workspace.reports import to_json

    twin = Path(shutil.copytree(workspace, tmp_path / "twin"))
    with Workspace.open(twin) as space:
        said = run("plan", workspace, "-c", "client-004", "--method", "clean", "--json").document
        assert said == json.loads(json.dumps(to_json(space.plan(["client-004"], "clean"))))
        said = run("forget", workspace, "-c", "client-004", "--method", "clean", "--json").document
        mine = to_json(space.forget(["client-004"], "clean"))
        for key in ("after", "guarantee", "touches", "client_epochs", "rounds", "keys_destroyed", "slices_deleted"):
            assert said[key] == json.loads(json.dumps(mine[key]))
        assert run("evaluate", workspace, "--json").document == json.loads(json.dumps(to_json(space.evaluate())))


def test_calibration_is_set_by_options(run: Run, workspace: Path, drawn: str) -> None:
    words = ("plan", workspace, "-c", drawn, "--json")
    whole = run(*words, "-m", "calibrated", "--ratio", 1).document
    every = run(*words, "-m", "calibrated", "--ratio", 1, "--interval", 2).document
    assert every["client_epochs"] < whole["client_epochs"]
    said = run(*words, "-m", "clean", "--length", 0.5).document
    assert "0.5" in said["guarantee"]["reason"]
    assert run(*words, "-m", "calibrated", "--compat", "released").code == 0


def test_settings_are_set_by_options(run: Run, tmp_path: Path) -> None:
    w = tmp_path / "w"
    words = "--learner mlp --hidden 5 --draw stage --partition by-class --share 0.5 --lr 0.2 --momentum 0.5 --batch 3"
    words += " --no-weighted --seed 9 --holders 3 --threshold 2 --history lean --compress --layout cross"
    assert run("init", w, *SIZE, *words.split()).code == 0
    with Workspace.open(w) as space:
        s = space.settings
        assert (s.learner, s.hidden, s.draw, s.partition, s.share, s.lr) == ("mlp", 5, "stage", "by-class", 0.5, 0.2)
        assert (s.momentum, s.batch, s.weighted, s.seed) == (0.5, 3, False, 9)
        k = s.keeping
        assert (k.holders, k.threshold, k.keep, k.compress, k.layout) == (3, 2, "lean", True, "cross")


def test_unless_told_half_of_up_to_twenty_holders_give_a_record_back(run: Run, tmp_path: Path) -> None:
    for clients, holders, threshold in ((6, 6, 3), (50, 20, 10), (1, 1, 1)):
        w = tmp_path / str(clients)
        assert run("init", w, "--clients", clients, "--shards", 1).code == 0
        with Workspace.open(w) as space:
            assert (space.settings.keeping.holders, space.settings.keeping.threshold) == (holders, threshold)


def test_an_interrupted_forget_is_finished_by_naming_nobody(run: Run, failing: Any, workspace: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with Workspace.open(workspace) as space, pytest.raises(KeyboardInterrupt):
        space.forget(["client-001"], progress=stop)
    assert "Unfinished: forgetting client-001" in run("status", workspace).out
    assert "takes it to its end" in failing(3, "train", workspace)
    said = run("forget", workspace)
    assert said.code == 0
    assert "Forgot client-001" in said.out


def test_an_interrupted_forget_is_given_up_by_abandon_alone(run: Run, failing: Any, workspace: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with Workspace.open(workspace) as space, pytest.raises(KeyboardInterrupt):
        space.forget(["client-001"], progress=stop)
    assert "given alone" in failing(2, "forget", workspace, "--abandon", "--client", "client-001")
    assert "Gave up forgetting client-001" in run("forget", workspace, "--abandon").out
    assert "while a forget is unfinished" in failing(2, "forget", workspace, "--abandon")


# --- help ---------------------------------------------------------------------------------------------------


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"fedforget {__version__}\n"
    for words in (["--help"], ["-h"]):
        said = run(*words)
        assert said.code == 0
        assert "Commands:" in said.out


def test_without_a_command_there_is_help_and_a_code_for_wrong_use(run: Run) -> None:
    said = run()
    assert said.code == 2
    assert said.out == ""
    assert "Commands:" in said.err


def commands() -> Iterator[str]:
    for command in cli.app.registered_commands:
        assert command.callback is not None
        yield command.name or command.callback.__name__


@pytest.mark.parametrize("name", list(commands()))
def test_each_command_explains_itself_with_an_example_in_eighty_columns(run: Run, name: str) -> None:
    said = run(name, "--help")
    assert said.code == 0
    assert f"Example: fedforget {name}" in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert "--json" in said.out


def test_the_list_of_commands_cuts_no_sentence_short(run: Run) -> None:
    _, _, listed = run("--help").out.partition("Commands:")
    assert "init" in listed
    assert "..." not in listed


# --- errors -------------------------------------------------------------------------------------------------


def test_wrong_use_is_two(failing: Any, workspace: Path, tmp_path: Path) -> None:
    failing(2, "status")
    failing(2, "nonsense")
    failing(2, "status", workspace, "--nonsense")
    failing(2, "init", tmp_path / "n", "--clients", "many")
    assert "shards" in failing(2, "init", tmp_path / "n", "--clients", 3, "--shards", 4)
    assert "client-777" in failing(2, "forget", workspace, "-c", "client-777")
    assert "../../x" in failing(2, "plan", workspace, "-c", "../../x")
    assert "client" in failing(2, "forget", workspace)
    assert "client" in failing(2, "plan", workspace)
    assert "method" in failing(2, "plan", workspace, "-c", "client-001", "-m", "prayer")
    assert "ratio" in failing(2, "plan", workspace, "-c", "client-001", "--ratio", 0)
    assert "interval" in failing(2, "plan", workspace, "-c", "client-001", "--interval", 0)
    assert "compat" in failing(2, "plan", workspace, "-c", "client-001", "--compat", "x")
    assert "length" in failing(2, "plan", workspace, "-c", "client-001", "--length", -1)
    assert "join" in failing(2, "stage", workspace, "--join", 1)
    assert "handover" in failing(2, "stage", workspace, "--handover", "x")
    assert "data set" in failing(2, "data", "nonsense")
    assert "portion" in failing(2, "scrub", workspace, "--portion", -1)
    assert "replay" in failing(2, "verify", workspace, "--replay", -1)
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("option", ["--parameters", "--layers", "--clients", "--shards", "--participants", "--rounds"])
def test_storage_of_nothing_is_wrong_use_too(failing: Any, option: str) -> None:
    assert option.strip("-") in failing(2, "storage", option, 0)


@pytest.mark.parametrize(("option", "value"), [("--wrong", -0.1), ("--wrong", 0.5), ("--rate", 0), ("--shards", 101)])
def test_storage_that_cannot_be_is_wrong_use(failing: Any, option: str, value: float) -> None:
    assert option.strip("-") in failing(2, "storage", option, value)


def test_forgotten_before_is_two(run: Run, failing: Any, workspace: Path) -> None:
    run("forget", workspace, "-c", "client-001")
    before = run("status", workspace, "--clients", "--json").out
    assert "forgotten before" in failing(2, "forget", workspace, "-c", "client-001")
    assert run("status", workspace, "--clients", "--json").out == before


def test_a_directory_that_is_not_what_it_should_be_is_three(failing: Any, made: Path, tmp_path: Path) -> None:
    for verb in ("train", "status", "verify", "evaluate", "scrub", "repair", "stage", "forget"):
        assert "is no workspace" in failing(3, verb, tmp_path)
    assert "is not empty" in failing(3, "init", made)
    assert "fedforget train" in failing(3, "stage", made)
    (tmp_path / "file").write_text("dear")
    assert "is not empty" in failing(3, "init", tmp_path / "file")
    assert "is not empty" in failing(3, "demo", made)


def test_busy_is_four(failing: Any, workspace: Path) -> None:
    with locked(workspace):
        for words in (("train",), ("stage",), ("repair",), ("scrub",), ("verify",), ("forget", "-c", "client-001")):
            assert f"process {os.getpid()}" in failing(4, words[0], workspace, *words[1:])


def test_damage_is_five(failing: Any, workspace: Path) -> None:
    (workspace / "keys" / "epoch-0.key").write_bytes(b"")
    assert "epoch-0.key" in failing(5, "status", workspace)
    (workspace / "ledger.db").write_bytes(b"SQLite format 3\0 or so")
    assert "ledger.db" in failing(5, "status", workspace)


def test_too_few_slices_is_six_and_verify_says_twelve(run: Run, failing: Any, workspace: Path, drawn: str) -> None:
    for file in (workspace / "holders").rglob("*.slice"):
        if "server.head" not in str(file):
            file.unlink()
    assert "bring holders back" in failing(6, "forget", workspace, "-c", drawn, "-m", "calibrated")
    for words in ((), ("--json",)):
        said = run("verify", workspace, *words)
        assert said.code == 12
        assert said.err.startswith("fedforget: verification failed: slices: ")
        assert said.err.count("\n") == 1
        if words:
            assert not said.document["checks"][1]["passed"]
        else:
            assert "FAIL slices" in said.out
            assert "more" in said.out.splitlines()[-1]


def test_a_wrong_passphrase_is_seven(failing: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDFORGET_PASSPHRASE", "open sesame, please")
    assert run("init", tmp_path / "w", *SIZE).code == 0
    assert run("train", tmp_path / "w").code == 0
    monkeypatch.setenv("FEDFORGET_PASSPHRASE", "open sesame, at once")
    assert "FEDFORGET_PASSPHRASE" in failing(7, "train", tmp_path / "w")
    for nothing in ("", None):
        monkeypatch.delenv("FEDFORGET_PASSPHRASE")
        if nothing is not None:
            monkeypatch.setenv("FEDFORGET_PASSPHRASE", nothing)
        assert "FEDFORGET_PASSPHRASE" in failing(2, "status", tmp_path / "w")
        monkeypatch.setenv("FEDFORGET_PASSPHRASE", "")
    monkeypatch.setenv("FEDFORGET_PASSPHRASE", "short")
    assert "12 characters" in failing(2, "init", tmp_path / "v", *SIZE)


def test_missing_data_is_nine(failing: Any, tmp_path: Path) -> None:
    assert str(tmp_path) in failing(9, "data", "mnist", "--data", tmp_path)
    assert str(tmp_path) in failing(9, "init", tmp_path / "w", "--task", "mnist", "--data", tmp_path)
    assert not (tmp_path / "w").exists()


def test_a_federation_everybody_has_left_serves_nothing_which_is_ten(failing: Any, run: Run, workspace: Path) -> None:
    everybody = [word for i in range(6) for word in ("-c", f"client-{i:03d}")]
    said = run("forget", workspace, *everybody)
    assert said.code == 0
    assert said.out.count("has ended: nobody is left in it") == 2
    assert "no client is left" in failing(10, "evaluate", workspace)
    assert "ended" in run("status", workspace).out
    assert run("verify", workspace, "--never-joined").code == 0


def test_what_the_system_refuses_is_one_and_no_traceback(failing: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in failing(1, "init", tmp_path / "file" / "below", *SIZE)


def test_every_exit_code_is_of_one_kind() -> None:
    roots = errors.FedForgetError.__subclasses__()
    codes = [kind.exit_code for kind in roots]
    assert sorted(codes) == list(range(2, 2 + len(roots)))


# --- terminals ----------------------------------------------------------------------------------------------


@dataclass
class Terminal:
    """A real process whose stderr is a terminal of 80 columns, and whose stdout may be."""

    code: int
    out: bytes
    err: bytes


def in_a_terminal(*words: object, stdout: bool = False) -> Terminal:
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fedforget", *map(str, words)],
        stdin=theirs,
        stdout=theirs if stdout else subprocess.PIPE,
        stderr=theirs,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    err = b"".join(iter(lambda: _read(mine), b""))
    out = process.stdout.read() if process.stdout else b""
    if process.stdout:
        process.stdout.close()
    os.close(mine)
    return Terminal(process.wait(), out, err)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # the other end has closed
        return b""


def test_progress_is_shown_on_a_terminal_and_gone_afterwards(made: Path, tmp_path: Path) -> None:
    import shutil

    w = shutil.copytree(made, tmp_path / "w")
    said = in_a_terminal("train", w, "--json")
    assert said.code == 0
    assert json.loads(said.out)["rounds"] == 4
    assert b"training" in said.err
    assert b"4/4" in said.err
    rest = said.err[said.err.rindex(b"training") :]
    assert b"\x1b[2K" in rest
    assert b"training" not in rest[rest.index(b"\x1b[2K") :]


def test_errors_on_a_terminal_are_one_line_too(tmp_path: Path) -> None:
    said = in_a_terminal("status", tmp_path, stdout=True)
    assert said.code == 3
    assert said.err.count(b"\n") == 1
    assert b"Traceback" not in said.err


def test_without_a_terminal_there_is_no_progress(made: Path, tmp_path: Path) -> None:
    import shutil

    w = shutil.copytree(made, tmp_path / "w")
    done = subprocess.run([sys.executable, "-m", "fedforget", "train", str(w), "--json"], capture_output=True)
    assert done.returncode == 0
    assert done.stderr == b""
    assert json.loads(done.stdout)["rounds"] == 4


def test_a_reader_that_stops_reading_is_no_traceback(trained: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fedforget", "status", str(trained), "--clients"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        said = stderr.read()
    assert process.wait() in (0, 1)
    assert b"Traceback" not in said


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    import signal
    import time

    w = tmp_path / "w"
    settings = FederationSettings(clients=20, shards=4, participants=5, rounds=200, epochs=5)
    Workspace.init(w, settings).close()
    process = subprocess.Popen(
        [sys.executable, "-m", "fedforget", "train", str(w)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with Workspace.open(w) as space:
        deadline = time.monotonic() + 60
        while not space.ledger.rounds() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert process.returncode == 130
        assert out == b""
        assert err == b"fedforget: interrupted; the same command goes on from here\n"
        assert space.verify().passed or space.status().shards[0].rounds < 200


# --- requests -----------------------------------------------------------------------------------------------


def test_a_requests_life_from_the_command_line(
    run: Run, failing: Callable[..., str], workspace: Path, drawn: str
) -> None:
    w, keys = workspace, workspace.parent
    federation = run("status", w, "--json").document["federation"]
    for name in ("client", "ann", "bob"):
        said = run("keygen", keys / name)
        assert said.code == 0
        assert (keys / name).stat().st_mode & 0o777 == 0o600
        assert "ed25519:" in (keys / f"{name}.pub").read_text()
    assert "already" in failing(2, "keygen", keys / "ann")
    other = next(c for c in ("client-000", "client-001") if c != drawn)
    signing = ("--federation", federation, "-c", drawn, "--key", keys / "client", "--id", "r1")
    for words, expected in (
        (("enroll", w, "--client", drawn, "--key", keys / "client.pub"), f"speaks for client {drawn}"),
        (("enroll", w, "--operator", "ann", "--key", (keys / "ann.pub").read_text().strip()), "operator ann"),
        (("enroll", w, "--operator", "bob", "--key", keys / "bob.pub"), "operator bob"),
        (("enroll", w), "bob"),
        (("requests", "list", w), "No requests."),
        (("wish", keys / "wish.json", *signing), "Signed request r1"),
        (("request", w, "--file", keys / "wish.json"), "r1 quarantined"),
        (("request", w, "--file", keys / "wish.json"), "it had come before"),
        (("request", w, "-c", other, "--key", keys / "ann", "--id", "r2", "--basis", "GDPR 17(1)(b)"), "r2 received"),
        (("requests", "hold", w, "r2", "--reason", "identity"), "r2 on_hold"),
        (("requests", "release", w, "r2", "--key", keys / "bob"), "r2 received"),
        (("approve", w, "r2", "--key", keys / "bob"), "r2 quarantined"),
        (("requests", "list", w), "Left out of what is served"),
        (("requests", "show", w, "r2"), "basis: GDPR 17(1)(b)"),
        (("requests", "reject", w, "r2", "--reason", "withdrawn", "--key", keys / "ann"), "r2 rejected"),
        (("requests", "show", w, "r2"), "rejected because withdrawn"),
        (("policy", w, "--window", 12, "--backup-days", 0), "12 hours"),
        (("run", w), "1 waiting"),
        (("run", w, "--now"), "Executed: r1"),
        (("run", w), "Nothing to do."),
        (("requests", "show", w, "r1"), "guarantee X1"),
        (("requests", "list", w, "--state", "rejected", "--limit", 5), "r2"),
        (("enroll", w, "--key", keys / "ann.pub", "--revoke"), "is revoked"),
        (("migrate", w), "already"),
    ):
        said = run(*words)
        assert said.code == 0, (words, said)
        assert said.err == ""
        assert expected in said.out, (words, said)
    assert "one of --client" in failing(2, "enroll", w, "--key", keys / "bob.pub")
    assert "--file brings" in failing(2, "request", w)
    assert "never received" in failing(2, "requests", "show", w, "r9").replace("was ever", "never")
    assert "denied" in failing(13, "approve", w, "r1", "--key", keys / "bob")
    assert "file of" in failing(2, "approve", w, "r1", "--key", keys / "nothing")


def test_requests_in_json(run: Run, workspace: Path, drawn: str) -> None:
    w, keys = workspace, workspace.parent
    assert run("keygen", keys / "k", "--json").document["secret_file"] == str(keys / "k")
    enrolled = run("enroll", w, "--client", drawn, "--key", keys / "k.pub", "--json").document
    assert (enrolled["role"], enrolled["name"]) == ("client", drawn)
    assert run("enroll", w, "--json").document["keys"] == [enrolled]
    asked = run("request", w, "-c", drawn, "--key", keys / "k", "--id", "r", "--json").document
    assert asked["receipts"][0]["state"] == "quarantined"
    assert run("requests", "list", w, "--json").document["counts"] == {"quarantined": 1}
    assert run("requests", "show", w, "r", "--json").document["document"]["request"] == "r"
    assert run("policy", w, "--json").document == {"window_hours": 24, "backup_days": 30}
    assert run("run", w, "--now", "--json").document["executed"] == ["r"]
    denied = run("request", w, "--file", keys / "k.pub", "--json")
    assert denied.code == 13
    assert denied.document["receipts"][0]["kind"] == "malformed"
    assert run("migrate", w, "--json").document["found"] == 2
