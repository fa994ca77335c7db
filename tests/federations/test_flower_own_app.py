"""Somebody's own Flower app, with FedAdam, forgets on Flower's own processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fedforget.flower.strategy import own_task
from fedforget.processes import LocalFederation, up
from fedforget.workspace import Workspace
from flower_worlds import OWN, ZERO, adam, never_joined

pytestmark = pytest.mark.flower


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    with up(4, tls=True, folder=tmp_path_factory.mktemp("federation")) as found:
        yield found


def test_it_trains_forgets_and_ends_in_the_run_the_leaver_never_joined(
    federation: LocalFederation, tmp_path: Path
) -> None:
    config = {"workspace": str(tmp_path / "W"), "wait": 240.0}  # a loaded machine starts Python slowly
    federation.run(OWN, config).expect()
    run = federation.run(OWN, {**config, "forget": "client-001", "verify": True}).expect()
    assert "Guarantee X1 (exact)" in run.said
    assert "1 forgotten, no trace in force" in run.said
    with Workspace.open(tmp_path / "W", task=own_task(ZERO, deterministic=True)) as space:
        found = {place: row.model_digest for place, row in space.ledger.rounds().items()}
        assert found == never_joined(space, adam)
