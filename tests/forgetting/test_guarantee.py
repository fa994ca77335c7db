"""Guarantee classes: names, order, and that the weakest part is what counts."""

from itertools import pairwise
from typing import get_args

from fedforget.forgetting import Guarantee, GuaranteeClass
from fedforget.forgetting.guarantee import MEANINGS, NAMES, ORDER, weakest


def test_every_class_has_a_name_a_meaning_and_a_rank() -> None:
    assert set(get_args(GuaranteeClass)) == set(NAMES) == set(MEANINGS) == set(ORDER)


def test_a_whole_is_as_good_as_its_weakest_part() -> None:
    assert weakest([]) == "X0"
    assert all(weakest([worse, better]) == weakest([better, worse]) == worse for better, worse in pairwise(ORDER))
    assert weakest(["X1", "A", "X3"]) == "A"


def test_a_guarantee_reads_as_a_sentence() -> None:
    guarantee = Guarantee("X1", "restarted stage 0 shard 1 from round 2")
    assert str(guarantee) == "X1 (exact): restarted stage 0 shard 1 from round 2"
    assert (guarantee.name, guarantee.conditions) == ("exact", ())
