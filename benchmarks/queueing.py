"""What the queue of requests costs as it grows, and what a batch of very many costs.

    python benchmarks/queueing.py [--sizes 100 1000 10000 100000] [--batch 10000] [--room DIR] [--json FILE]

Steps are instructions of SQLite's virtual machine, the same on every machine and under any load; milliseconds are the
machine's. An operation that is O(log n) takes about as many steps at 10⁵ requests as at 10². The batch: so many clients
of 64 shards ask at once, and a learner whose model is a hash of its inputs makes their shards again.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from fedforget.datasets import Dataset
from fedforget.examples import Examples
from fedforget.manifest import Keeping
from fedforget.params import Params
from fedforget.requests import Scope
from fedforget.requests.admission import Enrolment
from fedforget.requests.signed import Signed
from fedforget.requests.wish import Said, Wish
from fedforget.signing import SecretKey
from fedforget.storage import queue
from fedforget.storage.queue import Queued
from fedforget.workspace import FederationSettings, Task, Workspace

START = datetime(2026, 1, 1, tzinfo=UTC)
SHARDS = 64
TRIES = 9


class HashLearner:
    """Its model is a hash of what it was trained from and on: nothing is learned, and every bit depends on all."""

    def init(self, seed: int) -> Params:
        return _hashed(str(seed).encode())

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: str = "sgd") -> Params:
        return _hashed(params.vector.tobytes() + examples.x.tobytes() + f"{epochs} {seed} {solver}".encode())

    def predict(self, params: Params, x: Any) -> Any:
        return np.full((len(x), 2), 0.5, np.float32)


def _hashed(blob: bytes) -> Params:
    digest = np.frombuffer(hashlib.sha256(blob).digest(), np.uint8)
    return Params.of({"digest": digest.astype(np.float32) / np.float32(256)})


def task(clients: int) -> Task:
    mine = {f"client-{i:05d}": Examples(np.full((1, 1), i, np.float32), np.zeros(1, np.int64)) for i in range(clients)}
    test = Examples(np.zeros((2, 1), np.float32), np.zeros(2, np.int64))
    return Task(Dataset("hash", "image", test, test, ("0", "1")), HashLearner(), mine)  # type: ignore[arg-type]


def federation(path: Path, clients: int, shards: int, clock: Callable[[], datetime]) -> Workspace:
    settings = FederationSettings(
        clients=clients, shards=shards, participants=2, rounds=2, epochs=1, federation="bench",
        keeping=Keeping("shard", "full", 3, 2),
    )  # fmt: skip
    return Workspace.init(path, settings, task=task(clients), clock=clock)


def key(name: str) -> SecretKey:
    return SecretKey(hashlib.sha256(name.encode()).digest())


def wish(name: str, scope: Scope, role: str, number: int, now: datetime) -> bytes:
    said = Said("bench", f"r-{number:06d}", role, name, f"{number:032x}", now, now + timedelta(days=30))  # type: ignore[arg-type]
    return Signed.sign(Wish(said, scope).to_document(), key(name)).to_bytes()


# --- the queue as it grows --------------------------------------------------------------------------------------


def filled(space: Workspace, count: int) -> None:
    """So many requests of days gone by, final all, but for one in a hundred that waits for a second operator."""
    scope, now = Scope.of_clients(["client-00000"]), space.ledger.clock()
    with space.ledger.transaction("fill") as db:
        for number in range(count):
            said = Said("bench", f"r-{number:06d}", "operator", "ann", f"{number:032x}", now, now + timedelta(days=1))
            document = Wish(said, scope).to_document()
            state = "received" if number % 100 == 0 else "final"
            one = Queued(0, said.request, state, f"{number:064x}", document, "ed25519:", "", "2025-12-01T00:00:00Z")
            one = replace(one, warn="2026-02-01T00:00:00Z" if state == "received" else None)
            queue.receive(db, space.ledger.log, one)
            queue.use_nonce(db, "ed25519:", said.nonce, one.digest)


def operations(space: Workspace, count: int) -> Mapping[str, Callable[[int], object]]:
    """What is done to one request, told which try it is."""
    now = space.ledger.clock()
    client = [wish("client-00001", Scope.of_clients(["client-00001"]), "client", count + i, now) for i in range(TRIES)]
    scope = Scope.of_clients(["client-00002"])
    operator = [wish("ann", scope, "operator", count + TRIES + i, now) for i in range(TRIES)]
    desk, bob = space.requests, key("bob")
    return {
        "a client asks": lambda i: desk.ask(client[i]).raise_if_denied(),
        "it comes again": lambda i: desk.ask(client[i]).raise_if_denied(),
        "a forgery is denied": lambda i: desk.ask(client[i][:-4] + b'00"}'),
        "an operator asks": lambda i: desk.ask(operator[i]).raise_if_denied(),
        "another approves": lambda i: desk.say(f"r-{count + TRIES + i:06d}", "approve", key=bob).raise_if_denied(),
        "hold": lambda i: desk.say(f"r-{count + i:06d}", "hold", "why").raise_if_denied(),
        "release": lambda i: desk.say(f"r-{count + i:06d}", "release").raise_if_denied(),
        "show": lambda i: desk.show(f"r-{(count // TRIES) * i:06d}"),
        "a page of twenty": lambda i: desk.list(after=(count // TRIES) * i, limit=20),
        "what is to warn of": lambda i: _to_warn(space),
        "reject": lambda i: desk.say(f"r-{count + i:06d}", "reject", "why").raise_if_denied(),
    }  # fmt: skip


def _to_warn(space: Workspace) -> None:
    with space.ledger.reading() as db:
        queue.to_warn(db, "2026-01-01T00:00:00Z")


class Steps:
    """Counts the virtual machine's instructions on every connection of a ledger, in hundreds."""

    EVERY = 100

    def __init__(self, space: Workspace) -> None:
        self.count = 0
        with space.ledger.engine.connect() as db:
            db.connection.driver_connection.set_progress_handler(self._tick, self.EVERY)  # type: ignore[union-attr]

    def _tick(self) -> int:
        self.count += self.EVERY
        return 0


