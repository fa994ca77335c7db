"""Where the real data sets are, for tests marked `data`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

UNPACK = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "unpack.py"


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
