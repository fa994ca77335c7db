"""A data set as the command line shows it: what it is, and how it would be dealt."""

from pathlib import Path

from fedforget.workspace.datasets import describe
from fedforget.workspace.progress import silent


def test_what_it_is_with_and_without_a_partition(tmp_path: Path) -> None:
    plain = describe("digits", tmp_path, "", 10, 0, False, silent)
    dealt = describe("digits", tmp_path, "by-class", 10, 0, False, silent)
    assert (plain.name, plain.root) == ("digits", str(tmp_path))
    assert "client-000" in dealt.plot
    assert "client-000" not in plain.plot


def test_fetching_what_is_bundled_fetches_nothing(tmp_path: Path) -> None:
    assert describe("digits", tmp_path, "", 10, 0, True, silent) == describe(
        "digits", tmp_path, "", 10, 0, False, silent
    )
    assert list(tmp_path.iterdir()) == []
