"""One Hypothesis profile for all: the same examples on every machine, and no clock in the verdict. And real data."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from postgres import Server

settings.register_profile(
    "fedforget",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("fedforget")


@pytest.fixture(scope="session")
def postgres() -> Iterator["Server"]:
    """A server of our own, started when first asked for; skipped with a reason where there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from postgres import PASSWORD, running

    before = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    try:
        with running() as server:
            yield server
    finally:
        if before is None:
            del os.environ["PGPASSWORD"]
        else:
            os.environ["PGPASSWORD"] = before


UNPACK = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "unpack.py"


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FEDFORGET_DATA, else the four data sets laid out once by the script beside the checkout."""
    if os.environ.get("FEDFORGET_DATA"):
        return Path(os.environ["FEDFORGET_DATA"])
    if not UNPACK.exists():
        pytest.skip("no data")
    root = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, str(UNPACK), str(root)], check=True, capture_output=True, timeout=300)
    return root
