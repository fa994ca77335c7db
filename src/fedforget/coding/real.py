"""The paper's code as it is written: Lagrange interpolation over real numbers. For study only.

It loses three things the finite-field code keeps. *Exactness*: rounding errors are multiplied by large Lagrange
coefficients, so a decoded model is near the stored one at best. *Secrecy*: at nodes where rounding does little harm
a slice alone is nearly a model. *Tolerance*: a small lie looks like rounding, so liars cannot be located.
`error_table` measures the first two. `code_named` gives this code only to who says `study=True`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.protocol import Entropy, Readable, Writable
from fedforget.coding.stripes import view
from fedforget.errors import SettingError, Unrecoverable

Reals = NDArray[np.float64]
Numbers = NDArray[Any]  # float32 or float64
FAMILIES = ("integers", "uniform", "chebyshev")
PRECISIONS = ("float32", "float64")


def nodes(family: str, k: int, n: int) -> tuple[Reals, Reals]:
    """The data nodes ω and the holders' nodes α, all different.

    integers: ω = 1 … k, α = k+1 … k+n: every slice is far outside. uniform and chebyshev: k+n equidistant points of
    [−1, 1] or Chebyshev nodes, the ω spread evenly among them.
    """
    if family == "integers":
        everything = np.arange(1, k + n + 1, dtype=np.float64)
        return everything[:k], everything[k:]
    if family == "uniform":
        everything = np.linspace(-1, 1, k + n) if k + n > 1 else np.zeros(1)
    elif family == "chebyshev":
        everything = np.cos((2 * np.arange(k + n) + 1) * np.pi / (2 * (k + n)))
    else:
        raise SettingError("nodes", family, " or ".join(FAMILIES))
    chosen = ((2 * np.arange(k) + 1) * (k + n)) // (2 * k)
    return everything[chosen], np.delete(everything, chosen)


def coefficients(at: Reals, targets: Reals) -> Reals:
    """[target, node]: eq. *encode*, ∏_{j≠m} (t − x_j)/(x_m − x_j), as it is written."""
    result = np.ones((len(targets), len(at)))
    for m in range(len(at)):
        for j in range(len(at)):
            if j != m:
                result[:, m] *= (targets - at[j]) / (at[m] - at[j])
    return result


@dataclass(frozen=True)
class RealLagrange:
    """Blocks are bytes of numbers of that precision, and all arithmetic is done in it."""

    n: int
    k: int
    nodes: str = "integers"
    precision: str = "float32"

    def __post_init__(self) -> None:
        if not 1 <= self.k <= self.n:
            raise SettingError("k", self.k, f"1 to n = {self.n}")
        if self.precision not in PRECISIONS:
            raise SettingError("precision", self.precision, " or ".join(PRECISIONS))
        if self.nodes not in FAMILIES:
            raise SettingError("nodes", self.nodes, " or ".join(FAMILIES))

    @property
    def name(self) -> str:
        return f"real-{self.precision}-{self.nodes}"

    @property
    def masks(self) -> int:
        """None: noise that hides a real number has to be large, and costs the precision that is left."""
        return 0

    @property
    def symbol(self) -> int:
        return self._kind.itemsize

    @property
    def description(self) -> str:
        return f"{self.name}/{self.n}/{self.k}/0"

    @property
    def _kind(self) -> np.dtype[Any]:
        return np.dtype(self.precision).newbyteorder("<")

    @cached_property
    def _nodes(self) -> tuple[Reals, Reals]:
        return nodes(self.nodes, self.k, self.n)

    @cached_property
    def generator(self) -> Reals:
        data, held = self._nodes
        return coefficients(data, held)

    def encode(self, blocks: Sequence[Readable], *, entropy: Entropy | None = None) -> list[bytes]:
        if len(blocks) != self.k:
            raise SettingError("blocks", len(blocks), f"k = {self.k} blocks")
        return [row.tobytes() for row in self._times(self.generator, self._numbers(blocks))]

    def encode_into(
        self, blocks: Sequence[Readable], out: Sequence[Writable], *, entropy: Entropy | None = None
    ) -> None:
        _fill(out, self.encode(blocks))

    def decode(self, slices: Mapping[int, Readable], *, length: int | None = None) -> list[bytes]:
        """The polynomial through k slices, evaluated at the data nodes: near the blocks, not equal to them."""
        holders, values = self._chosen(slices, length)
        data, held = self._nodes
        return [row.tobytes() for row in self._times(coefficients(held[holders], data), values)]

    def decode_into(
        self, slices: Mapping[int, Readable], out: Sequence[Writable], *, length: int | None = None
    ) -> None:
        _fill(out, self.decode(slices, length=length))

    def reconstruct_literally(self, slices: Mapping[int, Readable]) -> list[bytes]:
        """Eq. *reconstruct* as it is written: the (pseudo-)inverse of the C×S matrix of powers α_c^j, times the slices.

        This gives the polynomial's *coefficients*. What is missing is `evaluated`: their values at the data nodes.
        """
        holders = self._holders(slices)
        _, held = self._nodes
        powers = np.vander(held[holders], self.k, increasing=True)
        return [
            row.tobytes() for row in self._times(np.linalg.pinv(powers), self._numbers([slices[h] for h in holders]))
        ]

    def evaluated(self, polynomial: Sequence[Readable]) -> list[bytes]:
        """The blocks whose polynomial has these coefficients."""
        data, _ = self._nodes
        powers = np.vander(data, self.k, increasing=True)
        return [row.tobytes() for row in self._times(powers, self._numbers(polynomial))]

    def delta(self, old: Readable, new: Readable) -> bytes:
        before, after = self._numbers([old, new])
        return bytes((after - before).tobytes())

    def update(self, slice: Readable, holder: int, block: int, delta: Readable) -> bytes:
        if not 0 <= block < self.k:
            raise SettingError("block", block, f"0 to {self.k - 1}")
        self._holders({holder: slice})
        held, change = self._numbers([slice, delta])
        factor = self.generator[holder, block].astype(self._kind)
        return bytes((held + factor * change).tobytes())

    def update_into(self, slices: Mapping[int, Writable], block: int, delta: Readable) -> None:
        _fill(list(slices.values()), [self.update(s, holder, block, delta) for holder, s in slices.items()])

    def locate_errors(
        self, slices: Mapping[int, Readable], *, length: int | None = None, entropy: Entropy | None = None
    ) -> tuple[int, ...]:
        """Refused: where honest slices disagree by their rounding, a liar cannot be told from them."""
        raise SettingError("code", self.name, "one over a finite field, such as rs8, to locate errors")

    def _times(self, matrix: Numbers, numbers: Numbers) -> Numbers:
        with np.errstate(all="ignore"):
            return np.asarray(matrix.astype(self._kind) @ numbers, self._kind)

    def _numbers(self, blocks: Sequence[Readable]) -> Numbers:
        sizes = {len(view(block)) for block in blocks}
        if len(sizes) != 1 or any(size % self.symbol for size in sizes):
            raise SettingError("lengths of the blocks", sorted(sizes), f"equal and a multiple of {self.symbol}")
        return np.stack([np.frombuffer(block, self._kind) for block in blocks])

    def _holders(self, slices: Mapping[int, object]) -> list[int]:
        holders = sorted(slices)
        if holders and not 0 <= holders[0] <= holders[-1] < self.n:
            raise SettingError("holder", holders[0] if holders[0] < 0 else holders[-1], f"0 to {self.n - 1}")
        return holders

    def _chosen(self, slices: Mapping[int, Readable], length: int | None) -> tuple[list[int], Numbers]:
        sizes = [len(view(s)) for s in slices.values()]
        right = length if length is not None else max(sizes, key=sizes.count, default=0)
        holders = [h for h in self._holders(slices) if len(view(slices[h])) == right]
        if len(holders) < self.k:
            raise Unrecoverable(f"a record coded {self.description}", self.k, len(holders))
        return holders[: self.k], self._numbers([slices[h] for h in holders[: self.k]])


def _fill(out: Sequence[Writable], values: Sequence[bytes]) -> None:
    if len(out) != len(values):
        raise SettingError("out", len(out), f"{len(values)} buffers")
    for target, value in zip(out, values, strict=True):
        view(target)[:] = view(value)


@dataclass(frozen=True)
class ErrorRow:
    """What the real code loses at one setting; errors are per number, relative to the number stored."""

    shards: int
    clients: int
    nodes: str
    precision: str
    median_error: float
    max_error: float
    exact: float  # share of the numbers that come back bit for bit
    nearest: float  # the closest slice to any one model: 0 is the model itself, 1 as far as nothing at all
    largest_coefficient: float


def error_table(
    shards: Sequence[int] = (2, 4, 8, 16),
    clients: Sequence[int] = (20, 100),
    families: Sequence[str] = FAMILIES,
    precisions: Sequence[str] = PRECISIONS,
    *,
    size: int = 512,
    draws: int = 20,
    seed: int = 0,
) -> Iterator[ErrorRow]:
    """Random models coded, decoded from `draws` random choices of S of the C slices each, and compared."""
    for s in shards:
        for c in clients:
            for family in families:
                for precision in precisions:
                    yield _measure(RealLagrange(c, s, family, precision), size, draws, seed)


def _measure(code: RealLagrange, size: int, draws: int, seed: int) -> ErrorRow:
    rng = np.random.default_rng([seed, code.n, code.k])
    models = rng.normal(size=(code.k, size)).astype(code.precision)
    slices = [np.frombuffer(s, code.precision) for s in code.encode([m.tobytes() for m in models])]
    errors, exact = [], 0.0
    for _ in range(draws):
        chosen = rng.choice(code.n, code.k, replace=False).tolist()
        decoded = np.stack(
            [np.frombuffer(b, code.precision) for b in code.decode({i: slices[i].tobytes() for i in chosen})]
        )
        with np.errstate(all="ignore"):
            errors.append(np.abs((decoded.astype(np.float64) - models) / models))
        exact += float(np.mean(decoded == models)) / draws
    wide = models.astype(np.float64)
    with np.errstate(all="ignore"):
        near = min(
            float(np.linalg.norm(held.astype(np.float64) - model) / np.linalg.norm(model))
            for held in slices
            for model in wide
        )
    every = np.nan_to_num(np.stack(errors), nan=np.inf, posinf=np.inf)
    return ErrorRow(
        code.k, code.n, code.nodes, code.precision, float(np.median(every)), float(every.max()), exact, near,
        float(np.abs(code.generator).max()),
    )  # fmt: skip
