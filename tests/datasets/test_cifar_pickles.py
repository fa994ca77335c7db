"""A pickle is a program; this reader must not run it."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from fedforget.datasets.images import load_cifar10
from fedforget.datasets.pickles import cifar_batch
from fedforget.errors import DataError

BATCH = synthetic.cifar_batches()["data_batch_1"]


class Runs:
    """What a hostile file does: has the reader call something."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.function, self.arguments


@pytest.mark.parametrize(
    "form",
    [
        synthetic.python2_pickle,
        synthetic.python3_pickle,
        lambda batch: synthetic.python3_pickle(batch, text_keys=True),
    ],
)
def test_every_form_gives_the_binary_twin(form: object) -> None:
    assert cifar_batch(form(BATCH)) == BATCH  # type: ignore[operator]


def test_newer_and_older_numpy_name_the_same_function() -> None:
    data = synthetic.python3_pickle(BATCH)
    renamed = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert cifar_batch(renamed) == cifar_batch(data) == BATCH


def test_columns_first_is_read_as_it_is() -> None:
    labels, data = synthetic.split(BATCH)
    assert cifar_batch(pickle.dumps({"labels": labels, "data": np.asfortranarray(data)}, 2)) == BATCH


def test_code_is_not_run(tmp_path: Path) -> None:
    batches = synthetic.cifar_batches()
    folder = synthetic.write_cifar(tmp_path, batches, "py3")
    trace = tmp_path / "trace"
    (folder / "data_batch_1").write_bytes(pickle.dumps({b"data": Runs(os.system, f"touch {trace}")}, 2))
    with pytest.raises(DataError, match=r"posix\.system|nt\.system"):
        load_cifar10(tmp_path, synthetic.cifar_set(batches))
    assert not trace.exists()


@pytest.mark.parametrize(
    "hostile",
    [
        Runs(eval, "1/0"),
        Runs(getattr, "", "join"),
        Runs(np.frombuffer, b"1234"),
        Runs(np.load, "/etc/passwd"),
        Runs(pickle.loads, b"."),
    ],
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_other_name_is_known(hostile: Runs, protocol: int) -> None:
    with pytest.raises(ValueError, match="a pickle asking for"):
        cifar_batch(pickle.dumps(hostile, protocol))


def test_no_other_codec_is_known() -> None:
    # _codecs.encode("x", "rot13")
    with pytest.raises(ValueError, match="no whole CIFAR-10 pickle"):
        cifar_batch(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00xX\x05\x00\x00\x00rot13\x86R.")


def test_what_a_file_does_to_a_stand_in_does_not_last() -> None:
    # BUILD with slot state on the stand-in of `encode` would set its defaults, were it to outlive the file.
    hostile = b"\x80\x02c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__)su\x86b."
    with pytest.raises(ValueError):
        cifar_batch(hostile)
    assert cifar_batch(synthetic.python3_pickle(BATCH)) == BATCH


def test_the_stand_in_class_takes_no_attributes() -> None:
    hostile = b"\x80\x02cnumpy\ndtype\n)R}X\x05\x00\x00\x00ownedK\x01sb."
    with pytest.raises(ValueError):
        cifar_batch(hostile)
    assert cifar_batch(synthetic.python3_pickle(BATCH)) == BATCH


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        {"labels": [1], "data": 3},
        {"labels": [300], "data": np.zeros((1, 3072), np.uint8)},
        {"labels": [1], "data": np.zeros((1, 3072), np.float32)},
        {"labels": [1, 2], "data": np.zeros((1, 3072), np.uint8)},
        {"labels": [1], "data": np.array([None])},
    ],
)
def test_other_contents_are_refused(content: object) -> None:
    with pytest.raises(ValueError):
        cifar_batch(pickle.dumps(content, 2))


@given(st.integers(0, len(synthetic.python2_pickle(BATCH)) - 1))
def test_half_a_pickle_is_refused(length: int) -> None:
    with pytest.raises(ValueError):
        cifar_batch(synthetic.python2_pickle(BATCH)[:length])


@given(st.binary(max_size=60))
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(ValueError):
        cifar_batch(b"\x80\x02" + junk)
