"""What a code is: bytes in, bytes out.

A record is cut into k equal *blocks*; the code makes n *slices* of the same length, and any k + masks good ones give
the blocks back. Holders are numbered 0 … n−1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Readable = bytes | bytearray | memoryview | NDArray[np.uint8]
Writable = bytearray | memoryview | NDArray[np.uint8]
Entropy = Callable[[int], bytes]


class Code(Protocol):
    """A linear code. Implementations: `ReedSolomon`, exact; `RealLagrange`, for study only."""

    @property
    def name(self) -> str:
        """The kind of code, such as `rs8`."""
        ...

    @property
    def n(self) -> int:
        """Slices made."""
        ...

    @property
    def k(self) -> int:
        """Data blocks."""
        ...

    @property
    def masks(self) -> int:
        """Random blocks beside the data: so many holders together learn nothing."""
        ...

    @property
    def symbol(self) -> int:
        """Bytes of a symbol; blocks are a multiple of it."""
        ...

    @property
    def description(self) -> str:
        """name/n/k/masks: all a reader must know to decode. `code_named` reads it back."""
        ...

    def encode(self, blocks: Sequence[Readable], *, entropy: Entropy = ...) -> list[bytes]:
        """k blocks of equal length to n slices; `entropy` fills the mask blocks."""
        ...

    def encode_into(self, blocks: Sequence[Readable], out: Sequence[Writable], *, entropy: Entropy = ...) -> None:
        """As `encode`, into n buffers of the caller's."""
        ...

    def decode(self, slices: Mapping[int, Readable], *, length: int | None = None) -> list[bytes]:
        """The k blocks from any k + masks slices that are known to be good.

        Slices of another length than `length` are left out. Too few: `Unrecoverable`.
        """
        ...

    def decode_into(
        self, slices: Mapping[int, Readable], out: Sequence[Writable], *, length: int | None = None
    ) -> None:
        """As `decode`, into k buffers of the caller's."""
        ...

    def delta(self, old: Readable, new: Readable) -> bytes:
        """What `update` takes to turn block `old` into `new`."""
        ...

    def update(self, slice: Readable, holder: int, block: int, delta: Readable) -> bytes:
        """The holder's slice after one data block changed by `delta`, without decoding."""
        ...

    def update_into(self, slices: Mapping[int, Writable], block: int, delta: Readable) -> None:
        """As `update`, for any number of slices, in place."""
        ...

    def locate_errors(
        self, slices: Mapping[int, Readable], *, length: int | None = None, entropy: Entropy = ...
    ) -> tuple[int, ...]:
        """Which holders lie, without any stored hash; beyond the bound `TooManyErrors`."""
        ...
