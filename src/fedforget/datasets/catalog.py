"""The data sets by name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ..errors import SettingError
from ..examples import Examples
from .dataset import Dataset
from .digits import load_digits
from .files import data_root
from .images import CIFAR10, FASHION_MNIST, MNIST, load_cifar10, load_idx
from .shakespeare import VOCABULARY, load_shakespeare

ROWS: Mapping[str, Callable[[Path], Dataset]] = {
    "digits": lambda root: load_digits(),
    "mnist": lambda root: load_idx(root, MNIST),
    "fashion-mnist": lambda root: load_idx(root, FASHION_MNIST),
    "cifar10": load_cifar10,
    "shakespeare": load_shakespeare,
}
NAMES = tuple(ROWS)


def load(name: str, root: str | os.PathLike[str] | None = None, *, context: int | None = None) -> Dataset:
    """The data set `name`, read from beneath `root` (see `data_root`) and checked.

    `context` is the length of a window of text and means nothing to pictures.
    """
    if name not in ROWS:
        raise SettingError("data set", name, f"one of {', '.join(NAMES)}")
    folder = data_root(root)
    if context is None:
        return ROWS[name](folder)
    if name != "shakespeare":
        raise SettingError("context", context, f"left out for {name}, which is no text")
    return load_shakespeare(folder, context=context)


def outline(name: str, *, context: int | None = None) -> Dataset:
    """The data set without its examples: what a model's shape follows from, for those who only look at models."""
    if name not in ROWS:
        raise SettingError("data set", name, f"one of {', '.join(NAMES)}")
    if name == "digits":
        return load_digits()  # it comes along
    if name == "shakespeare":
        none = Examples(np.zeros((0, context or 64), np.uint8), np.zeros((0, context or 64), np.int64))
        return Dataset(name, "text", none, none, tuple(VOCABULARY))
    if name == "cifar10":
        none = Examples(np.zeros((0, 32, 32, 3), np.uint8), np.zeros(0, np.int64))
        return Dataset(name, "image", none, none, CIFAR10.labels, True, CIFAR10.mean, CIFAR10.std)
    idx = {known.name: known for known in (MNIST, FASHION_MNIST)}[name]
    none = Examples(np.zeros((0, 28, 28, 1), np.uint8), np.zeros(0, np.int64))
    return Dataset(name, "image", none, none, idx.labels, True, (idx.mean,), (idx.std,))
