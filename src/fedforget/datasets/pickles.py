"""Reading a CIFAR-10 pickle without letting it do anything.

A pickle is a program, and `pickle.load` runs it. This reader knows the four names such a file needs
and answers each with a stand-in of its own, so that no imported code is called at all, not even
NumPy's: an array's state is only noted down, then checked and read with `frombuffer`.
"""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Noted:
    """Stands in for an array or a dtype: keeps what it was made from and the state it was given."""

    __slots__ = ("made_from", "state")

    def __init__(self, *made_from: object) -> None:
        self.made_from = made_from
        self.state: Any = ()

    # Its presence also keeps a hostile file from setting attributes on the class.
    def __setstate__(self, state: Any) -> None:
        self.state = state


def _allowed(module: str, name: str) -> Callable[..., Any]:
    # Every answer is made anew, so that nothing a file does to it outlives the file.
    if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        return lambda *made_from: _Noted(*made_from)
    if module == "numpy" and name == "dtype":
        return lambda *made_from: _Noted(*made_from)
    if module == "numpy" and name == "ndarray":
        return lambda: None  # only ever handed on, to the stand-in above
    if module == "_codecs" and name == "encode":
        # How Python 3 writes bytes at protocol 2. Any other codec is not needed, so not offered.
        return lambda text, codec: text.encode({"latin1": "latin-1"}[codec])
    raise pickle.UnpicklingError(f"a pickle asking for {f'{module}.{name}'[:60]!r}, refused")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        return _allowed(module, name)


def cifar_batch(data: bytes) -> bytes:
    """A batch pickle as the bytes of its `.bin` twin: per picture one label, then its three planes.

    So both layouts have the same checksum. Written by Python 2 (as the author's are) or 3, with keys
    of bytes or text. ValueError says what is wrong with it.
    """
    try:
        batch = _Reader(io.BytesIO(data), encoding="bytes").load()
        fields = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
        labels = np.array(fields["labels"], dtype=np.uint8)[:, None]
        return np.concatenate([labels, _pixels(fields["data"])], axis=1).tobytes()
    except pickle.UnpicklingError as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # bytes that are no pickle make the reader fail in about ten ways
        raise ValueError(f"{len(data):,} bytes that are no whole CIFAR-10 pickle") from error


def _pixels(noted: _Noted) -> NDArray[np.uint8]:
    _version, shape, dtype, fortran, raw = noted.state
    if dtype.made_from[0] not in (b"u1", "u1") or len(raw) != math.prod(shape):
        raise ValueError("no array of bytes")
    return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")
