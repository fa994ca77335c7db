"""The exact code: Reed–Solomon in Lagrange form over a finite field.

The paper's eq. *encode* with field elements for real numbers: the blocks are the values of one polynomial at the
data points 0 … k−1, masks its values at k … k+masks−1, and slice i its value at point k+masks+i. Data and slice
points are disjoint, so no holder has a piece of the record itself. Any k+masks slices fix the polynomial, and its
values at the data points are the blocks.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.field import Elements, Field, field, lagrange
from fedforget.coding.kernels import Kernel, NumpyKernel, Plane, planes
from fedforget.coding.kernels_llvm import choose_mode, host_features, llvm_kernel
from fedforget.coding.locate import locate
from fedforget.coding.protocol import Entropy, Readable, Writable
from fedforget.coding.stripes import buffers, view
from fedforget.errors import SettingError, TooManyErrors, Unrecoverable


@lru_cache(maxsize=1)
def fastest_kernel() -> Kernel:
    """LLVM's where it is installed and the CPU has the instructions, else NumPy's. Both give the same bytes."""
    mode = choose_mode(host_features())
    return llvm_kernel(mode) if mode else NumpyKernel()


@dataclass(frozen=True)
class ReedSolomon:
    """n slices of k blocks and `masks` random ones; any k + masks slices give the blocks back, bit for bit.

    GF(2⁸) while n + k + masks ≤ 256, else GF(2¹⁶); `bits` asks for one of them.
    """

    n: int
    k: int
    masks: int = 0
    bits: int = 0
    kernel: Kernel = attribute(default_factory=fastest_kernel, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError("k", self.k, "at least 1")
        if self.masks < 0:
            raise SettingError("masks", self.masks, "at least 0")
        if self.n < self.needed:
            raise SettingError("n", self.n, f"at least k + masks = {self.needed}")
        points = self.n + self.needed
        if points > 1 << 16:
            raise SettingError("n + k + masks", points, "at most 65536")
        if self.bits not in (0, 8, 16) or (self.bits == 8 and points > 256):
            raise SettingError("bits", self.bits, "8 while n + k + masks is at most 256, else 16")
        object.__setattr__(self, "bits", self.bits or (8 if points <= 256 else 16))

    @property
    def name(self) -> str:
        return f"rs{self.bits}"

    @property
    def description(self) -> str:
        return f"{self.name}/{self.n}/{self.k}/{self.masks}"

    @property
    def needed(self) -> int:
        """Slices that must be good."""
        return self.k + self.masks

    @property
    def symbol(self) -> int:
        return self.bits // 8

    @cached_property
    def field(self) -> Field:
        return field(self.bits)

    @cached_property
    def points(self) -> Elements:
        """The evaluation point of each holder."""
        return np.arange(self.needed, self.needed + self.n, dtype=np.uint16)

    @cached_property
    def generator(self) -> Elements:
        """[holder, block or mask]: slices = generator · blocks."""
        return lagrange(self.field, np.arange(self.needed, dtype=np.uint16), self.points)

    def encode(self, blocks: Sequence[Readable], *, entropy: Entropy = os.urandom) -> list[bytes]:
        size = len(view(blocks[0])) if blocks else 0
        out = buffers(self.n, size)
        self.encode_into(blocks, list(out), entropy=entropy)
        return [row.tobytes() for row in out]

    def encode_into(
        self, blocks: Sequence[Readable], out: Sequence[Writable], *, entropy: Entropy = os.urandom
    ) -> None:
        if len(blocks) != self.k:
            raise SettingError("blocks", len(blocks), f"k = {self.k} blocks")
        sources = [view(block) for block in blocks]
        size = self._one_length(sources, "blocks")
        sources += [view(entropy(size)) for _ in range(self.masks)]
        targets = _room(out, self.n, size)
        self._apply(self.generator, sources, targets)

    def decode(self, slices: Mapping[int, Readable], *, length: int | None = None) -> list[bytes]:
        holders, sources = self._good(slices, length)
        out = buffers(self.k, len(sources[0]))
        self._apply(self._back(holders), sources, list(out))
        return [row.tobytes() for row in out]

    def decode_into(
        self, slices: Mapping[int, Readable], out: Sequence[Writable], *, length: int | None = None
    ) -> None:
        holders, sources = self._good(slices, length)
        self._apply(self._back(holders), sources, _room(out, self.k, len(sources[0])))

    def delta(self, old: Readable, new: Readable) -> bytes:
        sources = [view(old), view(new)]
        self._one_length(sources, "old and new")
        return np.bitwise_xor(*sources).tobytes()

    def update(self, slice: Readable, holder: int, block: int, delta: Readable) -> bytes:
        patched = view(slice).copy()
        self.update_into({holder: patched}, block, delta)
        return patched.tobytes()

    def update_into(self, slices: Mapping[int, Writable], block: int, delta: Readable) -> None:
        if not 0 <= block < self.k:
            raise SettingError("block", block, f"0 to {self.k - 1}")
        holders = self._holders(slices)
        change = view(delta)
        targets = _room([slices[h] for h in holders], len(holders), self._one_length([change], "delta"))
        self._apply(self.generator[holders, block, None], [change], targets, accumulate=True)

    def locate_errors(
        self, slices: Mapping[int, Readable], *, length: int | None = None, entropy: Entropy = os.urandom
    ) -> tuple[int, ...]:
        """Which holders lie; up to ⌊(present − k − masks)/2⌋ of them, beyond that `TooManyErrors`.

        With up to that many liars the answer is always right, see `locate`. Beyond the bound no decoder without
        hashes can promise anything: if more than the bound hand in slices of one *other* codeword, say 52 of 100
        at k = 4, the word they make is within the bound of that codeword and the honest 48 are named. What stops
        such a coalition is the seal around the record, or the stored hashes. Errors that were not chosen to agree
        do so by chance only, about once in order^t / C(present, t) for a bound of t, and are refused otherwise;
        with no slice to spare there is nothing to compare and nobody is named.

        Slices of another length than `length` count as missing. Without `length` the right one is what most
        have, and slices of another count as liars.
        """
        holders = self._holders(slices)
        present = {holder: view(slices[holder]) for holder in holders}
        if len(present) < self.needed:
            raise self._unrecoverable(len(present))
        right = _commonest(present) if length is None else length
        odd = {holder for holder in holders if len(present[holder]) != right}
        fitting = [holder for holder in holders if holder not in odd]
        if length is not None and len(fitting) < self.needed:
            raise self._unrecoverable(len(fitting), f"the others are not {length} bytes long")
        # Any codeword within the bound is the only one: two would share k + masks slices, and so be one.
        judged = len(holders) if length is None else len(fitting)
        bound = (judged - self.needed) // 2 - (len(odd) if length is None else 0)
        if bound < 0:
            raise self._too_many(judged)
        self._one_length([present[holder] for holder in fitting], "slices")
        found = locate(
            self.field, self.kernel, self.points[fitting], self.needed, [present[h] for h in fitting], entropy
        )
        if found is None or len(found) > bound:
            raise self._too_many(judged)
        return tuple(sorted(odd | {fitting[i] for i in found}))

    def _apply(self, matrix: Elements, sources: list[Plane], targets: list[Plane], *, accumulate: bool = False) -> None:
        gf = self.field
        self.kernel.apply(gf, matrix, planes(gf, sources), planes(gf, targets), accumulate=accumulate)

    def _back(self, holders: list[int]) -> Elements:
        return lagrange(self.field, self.points[holders], np.arange(self.k, dtype=np.uint16))

    def _good(self, slices: Mapping[int, Readable], length: int | None) -> tuple[list[int], list[Plane]]:
        """The first k + masks slices of the right length."""
        present = {holder: view(slices[holder]) for holder in self._holders(slices)}
        if length is None and present:
            length = _commonest(present)
            others = Counter(len(data) for data in present.values() if len(data) != length)
            if any(times >= self.needed for times in others.values()):
                raise self._unrecoverable(0, "slices of more than one length, each enough; give the right one")
        chosen = [holder for holder, data in present.items() if len(data) == length][: self.needed]
        if len(chosen) < self.needed:
            odd = len(present) - len(chosen)
            raise self._unrecoverable(len(chosen), f"{odd} more have another length" if odd else "")
        self._one_length([present[holder] for holder in chosen], "slices")
        return chosen, [present[holder] for holder in chosen]

    def _holders(self, slices: Mapping[int, object]) -> list[int]:
        holders = sorted(slices)
        if holders and not 0 <= holders[0] <= holders[-1] < self.n:
            raise SettingError("holder", holders[0] if holders[0] < 0 else holders[-1], f"0 to {self.n - 1}")
        return holders

    def _one_length(self, arrays: Sequence[Plane], what: str) -> int:
        sizes = {len(array) for array in arrays}
        if len(sizes) != 1:
            raise SettingError(f"lengths of the {what}", sorted(sizes), "equal")
        size = sizes.pop()
        if size % self.symbol:
            raise SettingError(f"length of the {what}", size, f"a multiple of {self.symbol}; `stripe` makes them so")
        return size

    def _unrecoverable(self, good: int, why: str = "") -> Unrecoverable:
        return Unrecoverable(f"a record coded {self.description}", self.needed, good, why)

    def _too_many(self, present: int) -> TooManyErrors:
        bound = (present - self.needed) // 2
        why = f"of {present} slices more than {bound} are wrong, which ones cannot be told"
        return TooManyErrors(f"a record coded {self.description}", self.needed, 0, why)


def _commonest(present: Mapping[int, Plane]) -> int:
    return Counter(map(len, present.values())).most_common(1)[0][0]


def _room(out: Sequence[Writable], count: int, size: int) -> list[NDArray[np.uint8]]:
    rows = [view(row) for row in out]
    if len(rows) != count or any(len(row) != size or not row.flags.writeable for row in rows):
        raise SettingError("out", [len(row) for row in rows][:5], f"{count} writable buffers of {size} bytes")
    return rows
