"""Readers of the public layouts: what they return, and how they refuse what is not as published."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
import synthetic

from fedforget.datasets.files import Content
from fedforget.datasets.images import load_cifar10, load_idx
from fedforget.errors import DataError


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_unzipped_and_gz_read_alike(tmp_path: Path, zipped: bool) -> None:
    files = synthetic.idx_files()
    synthetic.write_idx(tmp_path, files, zipped=zipped)
    found = load_idx(tmp_path, synthetic.idx_set(files))
    assert found.raw
    assert found.shape == (28, 28, 1)
    assert (len(found.train), len(found.test), found.classes) == (12, 5, 10)
    assert found.train.x.dtype == np.uint8
    assert found.train.y.dtype == np.int64
    assert found.train.x.flags.writeable
    assert found.train.x.tobytes() == files["train-images-idx3-ubyte"][16:]
    assert found.test.y.tolist() == list(files["t10k-labels-idx1-ubyte"][8:])


def test_scaling_is_by_constants_and_float32(tmp_path: Path) -> None:
    files = synthetic.idx_files()
    synthetic.write_idx(tmp_path, files, zipped=False)
    found = load_idx(tmp_path, synthetic.idx_set(files))
    scaled = found.scaled(found.train.x)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, (found.train.x / 255 - 0.1307) / 0.3081, atol=1e-5)
    # One picture alone is scaled as it is among others.
    assert (found.scaled(found.train.x[:1]) == scaled[:1]).all()


def test_colours_have_a_constant_each(tmp_path: Path) -> None:
    batches = synthetic.cifar_batches()
    synthetic.write_cifar(tmp_path, batches, "bin")
    found = load_cifar10(tmp_path, synthetic.cifar_set(batches))
    expected = (found.test.x / 255 - np.array(found.mean)) / np.array(found.std)
    np.testing.assert_allclose(found.scaled(found.test.x), expected, atol=1e-5)


@pytest.mark.parametrize("layout", ["bin", "py2", "py3"])
def test_cifar_layouts_read_alike(tmp_path: Path, layout: str) -> None:
    batches = synthetic.cifar_batches()
    synthetic.write_cifar(tmp_path, batches, layout)
    found = load_cifar10(tmp_path, synthetic.cifar_set(batches))
    assert found.shape == (32, 32, 3)
    assert (len(found.train), len(found.test)) == (20, 4)
    labels, planes = synthetic.split(batches["data_batch_2"])
    assert found.train.y[4:8].tolist() == labels
    # Red of the second pixel of the first row; blue of the first pixel of the second row.
    assert found.train.x[4, 0, 1, 0] == planes[0, 1]
    assert found.train.x[4, 1, 0, 2] == planes[0, 2 * 1024 + 32]
    assert found.train.x.flags.c_contiguous


def test_binary_goes_before_pickles(tmp_path: Path) -> None:
    batches = synthetic.cifar_batches()
    synthetic.write_cifar(tmp_path, batches, "bin")
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"never looked at")
    assert len(load_cifar10(tmp_path, synthetic.cifar_set(batches)).train) == 20


class TestRefusals:
    def refusal(self, root: Path, files: dict[str, bytes]) -> DataError:
        with pytest.raises(DataError) as caught:
            load_idx(root, synthetic.idx_set(files))
        error = caught.value
        assert error.path in str(error)
        assert error.expected in str(error)
        assert error.found in str(error)
        assert f"fedforget data mnist --download --data {root}" in error.mend
        return error

    def test_missing_root(self, tmp_path: Path) -> None:
        error = self.refusal(tmp_path / "nowhere", synthetic.idx_files())
        assert error.found == f"no folder {tmp_path / 'nowhere'}"

    def test_missing_folder(self, tmp_path: Path) -> None:
        error = self.refusal(tmp_path, synthetic.idx_files())
        assert error.found == f"no folder {tmp_path / 'MNIST'}"
        assert error.path == str(tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte")

    def test_missing_file(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        (folder / "t10k-labels-idx1-ubyte").unlink()
        error = self.refusal(tmp_path, files)
        assert error.found == "no such file"
        assert error.path.endswith("t10k-labels-idx1-ubyte")

    def test_a_folder_in_its_place(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        (folder / "t10k-labels-idx1-ubyte").unlink()
        (folder / "t10k-labels-idx1-ubyte").mkdir()
        assert self.refusal(tmp_path, files).found == "no such file"

    def test_half_a_file(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        whole = files["train-images-idx3-ubyte"]
        (folder / "train-images-idx3-ubyte").write_bytes(whole[: len(whole) // 2])
        error = self.refusal(tmp_path, files)
        assert error.expected.startswith(f"{len(whole):,} bytes")
        assert error.found.startswith(f"{len(whole) // 2:,} bytes")

    def test_half_a_gz_file(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=True)
        path = folder / "train-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-100])
        error = self.refusal(tmp_path, files)
        assert "cut short" in error.found
        assert error.path == str(path)

    @pytest.mark.parametrize("junk", [b"<html>not here</html>", b"", gzip.compress(b"x" * 50)[:20] + b"\xff" * 9])
    def test_no_gz_file(self, tmp_path: Path, junk: bytes) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=True)
        (folder / "train-labels-idx1-ubyte.gz").write_bytes(junk)
        assert self.refusal(tmp_path, files).path.endswith("train-labels-idx1-ubyte.gz")

    def test_one_flipped_bit(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        altered = bytearray(files["train-images-idx3-ubyte"])
        altered[1000] ^= 1
        (folder / "train-images-idx3-ubyte").write_bytes(altered)
        assert self.refusal(tmp_path, files).found == str(Content.of(bytes(altered)))

    def test_a_bomb_is_not_unzipped(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=True)
        (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(3_000_000)))
        expected = len(files["train-labels-idx1-ubyte"])
        assert self.refusal(tmp_path, files).found.startswith(f"{expected + 1:,} bytes")

    def test_a_file_far_too_long_is_not_read(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        with (folder / "train-labels-idx1-ubyte").open("wb") as handle:
            handle.truncate(10**9)
        assert self.refusal(tmp_path, files).found == "1,000,000,000 bytes"

    def test_unreadable(self, tmp_path: Path) -> None:
        files = synthetic.idx_files()
        folder = synthetic.write_idx(tmp_path, files, zipped=False)
        path = folder / "train-images-idx3-ubyte"
        path.unlink()
        path.symlink_to("/proc/self/mem")
        if not path.is_file():
            pytest.skip("no file here that cannot be read")
        assert self.refusal(tmp_path, files).found == "Input/output error"

    def test_a_cifar_batch_is_missing(self, tmp_path: Path) -> None:
        batches = synthetic.cifar_batches()
        folder = synthetic.write_cifar(tmp_path, batches, "py3")
        (folder / "data_batch_3").unlink()
        with pytest.raises(DataError, match="data_batch_3") as caught:
            load_cifar10(tmp_path, synthetic.cifar_set(batches))
        assert "fedforget data cifar10 --download" in caught.value.mend

    def test_a_cifar_batch_of_another(self, tmp_path: Path) -> None:
        batches = synthetic.cifar_batches()
        folder = synthetic.write_cifar(tmp_path, batches, "py3")
        shutil.copy(folder / "data_batch_1", folder / "data_batch_2")
        with pytest.raises(DataError, match="data_batch_2"):
            load_cifar10(tmp_path, synthetic.cifar_set(batches))
