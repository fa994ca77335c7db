"""The files of `flower/README.md`, as they stand there, in front of a real SuperLink: who gets where."""

import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from trials import Trials

from fedforget.processes import LocalFederation
from fedforget.processes.federation import free_port
from fedforget.processes.tools import Tools

pytestmark = pytest.mark.flower

ROOT = Path(__file__).parents[2]
README = (ROOT / "flower/README.md").read_text()
HELLO = ROOT / "tests/processes/hello"
if not all(shutil.which(name) for name in ("nginx", "stunnel", "openssl")):
    pytest.skip("needs nginx, stunnel and openssl", allow_module_level=True)


def block(first: str) -> str:
    """The block of the page whose first line holds these words."""
    found: list[str] = re.findall(r"^```\w*\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return next(body for body in found if first in body.splitlines()[0])


@dataclass(frozen=True)
class Proxied:
    sites: int
    operators: int
    local: int
    federation: LocalFederation
    keys: Path

    def status(self, port: int, path: str, certificate: Path | None = None) -> int:
        certificates = self.federation.certificates
        assert certificates is not None
        trust = ssl.create_default_context(cafile=str(certificates.authority))
        if certificate:
            trust.load_cert_chain(certificate)
        link = HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)
        try:
            link.request("POST", path, b"")
            return link.getresponse().status
        finally:
            link.close()


@pytest.fixture(scope="module")
def proxied(processes: Trials, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    processes.heal()
    fed, folder = processes.federation, tmp_path_factory.mktemp("proxy")
    assert fed.certificates is not None
    subprocess.run(["sh", "-e", "-c", block("openssl")], cwd=folder, check=True, capture_output=True)
    found = Proxied(free_port(), free_port(), free_port(), fed, folder)

    def here(text: str) -> str:
        for theirs, ours in {
            "/etc/flower/server.crt": fed.certificates.server,
            "/etc/flower/server.key": fed.certificates.server_key,
            "/etc/flower/ca.crt": fed.certificates.authority,
            "/etc/flower/operators-ca.crt": folder / "operators-ca.crt",
            "/etc/flower/operator.pem": folder / "operator.pem",
            "127.0.0.1:8000": fed.address,
            "127.0.0.1:9093": f"127.0.0.1:{found.local}",
            "federation.example.org:9093": f"127.0.0.1:{found.operators}",
            "federation.example.org": "localhost",
            "listen 9092": f"listen 127.0.0.1:{found.sites}",
            "listen 9093": f"listen 127.0.0.1:{found.operators}",
        }.items():
            text = text.replace(theirs, str(ours))
        return text  # type: ignore[no-any-return]

    whole = f"daemon off; pid {folder}/pid; events {{}}\nhttp {{ access_log off;\n"
    whole += "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(whole + here(block("superlink.conf")) + "}\n")
    (folder / "stunnel.conf").write_text("pid =\n" + here(block("/etc/stunnel")))
    home = folder / "home"
    home.mkdir()
    (home / "config.toml").write_text(here(block("config.toml of the operator")))
    nginx = ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    fed.children.start("nginx", nginx, fed.log("nginx"), os.environ)
    fed.children.start("stunnel", ["stunnel", str(folder / "stunnel.conf")], fed.log("stunnel"), os.environ)
    try:
        until = time.monotonic() + 30
        while not (folder / "pid").exists():
            assert time.monotonic() < until, fed.log("nginx").read_text()
            time.sleep(0.1)
        time.sleep(1)
        yield found
    finally:
        fed.children.end("nginx")
        fed.children.end("stunnel")


def test_sites_reach_what_is_for_nodes_and_nothing_else(proxied: Proxied) -> None:
    # An empty message is not for 403 to judge: it reached the SuperLink, who refuses it.
    assert proxied.status(proxied.sites, "/v1/fleet/get-run") not in (403, 502, 504)
    for path in ("/v1/control/start-run", "/v1/control/list-nodes", "/v1/runtime/acquire-task", "/docs", "/"):
        assert proxied.status(proxied.sites, path) == 403
        assert proxied.status(proxied.sites, path, proxied.keys / "operator.pem") == 403


def test_operators_are_asked_for_a_certificate_of_their_own_authority(proxied: Proxied) -> None:
    assert proxied.status(proxied.operators, "/v1/control/list-nodes") == 400
    shown = proxied.status(proxied.operators, "/v1/control/list-nodes", proxied.keys / "operator.pem")
    assert shown not in (400, 403, 502, 504)  # it reached the SuperLink, who wants more than an empty message
    for path in ("/v1/runtime/acquire-task", "/v1/fleet/get-run"):
        assert proxied.status(proxied.operators, path, proxied.keys / "operator.pem") == 403


def test_a_node_joins_and_an_app_runs_through_the_proxy(processes: Trials, proxied: Proxied) -> None:
    fed = proxied.federation
    through = replace(fed, port=proxied.sites)
    home = proxied.keys / "home"
    tools = Tools(home, fed.tools.bin, {**fed.tools.env, "FLWR_HOME": str(home)})
    operator = replace(fed, tools=tools)
    fed.stop("client-000")
    through.start("client-000")
    try:
        # The launcher's connection is called local-dir; the operator's has another name in the same place.
        config = (home / "config.toml").read_text().replace("production", "local-dir")
        (home / "config.toml").write_text(config)
        run = operator.run(HELLO, {"nodes": len(fed.nodes)}).expect()
        assert '"client": "client-000"' in run.said
    finally:
        fed.stop("client-000")
        fed.start("client-000")
