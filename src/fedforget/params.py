"""Params: a model's parameters as one frozen float32 vector with names and shapes.

Everything that touches a model's numbers (means, norms, digests, seals, codes) works on the vector;
only learners look at the named arrays, which are views of it. Reductions run in float64 in the order
given, without BLAS, so their bits depend neither on threads nor on who answered first.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import Damaged, SettingError

Array = NDArray[Any]
Vector = NDArray[np.float32]

_CHUNK = 1 << 15  # numbers at a time: 256 KiB in float64 stays in the L2 cache
_EXACT_INT = 1 << 24  # float32 holds every integer up to here


@dataclass(frozen=True)
class Layout:
    """Names, shapes and kinds of a model's tensors, in their order in the vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(prod(shape) for shape in self.shapes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        ends = np.cumsum((0, *self.sizes)).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def is_counter(self, index: int) -> bool:
        """Integer buffers count something (batches seen); they are averaged and rounded, never scaled."""
        return self.dtypes[index] != "float32"

    @cached_property
    def weights(self) -> tuple[slice, ...]:
        """Where the learned numbers are: every tensor but the counters, one slice a tensor ("layer")."""
        return tuple(part for i, part in enumerate(self.slices) if not self.is_counter(i))

    @cached_property
    def counters(self) -> tuple[slice, ...]:
        return tuple(part for i, part in enumerate(self.slices) if self.is_counter(i))

    @cached_property
    def header(self) -> bytes:
        """The safetensors header; counters travel as float32 and are named in the metadata."""
        return self.header_with({})

    def header_with(self, metadata: Mapping[str, str]) -> bytes:
        """The same, with more said about the model."""
        fields: dict[str, Any] = {}
        said = dict(sorted(metadata.items()))
        counters = {n: d for i, (n, d) in enumerate(zip(self.names, self.dtypes, strict=True)) if self.is_counter(i)}
        if counters:
            said["fedforget.counters"] = json.dumps(counters, sort_keys=True)
        if said:
            fields["__metadata__"] = said
        for name, shape, part in zip(self.names, self.shapes, self.slices, strict=True):
            fields[name] = {
                "dtype": "F32",
                "shape": list(shape),
                "data_offsets": [4 * part.start, 4 * part.stop],
            }
        text = json.dumps(fields, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text


@dataclass(frozen=True, eq=False)
class Params:
    """One model. Equal when layout and every bit of the vector are."""

    layout: Layout
    vector: Vector

    def __post_init__(self) -> None:
        found = self.vector
        if found.dtype != np.float32 or found.shape != (self.layout.size,) or not found.flags.c_contiguous:
            expected = f"float32 of ({self.layout.size},), contiguous"
            raise SettingError("vector", (str(found.dtype), found.shape, found.strides), expected)
        if self.vector.flags.writeable:
            frozen = self.vector.view()
            frozen.flags.writeable = False
            object.__setattr__(self, "vector", frozen)

    @staticmethod
    def of(arrays: Mapping[str, Array]) -> "Params":
        """Gather named arrays into one vector: the only copy that is made."""
        names, values = tuple(arrays), [np.asarray(a) for a in arrays.values()]
        dtypes = tuple("float32" if v.dtype.kind == "f" else str(v.dtype) for v in values)
        for name, value, dtype in zip(names, values, dtypes, strict=True):
            if value.dtype.kind not in "fiub":
                raise SettingError(f"tensor {name}", dtype, "of real numbers or integers")
            if dtype != "float32" and value.size and max(int(value.max()), -int(value.min())) > _EXACT_INT:
                raise SettingError(f"counter {name}", max(int(value.max()), -int(value.min())), f"at most {_EXACT_INT}")
        layout = Layout(names, tuple(v.shape for v in values), dtypes)
        vector = np.empty(layout.size, np.float32)
        for part, value in zip(layout.slices, values, strict=True):
            vector[part] = value.reshape(-1)
        return Params(layout, vector)

    def __getitem__(self, name: str) -> Array:
        return self._array(self.layout.names.index(name))

    def arrays(self) -> dict[str, Array]:
        """Named views; a counter comes as a rounded copy in its own integer type."""
        return {name: self._array(i) for i, name in enumerate(self.layout.names)}

    def _array(self, index: int) -> Array:
        flat = self.vector[self.layout.slices[index]].reshape(self.layout.shapes[index])
        return np.rint(flat).astype(self.layout.dtypes[index]) if self.layout.is_counter(index) else flat

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Params):
            return NotImplemented
        return self.layout == other.layout and self.vector.tobytes() == other.vector.tobytes()

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def nbytes(self) -> int:
        return self.vector.nbytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `to_bytes()`, that is of the safetensors file this model is written as."""
        sha = hashlib.sha256(self.layout.header)
        sha.update(self.body)
        return sha.hexdigest()

    @property
    def body(self) -> memoryview:
        """The numbers as little-endian bytes, not copied on machines that keep them so."""
        little: Any = self.vector.astype("<f4", copy=False)
        return memoryview(little).cast("B")

    def to_bytes(self, metadata: Mapping[str, str] | None = None) -> bytes:
        """The model as a safetensors file. Metadata say something about it and are not part of its digest."""
        header = self.layout.header_with(metadata) if metadata else self.layout.header
        return b"".join((header, self.body))

    @staticmethod
    def from_bytes(blob: bytes | memoryview, name: str = "model") -> "Params":
        """Read `to_bytes()` back; the vector is a view of `blob`."""
        view = memoryview(blob)
        length = int.from_bytes(view[:8], "little")
        if len(view) < 8 or length > len(view) - 8:
            raise Damaged(name, "a safetensors header", f"{len(view)} bytes")
        try:
            layout = _layout(json.loads(bytes(view[8 : 8 + length])))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise Damaged(name, "a safetensors header", f"{type(fault).__name__}: {fault}") from fault
        if len(view) - 8 - length != 4 * layout.size:
            raise Damaged(name, f"{4 * layout.size} bytes of numbers", f"{len(view) - 8 - length}")
        return Params(layout, np.frombuffer(view[8 + length :], "<f4").astype(np.float32, copy=False))

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.vector).all())

    def norm(self) -> float:
        """Length of the learned numbers as one vector."""
        return float(np.sqrt(sum(self.square_norms())))

    def square_norms(self) -> list[float]:
        """Squared length of each layer."""
        return [_dot(self.vector[part], self.vector[part]) for part in self.layout.weights]

    def along(self, end: "Params", factor: float) -> "Params":
        """self + factor · (end − self), in float64; counters are the end's, for a count has no direction."""
        if factor == 1.0:
            return end
        start, step = self.vector.astype(np.float64), end.vector.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what leaves float32 becomes infinite: see `is_finite`
            step -= start
            step *= factor
            step += start
            for part in self.layout.counters:
                step[part] = end.vector[part]
            return Params(self.layout, step.astype(np.float32))


