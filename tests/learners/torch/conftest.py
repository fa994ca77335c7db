"""Everything here needs torch; without it the room is skipped whole."""

import pytest

pytest.importorskip("torch")