def growing(room: Path, size: int) -> list[dict[str, Any]]:
    with federation(room / f"queue-{size}", 8, 2, lambda: START) as space:
        space.train()
        for who, role in (("client-00001", "client"), ("ann", "operator"), ("bob", "operator")):
            space.requests.enrol(role, who, key(who).public)
        filled(space, size)
        steps = Steps(space)
        rows = []
        for name, work in operations(space, size).items():
            times, before = [], steps.count
            for attempt in range(TRIES):
                began = time.perf_counter()
                work(attempt)
                times.append(1000 * (time.perf_counter() - began))
            rows.append(
                {
                    "requests": size,
                    "operation": name,
                    "steps": round((steps.count - before) / TRIES),
                    "milliseconds": round(statistics.median(times), 2),
                }
            )
    return rows


# --- one batch --------------------------------------------------------------------------------------------------


def batch(room: Path, count: int) -> dict[str, Any]:
    """All but one client of each shard ask to be forgotten."""
    clients = count + SHARDS
    now = [START]
    with federation(room / "batch", clients, SHARDS, lambda: now[0]) as space:
        space.train()
        plan = space.state().plan
        stay = {plan.present(0, shard)[-1] for shard in range(SHARDS)}
        leavers = [c for c in plan.clients if c not in stay]
        with space.ledger.transaction("enrol") as db:
            for name in leavers:
                queue.enrol(
                    db, space.ledger.log, Enrolment(str(key(name).public), "client", name, "2026-01-01T00:00:00Z")
                )
        blobs = [wish(name, Scope.of_clients([name]), "client", i, START) for i, name in enumerate(leavers)]
        began = time.perf_counter()
        space.requests.ask(*blobs).raise_if_denied()
        asked = time.perf_counter() - began
        now[0] += timedelta(hours=24)
        began = time.perf_counter()
        report = space.requests.run()
        ran = time.perf_counter() - began
        assert len(report.executed) == count
        cells = {(r.stage, r.shard) for one in report.rebuilds for r in one.touches}
        remade = sum(len(one.touches) for one in report.rebuilds)
        assert remade == len(cells) <= SHARDS
        assert set(space.state().plan.clients) == stay
    return {
        "requests": count, "shards": SHARDS, "shard rebuilds": remade, "batches": len(report.rebuilds),
        "seconds to take them in": round(asked, 1), "seconds to carry them out": round(ran, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--room", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.room) as folder:
        rows = [row for size in given.sizes for row in growing(Path(folder), size)]
        found = batch(Path(folder), given.batch) if given.batch else {}
    by_name: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["operation"], {})[row["requests"]] = row
    print(f"{'SQLite steps (ms)':<22}" + "".join(f"{size:>18,}" for size in given.sizes))
    for name, cells in by_name.items():
        print(f"{name:<22}" + "".join(f"{c['steps']:>10} ({c['milliseconds']:.1f})" for c in cells.values()))
    print(json.dumps(found))
    if given.json:
        given.json.write_text(json.dumps({"operations": rows, "batch": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
