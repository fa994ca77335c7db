"""The hand-written step is autograd's, to rounding; the paper's sizes come out."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fedforget.errors import SettingError
from fedforget.examples import Examples
from fedforget.learners.torch import CNN, SGD, curvature
from fedforget.learners.torch import cnn as room

SHAPES = ((28, 28, 1), (32, 32, 3), (9, 11, 2))


def learner_of(image: tuple[int, int, int]) -> CNN:
    return CNN(image, 10, (0.3,), (0.25,))


def examples_of(image: tuple[int, int, int], size: int) -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.integers(0, 256, (size, *image), dtype=np.uint8), rng.integers(0, 10, size))


def assert_close(ours: list[Tensor], theirs: list[Tensor], tolerance: float) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        assert float((a - b).abs().max()) <= tolerance * float(b.abs().max())


def test_the_papers_sizes() -> None:
    assert CNN((28, 28, 1), 10).init(0).layout.size == 857_738
    assert CNN((32, 32, 3), 10).init(0).layout.size == 1_105_098


@pytest.mark.parametrize("image", SHAPES)
@pytest.mark.parametrize("size", [64, 10, 7, 1])
def test_the_gradient_is_autograds(image: tuple[int, int, int], size: int) -> None:
    learner, rows = learner_of(image), np.arange(size)
    weights, batch = learner._weights(learner.init(3)), room._Batches(learner, examples_of(image, size))
    leaves = [w.detach().requires_grad_() for w in weights]
    theirs = torch.autograd.grad(room._loss(*batch(rows), leaves), leaves)
    with torch.no_grad():
        assert_close(room._slopes(weights, batch, rows), list(theirs), 2e-5)


@pytest.mark.parametrize("image", SHAPES)
@pytest.mark.parametrize("size", [6, 1])
def test_the_fisher_diagonal_is_that_of_the_examples_one_by_one(image: tuple[int, int, int], size: int) -> None:
    learner, rows = learner_of(image), np.arange(size)
    weights, batch = learner._weights(learner.init(3)), room._Batches(learner, examples_of(image, size))
    x, y = batch(rows)
    mean, squares = curvature.fisher(lambda w, x, y: room._loss(x[None], y[None], w), weights, x, y)
    with torch.no_grad():
        ours = room._fisher(weights, batch, rows, 1)
    assert_close(ours[0], mean, 2e-5)
    assert_close(ours[1], squares, 2e-5)


def test_bfloat16_goes_the_same_way() -> None:
    image, rows = (28, 28, 1), np.arange(64)
    mine, exact = examples_of(image, 64), learner_of(image)
    rough = CNN(image, 10, (0.3,), (0.25,), precision="bf16")
    weights = exact._weights(exact.init(3))
    with torch.no_grad():
        ours, theirs = (room._slopes(weights, room._Batches(learner, mine), rows) for learner in (rough, exact))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == torch.float32
        assert float(F.cosine_similarity(a.flatten(), b.flatten(), dim=0)) > 0.99
    assert rough.numerics != exact.numerics


def test_a_fit_is_the_plain_loops() -> None:
    """Weights, momentum, order and the ragged last batch: 3 epochs against torch.optim."""
    image = (12, 12, 1)
    learner = CNN(image, 10, (0.3,), (0.25,), sgd=SGD(lr=0.01, batch=16), filters=(4, 8), hidden=16)
    mine, begin = examples_of(image, 41), learner.init(0)
    ours = learner.fit(begin, mine, epochs=3, seed=9)
    module = learner.reference()
    module.load_state_dict({k: torch.tensor(v) for k, v in begin.arrays().items()})
    walk = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    for rows in room.orders(41, 16, 3, 9):
        walk.zero_grad()
        x, y = learner.scale(torch.tensor(mine.x[rows])), torch.tensor(mine.y[rows])
        F.cross_entropy(module(x), y).backward()
        walk.step()
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(ours[name], value.numpy(), atol=2e-5)


def test_float_inputs_are_taken_as_they_are() -> None:
    learner, mine = learner_of((8, 8, 1)), examples_of((8, 8, 1), 20)
    scaled = ((mine.x.astype(np.float32) - np.float32(255 * 0.3)) / np.float32(255 * 0.25)).astype(np.float32)
    begin = learner.init(0)
    np.testing.assert_allclose(learner.predict(begin, scaled), learner.predict(begin, mine.x), rtol=1e-4)


@pytest.mark.parametrize("wrong", [{"image": (3, 8, 1)}, {"image": (8, 8)}, {"mean": (0.0, 0.0)}, {"precision": "fp8"}])
def test_settings_no_picture_fits_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        CNN(**{"image": (8, 8, 1), "classes": 3} | wrong)  # type: ignore[arg-type]
