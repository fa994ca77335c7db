"""The data sets by name."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import SettingError
from .dataset import Dataset
from .digits import load_digits
from .files import data_root
from .images import FASHION_MNIST, MNIST, load_cifar10, load_idx
from .shakespeare import load_shakespeare

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
