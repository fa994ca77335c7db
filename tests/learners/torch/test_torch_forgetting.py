"""Never joined and twins, with both torch learners: exact and clean forgetting hold to the last bit."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import CONVOLUTION, TEXT, examples_for

from fedforget.errors import NoReference
from fedforget.federation import Learner
from fedforget.forgetting import Calibration
from strategies import NAMES, Federation, batches_of_leavers, federations

BOTH = pytest.mark.parametrize("learner", [CONVOLUTION, TEXT], ids=["cnn", "nanogpt"])


def equipped(federation: Federation, learner: Learner, data: st.DataObject) -> Federation:
    """The same plan with pictures or text at every client."""
    sizes = data.draw(st.lists(st.integers(1, 13), min_size=len(NAMES), max_size=len(NAMES)))
    examples = {client: examples_for(learner, client, size) for client, size in zip(NAMES, sizes, strict=True)}
    return replace(federation, learner=learner, examples=examples)


def never_joined(data: st.DataObject, learner: Learner) -> None:
    federation = equipped(data.draw(federations(max_stages=2)), learner, data).trained()
    batches = data.draw(batches_of_leavers(federation.plan, at_most=2))
    now = federation
    for batch in batches:
        now = now.forget("exact", *batch)
    gone = {client for batch in batches for client in batch}
    assert now.trace == federation.without(gone).trained().trace


def twins(data: st.DataObject, learner: Learner) -> None:
    """Two runs that differ in the leaver's data alone are one after exact and clean forgetting, and not before."""
    one = equipped(data.draw(federations(max_stages=2, shards=st.integers(2, 3))), learner, data)
    leaver = data.draw(st.sampled_from(one.plan.clients))
    size = len(one.examples[leaver])
    other = one.with_examples(leaver, examples_for(learner, leaver, size, seed=1))
    differ = one.examples[leaver].x.tobytes() != other.examples[leaver].x.tobytes()
    one, other = one.trained(), other.trained()
    drawn = bool(one.work("exact", leaver).taints)
    assert (one.trace != other.trace) == (drawn and differ)
    assert one.forget("exact", leaver).trace == other.forget("exact", leaver).trace
    calibration = Calibration()
    try:
        one.forget("clean", leaver)
    except NoReference:
        calibration = Calibration(length=0.1)
    clean = [run.forget("clean", leaver, calibration=calibration).trace for run in (one, other)]
    assert clean[0] == clean[1]


@BOTH
@settings(max_examples=5)
@given(data=st.data())
def test_exact_is_the_run_they_never_joined(learner: Learner, data: st.DataObject) -> None:
    never_joined(data, learner)


@BOTH
@settings(max_examples=5)
@given(data=st.data())
def test_twins_are_one_after_exact_and_clean(learner: Learner, data: st.DataObject) -> None:
    twins(data, learner)


@pytest.mark.slow
@BOTH
@settings(max_examples=40)
@given(data=st.data())
def test_exact_is_the_run_they_never_joined_many_times(learner: Learner, data: st.DataObject) -> None:
    never_joined(data, learner)


@pytest.mark.slow
@BOTH
@settings(max_examples=40)
@given(data=st.data())
def test_twins_are_one_after_exact_and_clean_many_times(learner: Learner, data: st.DataObject) -> None:
    twins(data, learner)
