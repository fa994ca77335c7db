"""Examples: inputs beside labels."""

import numpy as np
import pytest

from fedforget.errors import SettingError
from fedforget.examples import Examples

TEN = Examples(np.arange(20).reshape(10, 2), np.arange(10))


def test_there_are_as_many_labels_as_inputs() -> None:
    assert len(TEN) == 10
    with pytest.raises(SettingError, match="as many labels as inputs"):
        Examples(np.zeros((3, 2)), np.zeros(2))


@pytest.mark.parametrize("rows", [[1, 3], np.array([1, 3], np.int32), slice(1, 4, 2)])
def test_rows_are_taken_with_their_labels(rows: object) -> None:
    taken = TEN.take(rows)
    assert taken.x.tolist() == [[2, 3], [6, 7]]
    assert taken.y.tolist() == [1, 3]


def test_none_can_be_taken() -> None:
    assert len(TEN.take([])) == 0
    assert TEN.take([]).x.shape == (0, 2)


def test_a_slice_is_a_view_and_a_list_is_not() -> None:
    assert np.shares_memory(TEN.take(slice(0, 3)).x, TEN.x)
    assert not np.shares_memory(TEN.take([0, 1]).x, TEN.x)


def test_joined_and_cut_again_they_are_the_same() -> None:
    joined = Examples.join([TEN.take(slice(0, 4)), TEN.take(slice(4, 10))])
    assert np.array_equal(joined.x, TEN.x)
    assert np.array_equal(joined.y, TEN.y)
