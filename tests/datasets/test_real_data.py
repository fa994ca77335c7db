"""The four public data sets as they are: published sums, statistics behind the constants, partitions."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedforget.datasets import Dataset, load
from fedforget.datasets.download import RECIPES, download
from fedforget.datasets.images import CIFAR10
from fedforget.datasets.partition import left_over, partition
from fedforget.errors import DataError

pytestmark = pytest.mark.data

# As the authors and torchvision publish them.
PUBLISHED_MD5 = {
    "MNIST/raw/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "MNIST/raw/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "MNIST/raw/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "MNIST/raw/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "FashionMNIST/raw/train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "FashionMNIST/raw/train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "FashionMNIST/raw/t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "FashionMNIST/raw/t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}
PUBLISHED_CIFAR_BIN_MD5 = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
PICTURES = ["mnist", "fashion-mnist", "cifar10"]


def cifar_bins(dataset: Dataset) -> dict[str, bytes]:
    x = np.concatenate([dataset.train.x, dataset.test.x]).transpose(0, 3, 1, 2).reshape(60_000, -1)
    y = np.concatenate([dataset.train.y, dataset.test.y]).astype(np.uint8)
    rows = np.concatenate([y[:, None], x], axis=1)
    return {name: rows[i * 10_000 :][:10_000].tobytes() for i, name in enumerate(CIFAR10.batches)}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(real_data: Path, name: str) -> None:
    found = load(name, real_data)
    train = 50_000 if name == "cifar10" else 60_000
    assert (len(found.train), len(found.test), found.classes) == (train, 10_000, 10)
    assert found.shape == ((32, 32, 3) if name == "cifar10" else (28, 28, 1))
    assert np.bincount(found.test.y).tolist() == [1000] * 10 or name == "mnist"
    scaled = found.scaled(found.train.x[::10])  # a tenth, so not to the last digit
    assert abs(scaled.mean()) < 0.05
    assert abs(scaled.std() - 1) < 0.05


def test_text(real_data: Path) -> None:
    found = load("shakespeare", real_data)
    assert (found.classes, found.shape) == (65, (64,))
    assert (len(found.train), len(found.test)) == (1_003_854 // 65, 111_540 // 65)
    assert "".join(found.vocabulary[token] for token in found.train.x[0, :14]) == "First Citizen:"
    assert load("shakespeare", real_data, context=32).shape == (32,)
    assert set(np.unique(found.train.x)) == set(range(65))


def test_the_sums_are_those_published(real_data: Path) -> None:
    for path, md5 in PUBLISHED_MD5.items():
        if (real_data / path).exists():
            packed = (real_data / path).read_bytes()
            assert hashlib.md5(packed).hexdigest() == md5
            expected = {file.target: file.content for recipe in RECIPES.values() for file in recipe.files}
            assert hashlib.sha256(packed).hexdigest() == expected[path].sha256
            assert len(packed) == expected[path].size
    for name, batch in cifar_bins(load("cifar10", real_data)).items():
        assert hashlib.md5(batch).hexdigest() == PUBLISHED_CIFAR_BIN_MD5[name]


def test_both_layouts_of_cifar_read_alike(real_data: Path, tmp_path: Path) -> None:
    pickled = load("cifar10", real_data)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name, batch in cifar_bins(pickled).items():
        (folder / f"{name}.bin").write_bytes(batch)
    binary = load("cifar10", tmp_path)
    assert (binary.train.x == pickled.train.x).all()
    assert (binary.test.y == pickled.test.y).all()


def test_only_gz_files_and_one_of_them_cut_short(real_data: Path, tmp_path: Path) -> None:
    source, target = real_data / "MNIST" / "raw", tmp_path / "MNIST" / "raw"
    if not list(source.glob("*.gz")):
        pytest.skip("no .gz files there")
    target.mkdir(parents=True)
    for path in source.glob("*.gz"):
        shutil.copy(path, target)
    assert len(load("mnist", tmp_path).train) == 60_000
    cut = target / "t10k-images-idx3-ubyte.gz"
    cut.write_bytes(cut.read_bytes()[:1_000_000])
    with pytest.raises(DataError, match="cut short"):
        load("mnist", tmp_path)


def test_nothing_is_fetched_where_all_is_there(real_data: Path) -> None:
    for name in RECIPES:
        assert download(name, real_data, progress=lambda *told: pytest.fail("asked")) == real_data


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("clients", [20, 100])
def test_papers_partition_of_pictures(real_data: Path, name: str, clients: int) -> None:
    found = load(name, real_data)
    parts = partition(found, "non-iid", clients, 0)
    sizes = {len(rows) for rows in parts.values()}
    assert max(sizes) - min(sizes) <= 1
    assert left_over(parts, len(found.train)) == 0
    for rows in parts.values():
        assert np.bincount(found.train.y[rows]).max() == np.floor(0.8 * len(rows) + 0.5)


def test_papers_partition_of_text(real_data: Path) -> None:
    found = load("shakespeare", real_data)
    parts = partition(found, "non-iid", 100, 0)
    assert left_over(parts, len(found.train)) == 0
    sizes = [len(rows) for rows in parts.values()]
    assert max(sizes) > 4 * min(sizes)
