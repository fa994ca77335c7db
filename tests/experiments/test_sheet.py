"""Means, intervals and Markdown, against what they are known to be."""

import pytest
from scipy import stats

from fedforget.experiments.sheet import NONE, Mean, Sheet, mean_or_none, show


@pytest.mark.parametrize("values", [[1.0, 2.0], [0.91, 0.93, 0.88], [1.0, 2.0, 4.0, 8.0, 16.0]])
def test_the_interval_is_students(values: list[float]) -> None:
    mean = Mean.of(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=mean.value, scale=stats.sem(values))
    assert mean.half == pytest.approx((high - low) / 2, rel=1e-3)
    assert (mean.low, mean.high) == (min(values), max(values))


def test_one_seed_has_no_interval_and_a_missing_one_no_mean() -> None:
    assert Mean.of([0.5]).text() == "0.500"
    assert mean_or_none([0.5, None]) is None
    assert mean_or_none([]) is None
    assert show(None) == NONE
    assert show(Mean.of([0.5, 0.5]), 1, 100) == "50.0 ± 0.0"


def test_markdown_has_a_rule_and_as_many_cells_a_row_as_heads() -> None:
    text = Sheet("t", ("a", "b"), (("x", "1"), ("y", "2")), ("b",), ("note",)).markdown()
    assert text == "**t**\n\n| a | b |\n|---|---:|\n| x | 1 |\n| y | 2 |\n\nnote"
