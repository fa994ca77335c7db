"""Tasks: the same data to the same clients whatever becomes of the others, and learners that fit them."""

from dataclasses import replace

import numpy as np
import pytest

from fedforget.datasets import Dataset, load, outline
from fedforget.engines.local import LocalCohort, numerics
from fedforget.errors import SettingError
from fedforget.examples import Examples
from fedforget.learners.linear import Softmax
from fedforget.learners.mlp import MLP
from fedforget.workspace import FederationSettings
from fedforget.workspace.tasks import (
    bare_learner,
    build,
    build_learner,
    open_engine,
    own_learner,
    parts,
    ready,
    task_on,
)

SMALL = FederationSettings(clients=10, shards=2)


def test_every_seat_gets_examples_of_its_own_and_nobody_the_same() -> None:
    task = build(replace(SMALL, seats=14))
    whole = load("digits").train
    assert len(task.examples) == 14
    assert sum(len(e) for e in task.examples.values()) == len(whole)
    rows = {e.x[i].tobytes() for e in task.examples.values() for i in range(len(e))}
    assert rows == {x.tobytes() for x in whole.x}


def test_a_task_is_a_function_of_its_settings() -> None:
    one, two, other = build(SMALL), build(SMALL), build(replace(SMALL, seed=1))
    assert all(np.array_equal(one.examples[c].x, two.examples[c].x) for c in one.examples)
    assert not all(np.array_equal(one.examples[c].x, other.examples[c].x) for c in one.examples)


@pytest.mark.parametrize("name", ["iid", "by-class", "buckets"])
def test_every_partition_deals_everything(name: str) -> None:
    task = build(FederationSettings.of({"clients": 10, "shards": 2, "partition": name}))
    sizes = [len(e) for e in task.examples.values()]
    assert sum(sizes) == len(task.dataset.train)
    assert min(sizes) > 0
    if name == "by-class":
        shares = [np.bincount(e.y).max() / len(e) for e in task.examples.values()]
        assert np.mean(shares) > 0.7


def test_learners_by_name_and_a_tasks_own() -> None:
    dataset = load("digits")
    assert build_learner(SMALL, dataset) == build_learner(replace(SMALL, learner="softmax"), dataset)
    assert isinstance(build_learner(SMALL, dataset), Softmax)
    mlp = build_learner(replace(SMALL, learner="mlp", hidden=7, lr=0.1, batch=5, momentum=0.5), dataset)
    assert isinstance(mlp, MLP)
    assert (mlp.hidden, mlp.descent.lr, mlp.descent.batch, mlp.descent.momentum) == (7, 0.1, 5, 0.5)
    assert [own_learner(t) for t in ("digits", "mnist", "fashion-mnist", "cifar10", "shakespeare")] == [
        "softmax",
        "cnn",
        "cnn",
        "cnn",
        "nanogpt",
    ]