def _layout(fields: dict[str, Any]) -> Layout:
    counters = json.loads(fields.pop("__metadata__", {}).get("fedforget.counters", "{}"))
    rows = sorted(fields.items(), key=lambda row: row[1]["data_offsets"])
    if any(row["dtype"] != "F32" for _, row in rows):
        raise ValueError("a tensor is not F32")
    if any(type(d) is not int or d < 0 for _, row in rows for d in row["shape"]):
        raise ValueError("a shape is not of counts")
    if any(np.dtype(dtype).kind not in "iub" for dtype in counters.values()):
        raise ValueError("a counter is not of integers")
    layout = Layout(
        tuple(name for name, _ in rows),
        tuple(tuple(row["shape"]) for _, row in rows),
        tuple(counters.get(name, "float32") for name, _ in rows),
    )
    for (name, row), part in zip(rows, layout.slices, strict=True):
        if row["data_offsets"] != [4 * part.start, 4 * part.stop]:
            raise ValueError(f"{name} does not fill its offsets")
    return layout


def _dot(a: Vector, b: Vector) -> float:
    """Inner product in float64, chunk after chunk: einsum on vectors never calls BLAS, so no threads."""
    total = 0.0
    for at in range(0, a.size, _CHUNK):
        x = a[at : at + _CHUNK].astype(np.float64)
        y = x if b is a else b[at : at + _CHUNK].astype(np.float64)
        total += float(np.einsum("p,p->", x, y))
    return total


def weighted_mean(models: Sequence[Params], weights: Sequence[float]) -> Params:
    """Σ wᵢ·modelᵢ / Σ wᵢ in float64, added up in the order given."""
    if not models or len(models) != len(weights) or not all(weight > 0 for weight in weights):
        raise SettingError("weights", list(weights), "one positive weight a model, and a model at least")
    layout, total = models[0].layout, np.zeros(models[0].layout.size)
    for model, weight in zip(models, weights, strict=True):
        if model.layout != layout:
            raise SettingError("layout", model.layout.names, f"that of the first model, {layout.names}")
        total += model.vector if weight == 1.0 else model.vector * np.float64(weight)
    total /= np.float64(sum(weights))
    for part in layout.counters:
        total[part] = np.rint(total[part])
    return Params(layout, total.astype(np.float32))


def mean(models: Sequence[Params]) -> Params:
    return weighted_mean(models, [1.0] * len(models))


def gram(start: Params, ends: Sequence[Params]) -> NDArray[np.float64]:
    """Inner products of the updates Δᵢ = endᵢ − start, layer by layer: [layer, i, j].

    All that calibration ever asks of a round's uploads: the norm of Δᵢ is the root of the summed
    diagonal, the norm of any average of them a quadratic form.
    """
    layers = start.layout.weights
    table = np.zeros((len(layers), len(ends), len(ends)))
    for at, deltas in _updates(start, ends, layers):
        for i, left in enumerate(deltas):
            for j in range(i + 1):
                table[at, i, j] += np.einsum("p,p->", left, deltas[j])
    upper = np.transpose(table, (0, 2, 1))
    return np.where(np.tri(len(ends), dtype=bool), table, upper)


def square_length(start: Params, end: Params) -> float:
    """‖end − start‖², by the same sums in the same order as the diagonal of `gram`."""
    return float(gram(start, [end]).sum(axis=0)[0, 0])


def _updates(
    start: Params, ends: Sequence[Params], layers: Sequence[slice]
) -> Iterator[tuple[int, list[NDArray[np.float64]]]]:
    for index, part in enumerate(layers):
        for at in range(part.start, part.stop, _CHUNK):
            piece = slice(at, min(at + _CHUNK, part.stop))
            origin = start.vector[piece].astype(np.float64)
            yield index, [end.vector[piece] - origin for end in ends]
