"""Very many requests in one batch: each shard is made again once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from small import make, small_task

from fedforget.requests import Scope
from fedforget.requests.admission import Enrolment
from fedforget.requests.signed import Signed
from fedforget.requests.wish import Said, Wish
from fedforget.signing import SecretKey
from fedforget.storage import queue
from fedforget.workspace import Workspace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def key(name: str) -> SecretKey:
    return SecretKey(name.encode().ljust(32, b"."))


def signed(name: str, number: int) -> bytes:
    said = Said("small", f"r-{number}", "client", name, f"{number:032x}", NOW, NOW + timedelta(days=9))
    return Signed.sign(Wish(said, Scope.of_clients([name])).to_document(), key(name)).to_bytes()


def ask_all(path: Path, clients: int, shards: int) -> None:
    """Everybody but one of each shard asks; one rebuild of each shard answers them all."""
    make(path, clients=clients, shards=shards, rounds=2, epochs=1).close()
    with Workspace.open(path, task=small_task(clients), clock=lambda: NOW) as space:
        space.train()
        plan = space.state().plan
        stay = {plan.present(0, shard)[-1] for shard in range(shards)}
        leavers = [c for c in plan.clients if c not in stay]
        with space.ledger.transaction("enrol") as db:
            for name in leavers:
                one = Enrolment(str(key(name).public), "client", name, "2026-01-01T00:00:00Z")
                queue.enrol(db, space.ledger.log, one)
        space.requests.ask(*(signed(name, i) for i, name in enumerate(leavers))).raise_if_denied()
        report = space.requests.run(now=True)
        assert len(report.executed) == len(leavers)
        touched = [(r.stage, r.shard) for one in report.rebuilds for r in one.touches]
        assert len(touched) == len(set(touched)) <= shards
        assert set(space.state().plan.clients) == stay


def test_a_hundred_requests_over_eight_shards_cost_eight_rebuilds(room: Path) -> None:
    ask_all(room / "w", 108, 8)


@pytest.mark.slow
def test_ten_thousand_requests_over_sixty_four_shards_cost_sixty_four_rebuilds(room: Path) -> None:
    ask_all(room / "w", 10_064, 64)
