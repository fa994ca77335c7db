"""Small data sets in the public layouts, with the checksums that belong to them."""

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np

from fedforget.datasets.files import Content
from fedforget.datasets.images import CifarSet, IdxSet


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()


def idx_files(train: int = 12, test: int = 5) -> dict[str, bytes]:
    random = np.random.default_rng(0)
    files = {}
    for stem, count in (("train", train), ("t10k", test)):
        files[f"{stem}-images-idx3-ubyte"] = idx(random.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        files[f"{stem}-labels-idx1-ubyte"] = idx(random.integers(0, 10, count, dtype=np.uint8))
    return files


def idx_set(files: dict[str, bytes]) -> IdxSet:
    contents = {name: Content.of(data) for name, data in files.items()}
    return IdxSet("mnist", "MNIST/raw", contents, tuple("0123456789"), 0.1307, 0.3081)


def write_idx(root: Path, files: dict[str, bytes], *, zipped: bool) -> Path:
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(data)) if zipped else (folder / name).write_bytes(data)
    return folder


def cifar_batches(count: int = 4) -> dict[str, bytes]:
    random = np.random.default_rng(1)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    batches = {}
    for name in names:
        rows = random.integers(0, 256, (count, 3073), dtype=np.uint8)
        rows[:, 0] %= 10
        batches[name] = rows.tobytes()
    return batches


def cifar_set(batches: dict[str, bytes]) -> CifarSet:
    return CifarSet({name: Content.of(data) for name, data in batches.items()})


def split(batch: bytes) -> tuple[list[int], np.ndarray]:
    rows = np.frombuffer(batch, np.uint8).reshape(-1, 3073)
    return rows[:, 0].tolist(), np.ascontiguousarray(rows[:, 1:])


def python3_pickle(batch: bytes, *, text_keys: bool = False) -> bytes:
    labels, data = split(batch)
    if text_keys:
        return pickle.dumps({"labels": labels, "data": data}, 2)
    return pickle.dumps({b"batch_label": b"training batch", b"labels": labels, b"data": data}, 2)


def python2_pickle(batch: bytes) -> bytes:
    """As Python 2's cPickle wrote the author's files: strings are SHORT_BINSTRING and BINSTRING."""
    labels, data = split(batch)

    def short(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text

    def integer(value: int) -> bytes:
        return b"K" + bytes([value]) if value < 256 else b"J" + struct.pack("<i", value)

    def shape(*sizes: int) -> bytes:
        return b"".join(map(integer, sizes)) + bytes([0x84 + len(sizes)])

    dtype = b"cnumpy\ndtype\n" + short(b"u1") + integer(0) + integer(1) + b"\x87R"
    dtype += b"(" + integer(3) + short(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff" + integer(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + integer(0) + b"\x85" + short(b"b") + b"\x87R"
    raw = b"T" + struct.pack("<i", data.nbytes) + data.tobytes()
    array += b"(" + integer(1) + shape(*data.shape) + dtype + b"\x89" + raw + b"tb"
    items = short(b"batch_label") + short(b"training batch 1 of 5")
    items += short(b"labels") + b"](" + b"".join(map(integer, labels)) + b"e"
    items += short(b"data") + array + short(b"filenames") + b"](" + short(b"a_s_000001.png") + b"e"
    return b"\x80\x02}(" + items + b"u."


def write_cifar(root: Path, batches: dict[str, bytes], layout: str) -> Path:
    folder = root / f"cifar-10-batches-{'bin' if layout == 'bin' else 'py'}"
    folder.mkdir(parents=True)
    for name, batch in batches.items():
        form = {"bin": lambda data: data, "py2": python2_pickle, "py3": python3_pickle}[layout]
        (folder / (f"{name}.bin" if layout == "bin" else name)).write_bytes(form(batch))
    return folder
