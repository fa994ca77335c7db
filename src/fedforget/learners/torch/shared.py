"""Memory that several processes see: an unlinked file, mapped. It has no name, so nothing can be left behind."""

import mmap
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import StorageFull
from ...examples import Examples

_ALIGN = 64  # a cache line, and the widest vector


@dataclass(frozen=True)
class Block:
    """`size` bytes behind a file descriptor. Pickles only while a process is being started, which inherits it."""

    fd: int
    size: int

    @staticmethod
    def of(size: int) -> "Block":
        """In memory where the system says it has room there (containers often grant 64 MB), else in a scratch file."""
        size = max(size, _ALIGN)
        places = [place for place in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(place)]
        for place in places:
            try:
                with tempfile.TemporaryFile(dir=place) as file:
                    _reserve(file.fileno(), size)
                    return Block(os.dup(file.fileno()), size)
            except OSError:
                continue
        raise StorageFull(places[-1])

    def __reduce__(self) -> tuple[Any, ...]:
        return _inherited, (DupFd(self.fd), self.size)

    def map(self) -> mmap.mmap:
        return mmap.mmap(self.fd, self.size)

    def close(self) -> None:
        os.close(self.fd)


def _reserve(fd: int, size: int) -> None:
    """Take the space now: running out of it while writing to a mapping would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def _inherited(handle: Any, size: int) -> Block:
    return Block(handle.detach(), size)


@dataclass(frozen=True)
class Rows:
    """A table of float32 vectors: the parameters' way to a worker and back."""

    block: Block
    count: int
    size: int

    @staticmethod
    def of(count: int, size: int) -> "Rows":
        return Rows(Block.of(4 * count * _stride(size)), count, size)

    def open(self) -> NDArray[np.float32]:
        table = np.frombuffer(self.block.map(), np.float32, self.count * _stride(self.size))
        return table.reshape(self.count, -1)[:, : self.size]


def _stride(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


@dataclass(frozen=True)
class Piece:
    """Where an array lies in a block."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    def read(self, view: mmap.mmap) -> NDArray[Any]:
        flat = np.frombuffer(view, self.dtype, int(np.prod(self.shape)), self.offset)
        flat.flags.writeable = False
        return flat.reshape(self.shape)


@dataclass(frozen=True)
class Shelf:
    """All clients' examples in one block, once for all workers."""

    block: Block
    places: Mapping[str, tuple[Piece, Piece]]

    @staticmethod
    def of(examples: Mapping[str, Examples]) -> "Shelf":
        offset, places = 0, {}
        for client, mine in examples.items():
            pieces = []
            for array in (mine.x, mine.y):
                pieces.append(Piece(offset, array.shape, array.dtype.str))
                offset += -(-array.nbytes // _ALIGN) * _ALIGN
            places[client] = (pieces[0], pieces[1])
        shelf = Shelf(Block.of(offset), places)
        view = shelf.block.map()
        for client, pair in places.items():
            for array, piece in zip((examples[client].x, examples[client].y), pair, strict=True):
                target = np.frombuffer(view, piece.dtype, array.size, piece.offset)
                target[:] = array.reshape(-1)
        return shelf

    def open(self) -> dict[str, Examples]:
        view = self.block.map()
        return {client: Examples(x.read(view), y.read(view)) for client, (x, y) in self.places.items()}


def close_all(blocks: Iterable[Block]) -> None:
    for block in blocks:
        block.close()
