"""One federation of real processes for all tests here: starting it is what takes time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from fedforget.processes import up

if TYPE_CHECKING:
    from trials import Trials

collect_ignore_glob = ["test_*.py"] if find_spec("flwr") is None else []


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    from trials import NODES, Trials

    folder = tmp_path_factory.mktemp("federation")
    with up(NODES, tls=True, folder=folder / "processes") as found:
        yield Trials(found, folder)
