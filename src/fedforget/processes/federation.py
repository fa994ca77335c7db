"""A federation of processes on this machine: one SuperLink, N SuperNodes, for trying out and for tests.

    DIR/flwr/               what `flwr` reads (FLWR_HOME): the connection `local-dir`
    DIR/state.db            the SuperLink's state
    DIR/certificates/       with TLS: an authority, a server's certificate
    DIR/nodes/NAME/         a node: its key pair, node.toml, slices/
    DIR/logs/NAME.log       a log a process, and one a run

Everything listens on the loopback address only. Made again over the same DIR it is the same federation: same keys, same
registrations, same slices.
"""

import datetime
import json
import re
import signal
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

from ..errors import ProcessFailed, SettingError, UnknownNode
from .certificates import Certificates, make_certificates, make_node_key
from .children import Child, Children, children
from .runs import Run
from .runs import silent as mute
from .tools import CONNECTION, Tools, find_tools, write_connection

HOST = "127.0.0.1"
SUPERLINK = "superlink"
PATIENCE = 180.0  # seconds a process may take to be ready; a loaded machine starts Python slowly
_ONLINE = re.compile(r"SuperNode ID: (\d+)")
_MOST = 500
_MISSED = 75.0  # two of Flower's heartbeats, and a margin: so long a node that died is taken to be online
_AGAIN = 3.0  # seconds between attempts to come back
_AT_ONCE = 4  # keys being registered: each is a process that mostly loads itself
_LOOK = 0.5  # seconds between looks at who is still there
Config = Mapping[str, str | int | float | bool]
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Nobody looks."""


@dataclass(frozen=True)
class Node:
    """A SuperNode's place: its name is its client's."""

    name: str
    index: int
    folder: Path

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def slices(self) -> Path:
        return self.folder / "slices"

    @property
    def registered_as(self) -> Path:
        return self.folder / "node-id"

    def write(self, total: int, extra: Config) -> Path:
        """Its node-config, a TOML file: any path may stand in it."""
        self.slices.mkdir(parents=True, exist_ok=True)
        config: Config = {
            "client": self.name,
            "partition-id": self.index,
            "num-partitions": total,
            "slice-dir": str(self.slices),
            **extra,
        }
        path = self.folder / "node.toml"
        path.write_text(_toml(config))
        return path


@dataclass(frozen=True)
class FederationReport:
    """What somebody who wants to use it has to know."""

    folder: str
    address: str
    tls: bool
    nodes: Mapping[str, str]  # name → Flower's node id
    connection: str
    home: str  # FLWR_HOME for `flwr`


@dataclass(frozen=True)
class LocalFederation:
    """The handle on a federation that is up."""

    folder: Path
    nodes: Mapping[str, Node]
    certificates: Certificates | None
    port: int
    tools: Tools
    children: Children
    patience: float = PATIENCE
    simulation: bool = False
    online: dict[str, str] = field(default_factory=dict)  # name → Flower's node id
    missed: dict[str, float] = field(default_factory=dict)  # name → until when Flower may believe it is still there

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "state.db"

    @property
    def environment(self) -> Mapping[str, str]:
        """What `flwr` must find in its environment to reach this federation."""
        return self.tools.env

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def report(self) -> FederationReport:
        safe, home = self.certificates is not None, str(self.tools.folder)
        return FederationReport(str(self.folder), self.address, safe, dict(self.online), CONNECTION, home)

    def watch(self, tell: Callable[[str], None]) -> None:
        """Stay until interrupted; a node that ends is told of, without the SuperLink there is nothing to stay for."""
        told: set[str] = set()
        while True:
            for child in self.children.dead():
                if child.name == SUPERLINK:
                    raise child.failed(f"ended with code {child.process.returncode}")
                if child.name not in told:
                    tell(str(child.failed(f"ended with code {child.process.returncode}")))
                    told.add(child.name)
            time.sleep(_LOOK)

    # --- running apps -------------------------------------------------------------------------------------

    def submit(self, app: Path, config: Config | None = None, federation: Config | None = None) -> Run:
        """`flwr run APP local-dir --run-config …`; does not wait for it to end."""
        words = ["run", str(app), CONNECTION]
        words += [
            word for name, value in (federation or {}).items() for word in ("--federation-config", f"{name}={value}")
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            if config:
                file.write(_toml(config))
                file.flush()
                words += ["--run-config", file.name]
            answer = self.tools.flwr(*words)
        number = str(answer["run-id"])
        return Run(number, self.folder / "logs" / f"run-{number}.log", self.tools)

    def run(
        self,
        app: Path,
        config: Config | None = None,
        *,
        federation: Config | None = None,
        patience: float = 600.0,
        tell: Callable[[str], None] = mute,
    ) -> Run:
        """Run an app to its end; `tell` gets every line its ServerApp logs."""
        return self.submit(app, config, federation).wait(patience, tell)

    # --- the SuperLink ------------------------------------------------------------------------------------

    def start_superlink(self) -> None:
        words = [
            *("--host", HOST, "--port", str(self.port), "--database", str(self.database)),
            "--disable-runtime-dependency-installation",
            *(["--simulation"] if self.simulation else []),
            *self._safety(),
        ]
        command = [self.tools.command("flower-superlink"), *words]
        child = self.children.start(SUPERLINK, command, self.log(SUPERLINK), self.tools.env)
        self._await(child, self._answers)

    def kill_superlink(self) -> None:
        """As when its machine loses power: nothing is said or written any more."""
        self.children.end(SUPERLINK, signal.SIGKILL)

    def restart_superlink(self) -> None:
        self.children.end(SUPERLINK)
        self.start_superlink()

    def _safety(self) -> list[str]:
        if self.certificates is None:
            return ["--insecure"]
        found = self.certificates
        files = ("--ssl-certfile", str(found.server), "--ssl-keyfile", str(found.server_key))
        return [*files, "--ssl-ca-certfile", str(found.authority), "--enable-supernode-auth"]

    def _answers(self, child: Child) -> bool:
        with suppress(OSError, HTTPException):
            if self.certificates is None:
                link = HTTPConnection(HOST, self.port, timeout=5)
            else:
                trust = ssl.create_default_context(cafile=str(self.certificates.authority))
                link = HTTPSConnection(HOST, self.port, timeout=5, context=trust)
            with ExitStack() as stack:
                stack.callback(link.close)
                link.request("GET", "/health")
                return link.getresponse().status == 200
        return False

    # --- nodes --------------------------------------------------------------------------------------------

    def register(self, name: str) -> str:
        """Enter a node's public key at the SuperLink, once; returns Flower's id of the node."""
        node = self._node(name)
        if not node.registered_as.exists():
            public = node.key.with_name("key.pub")
            if not public.exists():
                make_node_key(node.key)
            answer = self.tools.flwr("supernode", "register", str(public), CONNECTION, "--name", name)
            node.registered_as.write_text(str(answer["node-id"]))
        return node.registered_as.read_text()

    def unregister(self, name: str) -> None:
        """Its key is accepted no longer."""
        node = self._node(name)
        number = node.registered_as.read_text() if node.registered_as.exists() else self.online[name]
        self.tools.flwr("supernode", "unregister", number, CONNECTION)
        node.registered_as.unlink(missing_ok=True)
        self.online.pop(name, None)

    def launch(self, name: str, **extra: str | int | float | bool) -> Child:
        """Start a node's process without waiting for it. `extra` goes into its node-config."""
        node = self._node(name)
        self.online.pop(name, None)
        config = node.write(len(self.nodes), {k.replace("_", "-"): v for k, v in extra.items()})
        command = [self.tools.command("flower-supernode"), "--superlink", self.address, "--host", HOST]
        command += ["--port", str(free_port()), "--node-config", str(config)]
        if self.certificates is None:
            command += ["--insecure"]
        else:
            command += ["--root-certificates", str(self.certificates.authority)]
            command += ["--auth-supernode-private-key", str(node.key)]
        return self.children.start(name, command, self.log(name), self.tools.env)

    def start(self, name: str, **extra: str | int | float | bool) -> None:
        """Start a node and wait until it is online."""
        self._settle(name, self.launch(name, **extra), extra)

    def _settle(self, name: str, child: Child, extra: Config) -> None:
        """Try again, as a supervisor would, while Flower refuses a node that it believes is still there."""
        while True:
            try:
                return self.wait_online(child)
            except ProcessFailed:
                if time.monotonic() > self.missed.get(name, 0.0):
                    raise
            time.sleep(_AGAIN)
            child = self.launch(name, **extra)

    def wait_online(self, child: Child) -> None:
        def is_online(child: Child) -> bool:
            found = _ONLINE.search(child.said())
            if found:
                self.online[child.name] = found[1]
            return found is not None

        self._await(child, is_online)

    def stop(self, name: str) -> None:
        """Ask a node to end; it takes its leave of the SuperLink."""
        self._node(name)
        self.children.end(name)
        self.online.pop(name, None)
        self.missed.pop(name, None)

    def kill(self, name: str) -> None:
        """As when its machine loses power. Flower notices after a minute, and lets it back in only then."""
        self._node(name)
        self.children.end(name, signal.SIGKILL)
        if self.online.pop(name, None) and self.certificates:
            self.missed[name] = time.monotonic() + _MISSED

    def _node(self, name: str) -> Node:
        if name not in self.nodes:
            raise UnknownNode(name, self.nodes)
        return self.nodes[name]

    def _await(self, child: Child, ready: Callable[[Child], bool]) -> None:
        until = time.monotonic() + self.patience
        while not ready(child):
            if child.process.poll() is not None:
                raise child.failed(f"ended with code {child.process.returncode} before it was ready")
            if time.monotonic() > until:
                raise child.failed(f"was not ready within {self.patience:g} s")
            time.sleep(0.1)


