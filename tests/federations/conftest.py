"""One federation of real processes for all tests here: starting it is what takes time."""

from collections.abc import Iterator

import pytest
from trials import NODES, Trials

from fedforget.processes import up


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    pytest.importorskip("flwr")
    folder = tmp_path_factory.mktemp("federation")
    with up(NODES, tls=True, folder=folder / "processes") as found:
        yield Trials(found, folder)
