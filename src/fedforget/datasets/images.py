"""MNIST, Fashion-MNIST and CIFAR-10 from the layouts the public downloaders leave on disk.

Each file is checked on every load, by what it holds rather than how it is wrapped: unzipped or `.gz`,
pickle or binary have one checksum. The published MD5 sums of the same contents stand in the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..examples import Examples
from .dataset import Dataset
from .files import Content, gunzip, plain, read
from .pickles import cifar_batch


@dataclass(frozen=True)
class IdxSet:
    """A data set of four IDX files: pictures and labels, to train on and to test with."""

    name: str
    folder: str
    files: Mapping[str, Content]
    labels: tuple[str, ...]
    mean: float
    std: float


CIFAR10_LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class CifarSet:
    """CIFAR-10: six batches; a batch's content is that of the author's binary file."""

    batches: Mapping[str, Content]
    name: str = "cifar10"
    labels: tuple[str, ...] = CIFAR10_LABELS
    mean: tuple[float, ...] = (0.4914, 0.4822, 0.4465)
    std: tuple[float, ...] = (0.2470, 0.2435, 0.2616)


MNIST = IdxSet(
    name="mnist",
    folder="MNIST/raw",
    files={
        "train-images-idx3-ubyte": Content(
            47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": Content(60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        "t10k-images-idx3-ubyte": Content(
            7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": Content(10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    },
    labels=tuple("0123456789"),
    mean=0.1307,
    std=0.3081,
)

FASHION_MNIST = IdxSet(
    name="fashion-mnist",
    folder="FashionMNIST/raw",
    files={
        "train-images-idx3-ubyte": Content(
            47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
        ),
        "train-labels-idx1-ubyte": Content(60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
        "t10k-images-idx3-ubyte": Content(
            7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"
        ),
        "t10k-labels-idx1-ubyte": Content(10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
    },
    labels=("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"),
    mean=0.2860,
    std=0.3530,
)

CIFAR10 = CifarSet(
    {
        "data_batch_1": Content(30_730_000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        "data_batch_2": Content(30_730_000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        "data_batch_3": Content(30_730_000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        "data_batch_4": Content(30_730_000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        "data_batch_5": Content(30_730_000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        "test_batch": Content(30_730_000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    }
)


def load_idx(root: Path, spec: IdxSet) -> Dataset:
    """MNIST or Fashion-MNIST: `x` raw uint8 (n, 28, 28, 1), `y` int64."""

    def values(file: str) -> NDArray[np.uint8]:
        content, path = spec.files[file], f"{spec.folder}/{file}"
        return _idx(read(root, spec.name, {path: plain, f"{path}.gz": gunzip(content.size)}, content))

    def examples(stem: str) -> Examples:
        pictures, labels = values(f"{stem}-images-idx3-ubyte"), values(f"{stem}-labels-idx1-ubyte")
        return Examples(pictures[..., None].copy(), labels.astype(np.int64))

    return Dataset(
        name=spec.name,
        kind="image",
        train=examples("train"),
        test=examples("t10k"),
        labels=spec.labels,
        raw=True,
        mean=(spec.mean,),
        std=(spec.std,),
    )


def _idx(data: bytes) -> NDArray[np.uint8]:
    """IDX: two zero bytes, the type (8 = uint8), the rank, the sizes big-endian, the values.

    Its checksum was found right before, so there is nothing left to doubt here.
    """
    rank = data[3]
    shape = np.frombuffer(data, ">u4", rank, 4).astype(np.intp)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load_cifar10(root: Path, spec: CifarSet = CIFAR10) -> Dataset:
    """CIFAR-10: `x` raw uint8 (n, 32, 32, 3), `y` int64, in the author's order.

    The binary layout goes first where both are there: it needs no unpickling at all.
    """

    def examples(batches: list[str]) -> Examples:
        parts = []
        for batch in batches:
            forms = {
                f"cifar-10-batches-bin/{batch}.bin": plain,
                f"cifar-10-batches-py/{batch}": cifar_batch,
            }
            data = read(root, spec.name, forms, spec.batches[batch])
            rows = np.frombuffer(data, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
            planes = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            parts.append(Examples(np.ascontiguousarray(planes), rows[:, 0].astype(np.int64)))
        return Examples.join(parts)

    return Dataset(
        name=spec.name,
        kind="image",
        train=examples([batch for batch in spec.batches if batch != "test_batch"]),
        test=examples(["test_batch"]),
        labels=spec.labels,
        raw=True,
        mean=spec.mean,
        std=spec.std,
    )