@contextmanager
def up(
    nodes: int,
    *,
    tls: bool = False,
    folder: Path | None = None,
    port: int = 0,
    simulation: bool = False,
    patience: float = PATIENCE,
    progress: Progress = silent,
    commands: Path | None = None,
) -> Iterator[LocalFederation]:
    """A SuperLink and its SuperNodes, online; all of them have ended when this is left, however it is left.

    `folder`: kept; without one, a temporary one that goes with the federation. `simulation`: a SuperLink that plays the
    nodes itself (Ray), so `nodes` must be 0. `commands`: where Flower's commands are, if not beside this Python.
    """
    least = 0 if simulation else 1
    if not least <= nodes <= (0 if simulation else _MOST):
        raise SettingError("nodes", nodes, "0 in a simulation" if simulation else f"from 1 to {_MOST}")
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedforget-")))
        folder = folder.resolve()
        tools = find_tools(folder / "flwr", commands)
        found = _prepared(folder, nodes, tls, port, simulation, patience, tools, stack)
        progress("SuperLink", 0, 1)
        found.start_superlink()
        progress("SuperLink", 1, 1)
        if tls:
            progress("keys", 0, nodes)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for done, _ in enumerate(pool.map(found.register, found.nodes)):
                    progress("keys", done + 1, nodes)
        started = {name: found.launch(name) for name in found.nodes}
        for done, (name, child) in enumerate(started.items()):
            progress("SuperNodes", done, nodes)
            found._settle(name, child, {})
        progress("SuperNodes", nodes, nodes)
        yield found


