"""Processes of a federation: they come up, say why if they do not, and never outlive whoever started them."""

import datetime
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from aftermath import gone
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from fedforget.errors import MissingExtra, ProcessFailed, SettingError, UnknownNode
from fedforget.processes import Node, up
from fedforget.processes.certificates import make_certificates, make_node_key
from fedforget.processes.children import children
from fedforget.processes.tools import Tools, find_tools

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


def commands(folder: Path, **scripts: str) -> Path:
    """A folder with commands of Flower's names that do something else."""
    folder.mkdir(exist_ok=True)
    for name in ("flwr", "flower-superlink", "flower-supernode", "flower-superexec"):
        path = folder / name
        path.write_text("#!/bin/sh\n" + scripts.get(name.replace("-", "_"), "exit 0") + "\n")
        path.chmod(0o755)
    return folder


# --- children -----------------------------------------------------------------------------------------------


def test_children_end_with_their_owner_however_it_ends(tmp_path: Path) -> None:
    """The owner is killed hard; it has a child, the child a child of its own in another session."""
    code = (
        "import sys, time, pathlib\n"
        "from fedforget.processes.children import children\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        "with children() as found:\n"
        "    words = ['sh', '-c', 'setsid sleep 600 & echo $!; wait']\n"
        "    child = found.start('one', words, log, {'PATH': '/usr/bin:/bin'})\n"
        "    while not child.said(): time.sleep(0.02)\n"
        "    print(child.process.pid, child.said().strip(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        child, grandchild = map(int, owner.stdout.readline().split())
        owner.kill()
        owner.wait()
    assert gone(child)
    assert gone(grandchild)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_is_ended_with_all_it_started(tmp_path: Path, how: signal.Signals) -> None:
    with children() as found:
        script = "setsid sleep 600 & echo $!; wait"
        child = found.start("one", ["sh", "-c", script], tmp_path / "log", os.environ)
        while not child.said():
            time.sleep(0.02)
        found.end("one", how)
        found.end("one", how)  # nobody of that name any more: nothing to do
        assert gone(int(child.said()))
        assert child.process.returncode == -how
        assert found.running == {}


def test_a_child_that_does_not_listen_is_forced(tmp_path: Path) -> None:
    with children() as found:
        child = found.start("deaf", ["sh", "-c", "trap '' TERM; echo on; sleep 600"], tmp_path / "log", os.environ)
        while not child.said():
            time.sleep(0.02)
        found.end("deaf", patience=0.1)
    assert child.process.returncode == -signal.SIGKILL


def test_a_log_is_carried_on_and_each_process_knows_its_own_part(tmp_path: Path) -> None:
    with children() as found:
        for word in ("first", "second"):
            child = found.start("one", ["echo", word], tmp_path / "log", os.environ)
            child.process.wait()
            assert child.said() == word + "\n"
            assert [c.name for c in found.dead()] == ["one"]
            found.end("one")
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


# --- keys ---------------------------------------------------------------------------------------------------


def test_the_certificate_opens_a_connection_to_this_machine_and_to_no_other_name(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates", datetime.datetime.now(datetime.UTC))
    assert made.exist()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.server, made.server_key)
    client = ssl.create_default_context(cafile=str(made.authority))
    client.verify_flags |= ssl.VERIFY_X509_STRICT

    def shake(name: str) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(10)
            theirs.settimeout(10)
            side = threading.Thread(target=_answer, args=(server, theirs))
            side.start()
            try:
                client.wrap_socket(ours, server_hostname=name).close()
            finally:
                ours.close()
                side.join()

    for name in ("localhost", "127.0.0.1", "::1"):
        shake(name)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake("example.org")


def _answer(server: ssl.SSLContext, link: socket.socket) -> None:
    with suppress(OSError):
        server.wrap_socket(link, server_side=True).close()


def test_secrets_are_for_their_owner_alone_and_the_authoritys_key_is_nowhere(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates", datetime.datetime.now(datetime.UTC))
    public = make_node_key(tmp_path / "key")
    for path in (made.server_key, tmp_path / "key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in made.folder.iterdir()) == ["ca.crt", "server.crt", "server.key"]
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes()).public_key()
    server = serialization.load_pem_private_key(made.server_key.read_bytes(), None).public_key()
    encoding, shape = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    assert authority.public_bytes(encoding, shape) != server.public_bytes(encoding, shape)
    node = serialization.load_ssh_private_key((tmp_path / "key").read_bytes(), None).public_key()
    assert serialization.load_ssh_public_key(public.read_bytes()) == node


# --- coming up ----------------------------------------------------------------------------------------------


def test_any_path_may_stand_in_a_node_config(tmp_path: Path) -> None:
    folder = tmp_path / """it's "mine" \\ ünd 日本"""
    node = Node("client-000", 0, folder)
    config = tomllib.loads(node.write(3, {"fault": "crash", "seconds": 1.5}).read_text())
    assert config == {
        "client": "client-000",
        "partition-id": 0,
        "num-partitions": 3,
        "slice-dir": str(folder / "slices"),
        "fault": "crash",
        "seconds": 1.5,
    }


def test_without_flower_the_way_to_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'fedforget\[flower\]'"), up(1, commands=tmp_path):
        pass


@pytest.mark.parametrize(("nodes", "simulation"), [(0, False), (501, False), (1, True)])
def test_a_number_of_nodes_that_cannot_be_is_refused(nodes: int, simulation: bool) -> None:
    with pytest.raises(SettingError, match="nodes"), up(nodes, simulation=simulation):
        pass


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = up(1, folder=tmp_path / "f", port=port, commands=commands(tmp_path / "bin"))
        with pytest.raises(SettingError, match="a port nobody listens on"), busy:
            pass
    assert not list((tmp_path / "f" / "logs").iterdir())


def test_a_superlink_that_ends_says_what_it_said(tmp_path: Path) -> None:
    bin = commands(tmp_path / "bin", flower_superlink="echo the database is locked; exit 3")
    with (
        pytest.raises(ProcessFailed, match=r"superlink ended with code 3.*the database is locked") as found,
        up(1, folder=tmp_path / "f", commands=bin),
    ):
        pass
    assert found.value.log == str(tmp_path / "f" / "logs" / "superlink.log")


def test_a_superlink_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    bin = commands(tmp_path / "bin", flower_superlink="echo $$; exec sleep 600")
    with (
        pytest.raises(ProcessFailed, match=r"superlink was not ready within 0.5 s"),
        up(1, folder=tmp_path / "f", commands=bin, patience=0.5),
    ):
        pass
    assert gone(int((tmp_path / "f" / "logs" / "superlink.log").read_text()))


HEALTHY = """
while [ "$1" != --port ]; do shift; done
exec {python} -S -c 'import http.server as h, sys
class Fine(h.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
h.HTTPServer(("127.0.0.1", int(sys.argv[1])), Fine).serve_forever()' "$2"
"""


def standing_in(folder: Path, node: str) -> Path:
    """Commands that come up as Flower's do; they know nothing else."""
    return commands(folder, flower_superlink=HEALTHY.format(python=sys.executable), flower_supernode=node)


def test_a_node_that_never_comes_up_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    bin = standing_in(tmp_path / "bin", "echo the key is not registered; exit 1")
    with (
        pytest.raises(ProcessFailed, match=r"client-000 ended with code 1.*the key is not registered"),
        up(2, folder=tmp_path / "f", commands=bin),
    ):
        pass


def test_what_is_up_tells_who_fell_and_ends_with_the_superlink(tmp_path: Path) -> None:
    bin = standing_in(tmp_path / "bin", "echo SuperNode ID: 77; exec sleep 600")
    told: list[str] = []
    steps: list[tuple[str, int, int]] = []
    with up(2, folder=tmp_path / "f", commands=bin, progress=lambda *step: steps.append(step)) as found:
        report = found.report()
        assert report.nodes == {"client-000": "77", "client-001": "77"}
        assert report.address == found.address
        assert steps[-1] == ("SuperNodes", 2, 2)
        fallen = found.children.running["client-001"].process
        fallen.kill()
        fallen.wait()

        def tell(line: str) -> None:
            told.append(line)
            superlink = found.children.running["superlink"].process
            superlink.kill()
            superlink.wait()

        with pytest.raises(ProcessFailed, match="superlink ended with code -9"):
            found.watch(tell)
        for call in (found.kill, found.stop, found.start, found.unregister):
            with pytest.raises(UnknownNode, match="there are client-000, client-001"):
                call("client-007")
        pids = [child.process.pid for child in found.children.running.values()]
    assert len(told) == 1
    assert told[0].startswith("client-001 ended with code -9")
    assert all(gone(pid) for pid in pids)


def test_made_again_it_keeps_its_port(tmp_path: Path) -> None:
    bin = standing_in(tmp_path / "bin", "echo SuperNode ID: 77; exec sleep 600")
    ports = set()
    for _ in range(2):
        with up(1, folder=tmp_path / "f", commands=bin) as found:
            ports.add(found.port)
    assert len(ports) == 1


def test_an_answer_that_is_no_answer_is_an_error(tmp_path: Path) -> None:
    words: Callable[[str], Tools] = lambda said: find_tools(tmp_path, commands(tmp_path / "bin", flwr=said))  # noqa: E731
    assert words("""echo '{"success": true, "x": 1}'""").flwr("list")["x"] == 1
    for said in ("echo what", "echo '[1]'", """echo '{"success": false}'""", """echo '{"success": true}'; exit 1"""):
        with pytest.raises(ProcessFailed, match="flwr list ended with code"):
            words(said).flwr("list")


FLWR = """
case "$1" in
    run) while [ $# -gt 0 ]; do [ "$1" = --run-config ] && cat "$2" >> {folder}/config; shift; done
         echo '{{"success": true, "run-id": "77"}}' ;;
    log) printf '\\033[92mINFO\\033[0m : first\\n'; sleep {seconds}; echo last ;;
    list) echo '{{"success": true, "runs": [{{"status": "{status}", "status-details": "because"}}]}}' ;;
esac
"""


@pytest.mark.parametrize(
    ("status", "seconds", "why"),
    [
        ("finished:completed", 0, ""),
        ("finished:failed", 0, r"run 77 is finished:failed \(because\).*INFO : first \| last"),
        ("running", 0, "run 77 was not over within 2 s"),
        ("running", 60, "run 77 was not over within 2 s"),
    ],
)
def test_a_run_is_waited_for_and_its_log_passed_on(tmp_path: Path, status: str, seconds: int, why: str) -> None:
    bin = standing_in(tmp_path / "bin", "echo SuperNode ID: 77; exec sleep 600")
    commands(bin, **scripts(bin, flwr=FLWR.format(folder=tmp_path, seconds=seconds, status=status)))
    told: list[str] = []
    with up(1, folder=tmp_path / "f", commands=bin) as found:
        config = {"a": 'it\'s "mine"', "b": 2, "c": 0.5, "d": True}

        def run() -> None:
            done = found.run(tmp_path, config, federation={"x": 1}, patience=2.0, tell=told.append).expect()
            assert (done.number, done.over) == ("77", True)

        if why:
            with pytest.raises(ProcessFailed, match=why):
                run()
        else:
            run()
        with pytest.raises(ProcessFailed, match="it never said 'more'"):
            found.submit(tmp_path).wait_for("more", 0.5)
        found.submit(tmp_path).wait_for("first", 20)
    assert told == ["INFO : first"] + (["last"] if not seconds else [])
    assert tomllib.loads((tmp_path / "config").read_text()) == config


def scripts(folder: Path, **changed: str) -> dict[str, str]:
    """What stands in already, but for the changes."""
    kept = {p.name.replace("-", "_"): p.read_text().partition("\n")[2] for p in folder.iterdir()}
    return {**kept, **changed}


def test_without_tls_a_node_is_unregistered_by_the_id_it_came_online_with(tmp_path: Path) -> None:
    bin = standing_in(tmp_path / "bin", "echo SuperNode ID: 77; exec sleep 600")
    flwr = f"echo $@ >> {tmp_path}/words; echo '{{\"success\": true}}'"
    commands(bin, **scripts(bin, flwr=flwr))
    with up(1, folder=tmp_path / "f", commands=bin) as found:
        found.unregister("client-000")
        assert found.online == {}
        found.restart_superlink()
        found.stop("client-000")
        found.start("client-000", why="not")
        assert tomllib.loads((found.nodes["client-000"].folder / "node.toml").read_text())["why"] == "not"
        found.kill("client-000")
    assert (tmp_path / "words").read_text().startswith("supernode unregister 77 local-dir")