@pytest.mark.parametrize(("learner", "words"), [("oracle", "softmax, mlp, cnn, nanogpt"), ("nanogpt", "for digits")])
def test_learners_that_do_not_exist_or_do_not_fit_are_refused(learner: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        build_learner(replace(SMALL, learner=learner), load("digits"))


def _text() -> Dataset:
    windows = np.arange(12, dtype=np.uint8).reshape(3, 4) % 5
    examples = Examples(windows, windows)
    return Dataset("letters", "text", examples, examples, tuple("abcde"))


def test_text_is_not_dealt_by_class_nor_read_by_a_learner_of_pictures() -> None:
    with pytest.raises(SettingError, match="'iid' or 'buckets' for text"):
        parts(replace(SMALL, partition="by-class"), _text())
    with pytest.raises(SettingError, match="nanogpt for letters"):
        build_learner(replace(SMALL, learner="softmax"), _text())


def test_pixels_become_numbers_for_learners_that_do_not_scale_them() -> None:
    raw = np.array([[[[0]], [[255]]]], np.uint8)
    examples = Examples(raw, np.array([1]))
    pixels = Dataset("pixels", "image", examples, examples, ("a", "b"), raw=True, mean=(0.5,), std=(0.25,))
    made = ready(pixels)
    assert not made.raw
    assert made.train.x.ravel().tolist() == [-2.0, 2.0]
    assert ready(made) is made


def _pictures() -> Dataset:
    rng = np.random.default_rng(0)
    examples = Examples(rng.integers(0, 256, (12, 4, 8, 1), dtype=np.uint8), rng.integers(0, 10, 12))
    return Dataset("mnist", "image", examples, examples, tuple("0123456789"), True, (0.5,), (0.25,))


def test_learners_of_torch_get_pixels_as_they_are_and_scale_them_themselves() -> None:
    torch = pytest.importorskip("fedforget.learners.torch")
    task = task_on(_pictures(), FederationSettings(task="mnist", clients=3, shards=1))
    assert isinstance(task.learner, torch.CNN)
    assert (task.learner.image, task.learner.sgd) == ((4, 8, 1), torch.SGD(lr=0.005, momentum=0.9, batch=64))
    assert task.dataset.raw
    assert {e.x.dtype for e in task.examples.values()} == {np.dtype(np.uint8)}
    with pytest.raises(SettingError, match="softmax, mlp, cnn for mnist"):
        task_on(_pictures(), FederationSettings(task="mnist", learner="nanogpt", clients=3, shards=1))


def test_a_learner_of_torch_runs_on_a_pool_and_a_plain_one_here() -> None:
    torch = pytest.importorskip("fedforget.learners.torch")
    settings = FederationSettings(task="shakespeare", clients=3, shards=1, context=4)
    task = task_on(_text(), settings)
    assert isinstance(task.learner, torch.NanoGPT)
    assert task.learner.sgd == torch.SGD(lr=0.05, momentum=0.9, batch=10)
    engine = open_engine(task, settings, workers=1)
    assert isinstance(engine, torch.PoolCohort)
    engine.close()
    assert isinstance(open_engine(build(SMALL), SMALL, None), LocalCohort)


def test_numerics_name_the_arithmetic_a_run_depends_on() -> None:
    plain = numerics(build_learner(SMALL, load("digits")))
    assert f"numpy {np.__version__}" in plain

    class Own(Softmax):
        numerics = "an abacus"

    assert numerics(Own(2, 2)) == "an abacus"


@pytest.mark.parametrize(
    ("task", "learner"), [("digits", "softmax"), ("mnist", "mlp"), ("fashion-mnist", "softmax"), ("cifar10", "mlp")]
)
def test_a_learner_is_built_without_the_data(task: str, learner: str) -> None:
    model = bare_learner(FederationSettings(task=task, learner=learner)).init(0)
    features = {"digits": 64, "cifar10": 3072}.get(task, 784)
    assert features in next(iter(model.arrays().values())).shape


def test_text_without_its_text_has_a_window_and_a_vocabulary() -> None:
    pytest.importorskip("torch")
    small = bare_learner(FederationSettings(task="shakespeare", context=16)).init(0)
    assert (65, 16) in {value.shape for value in small.arrays().values()}
    assert outline("shakespeare").shape == (64,)


def test_an_unknown_task_has_no_outline() -> None:
    with pytest.raises(SettingError, match="data set"):
        bare_learner(FederationSettings(task="nope"))


@pytest.mark.parametrize(
    ("changes", "setting"),
    [({"learner": "cnn"}, "learner"), ({"precision": "bf16"}, "precision"), ({"learner": "nanogpt"}, "learner")],
)
def test_what_digits_cannot_be_learnt_with_is_refused_by_name(changes: dict[str, str], setting: str) -> None:
    with pytest.raises(SettingError, match=setting):
        build(FederationSettings(**changes))


@pytest.mark.parametrize("task", ["digits", "words"])
def test_the_papers_partition_fits_the_kind_of_data(task: str) -> None:
    text = Dataset("words", "text", Examples(np.zeros((60, 4)), np.zeros((60, 4))), Examples([], []), ("a", "b"))
    dataset = load("digits") if task == "digits" else text
    own = "by-class" if task == "digits" else "buckets"
    settings = FederationSettings(clients=10, partition="non-iid")
    found, expected = parts(settings, dataset), parts(replace(settings, partition=own), dataset)
    assert all(np.array_equal(found[c], expected[c]) for c in expected)