def _prepared(
    folder: Path, nodes: int, tls: bool, port: int, simulation: bool, patience: float, tools: Tools, stack: ExitStack
) -> LocalFederation:
    """All files of it; no process yet but the one that will end the others."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    port = _usable(port) if port else _port_of(folder) or free_port()
    certificates = None
    if tls:
        certificates = Certificates(folder / "certificates")
        if not certificates.exist():
            make_certificates(certificates.folder, datetime.datetime.now(datetime.UTC))
    write_connection(tools.folder, f"{HOST}:{port}", certificates.authority if certificates else None)
    places = {
        name: Node(name, index, folder / "nodes" / name)
        for index, name in enumerate(f"client-{number:03d}" for number in range(nodes))
    }
    for node in places.values():
        node.folder.mkdir(parents=True, exist_ok=True)
    guarded = stack.enter_context(children(last=SUPERLINK))
    # Of a federation that was here before nobody knows whether its nodes took their leave.
    missed = {n.name: time.monotonic() + _MISSED for n in places.values() if n.registered_as.exists()}
    return LocalFederation(folder, places, certificates, port, tools, guarded, patience, simulation, missed=missed)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _usable(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as fault:
            raise SettingError("port", port, f"a port nobody listens on ({fault.strerror})") from fault
    return port


def _port_of(folder: Path) -> int | None:
    """The port it had before, if it is still free: a connection written elsewhere stays right."""
    config = folder / "flwr" / "config.toml"
    found = re.search(rf'address = "{re.escape(HOST)}:(\d+)"', config.read_text()) if config.exists() else None
    if found:
        with suppress(SettingError):
            return _usable(int(found[1]))
    return None


def _toml(config: Config) -> str:
    """JSON's values are TOML's. A file, since Flower knows no escaped quotation mark on the command line."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items())
