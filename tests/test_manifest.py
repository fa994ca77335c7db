import pytest

from fedforget.errors import SettingError
from fedforget.federation import Absence, Cost, Place, Round, Upload
from fedforget.manifest import Bundle, Keeping, Label, RoundRow, Spot
from fedforget.slices import SliceKey
from strategies import SOFTMAX

LABEL = Label("f", 0, 1, 2, 3, "upload", "client-1", "rs8/3/2/0")
GRAM = Label("f", 0, 0, 2, 3, "gram", "", "rs8/3/2/0")
BUNDLE = Bundle(0, -1, 2, 3, "rs8/3/2/0", 10, (Spot(LABEL, 0, 1), Spot(GRAM, 0, 0)), ("a", "b", "c"), (None,) * 3)


def test_a_label_says_what_it_is_of():
    assert str(LABEL) == "upload of client-1 in stage 0, shard 1, round 2"
    assert str(GRAM) == "gram in stage 0, shard 0, round 2"
    assert LABEL.place == Place(0, 1, 2)


def test_a_bundle_names_its_slices_its_records_and_its_cells():
    assert BUNDLE.keys[1] == SliceKey(0, -1, 2, 3, "b")
    assert BUNDLE.by_label[GRAM] == Spot(GRAM, 0, 0)
    assert BUNDLE.cells == {(0, 0), (0, 1)}
    assert str(BUNDLE) == "slices of stage 0, shard -1, round 2, generation 3"


def test_a_row_keeps_everything_of_a_round_but_the_numbers():
    start, end = SOFTMAX.init(0), SOFTMAX.init(1)
    absent, cost = (Absence("c", "lost"),), Cost(4, 1.0, 0.5)
    made = Round(Place(0, 1, 2), start, (Upload("a", end, 7),), end, absent, cost, "clean", source=3)
    row = RoundRow.of(made, generation=5)
    assert row == RoundRow(Place(0, 1, 2), 5, "clean", 3, start.digest, end.digest, ("a",), (7,), absent, cost)


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("layout", {"layout": "raid"}),
        ("history", {"keep": "some"}),
        ("threshold", {"threshold": 0}),
        ("threshold", {"holders": 3, "threshold": 4}),
    ],
)
def test_a_keeping_that_cannot_be_is_refused(setting: str, wrong: dict):
    with pytest.raises(SettingError) as caught:
        Keeping(**wrong)
    assert caught.value.setting == setting
