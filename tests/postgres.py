"""A real PostgreSQL server for tests: on loopback, with a password, as a user that is not root, gone afterwards."""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

PASSWORD = "a password"
_HOMES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")


def programs() -> Path | None:
    """Where `initdb` and `postgres` of version 15 or later are."""
    found = [p for home in _HOMES for p in Path(home).glob("*/bin") if (p / "initdb").exists() and _version(p) >= 15]
    return max(found, key=_version, default=None)


def _version(path: Path) -> int:
    digits = "".join(c for c in path.parent.name if c.isdigit())
    return int(digits or 0)


@dataclass(frozen=True)
class Server:
    port: int

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://fedforget@127.0.0.1:{self.port}/{name}"

    def run(self, statement: str) -> None:
        with psycopg.connect(self._info("postgres"), autocommit=True) as db:
            db.execute(statement)

    def _info(self, name: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=fedforget password='{PASSWORD}' dbname={name}"

    def new(self, like: str = "template0") -> str:
        """A new database: empty, or a copy of another one by its address."""
        name = f"t{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {like.rpartition('/')[2]}")
        return self.url(name)


@contextmanager
def running() -> Iterator[Server]:
    """The server's own user is `postgres` where we are root, for it refuses to run as root."""
    bin = programs()
    if bin is None:
        pytest.skip("PostgreSQL 15 or later is not installed (Debian: apt-get install postgresql)")
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="fedforget-pg-", ignore_cleanup_errors=True) as folder:
        secret, data = Path(folder, "password"), Path(folder, "data")
        secret.write_text(PASSWORD)
        data.mkdir()
        if user:
            for path in (Path(folder), secret, data):
                shutil.chown(path, "postgres", "postgres")
        init = [bin / "initdb", "-D", data, "-U", "fedforget", "--pwfile", secret, "--auth=scram-sha-256", "--no-sync"]
        subprocess.run(init, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=60"]
        command = [bin / "postgres", "-D", data, "-p", str(port), *(word for o in options for word in ("-c", o))]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=folder, preexec_fn=_end_with_us, **quiet, **user)  # type: ignore[call-overload]
        try:
            server = Server(port)
            _await(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # does not wait for whoever is still connected
            process.wait(30)


def _end_with_us() -> None:
    """A test that is killed takes its server with it, where the kernel offers that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def _await(server: Server, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        assert process.poll() is None, "the server ended"
        try:
            return server.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
