"""The fast kernel: LLVM compiles `kernel_ir`'s text for the CPU really there, ctypes calls it.

Why not numba: it has no vector type, so every instruction would need a hand-written intrinsic in a typed wrapper,
seconds of compiling and a cache on disk. The same compiler (llvmlite, which numba brings along) takes the
instructions as text: ten milliseconds a tile, no cache, and ctypes lets go of the GIL during the call.
"""

import ctypes
import importlib
import importlib.util
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedforget.coding.field import Elements, Field
from fedforget.coding.kernel_ir import MODES, Mode, run_text, tile_text
from fedforget.coding.kernels import PARALLEL_FROM, Plane, spread, workers
from fedforget.errors import MissingExtra, SettingError

CACHE = 1 << 19  # bytes of inputs that all tiles work on before the next; what the second-level cache holds
CHUNK = 1 << 14  # bytes of a plane at most, and where threads share out
STREAM_FROM = 1 << 23  # outputs larger than this would only push everything else out of the caches
OLDEST_LLVM = 17  # the text uses opaque pointers only


def host_features() -> dict[str, bool]:
    """What this CPU and operating system offer, in LLVM's names; empty where LLVM is missing or too old."""
    if importlib.util.find_spec("llvmlite") is None:
        return {}
    llvm = _llvm()
    if llvm.llvm_version_info[0] < OLDEST_LLVM:
        return {}
    return {str(name): bool(there) for name, there in llvm.get_host_cpu_features().items()}


def choose_mode(features: Mapping[str, bool]) -> str | None:
    """The fastest mode whose instructions are all there."""
    if sys.byteorder != "little":
        return None
    return next((mode.name for mode in MODES if _able(mode, features)), None)


def llvm_kernel(
    mode: str | None = None, features: Mapping[str, bool] | None = None, *, threads: int | None = None
) -> "LlvmKernel":
    """The fast kernel in that mode, or the best there is; with that many threads, or one a processor.

    Refuses a mode the CPU lacks: LLVM aborts the process when told to emit an instruction its target does not have.
    """
    if importlib.util.find_spec("llvmlite") is None:
        raise MissingExtra("the fast coding kernel", "fast")
    there = host_features() if features is None else features
    name = mode or choose_mode(there)
    found = next((m for m in MODES if m.name == name), None)
    if found is None or not _able(found, there):
        able = [m.name for m in MODES if _able(m, there)]
        raise SettingError("kernel mode", name, f"one this CPU has: {', '.join(able) or 'none, use numpy'}")
    return LlvmKernel(found, threads or workers())


def _able(mode: Mode, features: Mapping[str, bool]) -> bool:
    return all(features.get(need, False) for need in mode.needs)


_compiling = threading.Lock()


@lru_cache(maxsize=1)
def _llvm() -> Any:
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@dataclass(frozen=True)
class _Tile:
    """Which tile to compile; none of it stands for `run`."""

    rows: int
    accumulate: bool
    stream: bool


def _compiled(mode: Mode, tile: _Tile | None) -> int:
    """The address of the function; its memory is kept for good."""
    with _compiling:
        return _engine(mode, tile)[0]


@cache
def _engine(mode: Mode, tile: _Tile | None) -> tuple[int, Any]:
    """Under the lock only: of two engines made at once the cache would drop one, with code that is running."""
    if tile is None:
        name, text = "run", run_text(mode)
    else:
        name, text = "tile", tile_text(mode, tile.rows, accumulate=tile.accumulate, stream=tile.stream)
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    wanted = ",".join(f"+{need}" for need in mode.needs)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu="x86-64", features=wanted, opt=3, jit=True, reloc="static" if sys.platform == "win32" else "default"
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine.get_function_address(name), engine


_WORD, _POINTER = ctypes.c_int64, ctypes.c_void_p
_SIGNATURE = ctypes.CFUNCTYPE(None, *[_POINTER] * 3, *[_WORD] * 4, _POINTER, _WORD, _WORD, _POINTER, _WORD)


def addresses(arrays: Sequence[Plane]) -> NDArray[np.uint64]:
    return np.array([array.__array_interface__["data"][0] for array in arrays], np.uint64)


def constants(mode: Mode, maps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Per map (last axis: the images of the eight bits) what the mode's instructions read."""
    if mode.constant == 8:
        bits = np.unpackbits(maps[..., None], axis=-1)  # [image j, bit 7−i]
        rows = np.packbits(np.swapaxes(bits, -1, -2), axis=-1, bitorder="little")
        return np.ascontiguousarray(rows[..., 0])
    table = np.zeros((*maps.shape[:-1], 2, 16), np.uint8)
    for value in range(1, 16):
        top = value.bit_length() - 1
        rest = table[..., value ^ 1 << top]
        table[..., value] = rest ^ np.stack([maps[..., top], maps[..., top + 4]], axis=-1)
    return table.reshape(*maps.shape[:-1], 32)


def plane_maps(gf: Field, matrix: Elements) -> NDArray[np.uint8]:
    """[output plane, input plane, bit]: the image of each bit of an input byte in an output byte."""
    rows, columns = matrix.shape
    images = gf.images(matrix).reshape(rows, columns, gf.bytes, 8)
    outs = np.stack([images >> 8 * plane & 0xFF for plane in range(gf.bytes)], axis=1).astype(np.uint8)
    return outs.reshape(rows * gf.bytes, columns * gf.bytes, 8)


@dataclass(frozen=True)
class LlvmKernel:
    """See `Kernel`. Make it with `llvm_kernel`, which looks at the CPU first."""

    mode: Mode
    threads: int

    @property
    def name(self) -> str:
        return self.mode.name

    def apply(
        self,
        gf: Field,
        matrix: Elements,
        inputs: Sequence[Plane],
        outputs: Sequence[Plane],
        *,
        accumulate: bool = False,
        threads: int | None = None,
    ) -> None:
        length = len(outputs[0]) if outputs else 0
        if not length or not inputs:
            return
        tiles = -(-len(outputs) // self.mode.rows)
        height = -(-len(outputs) // tiles)
        talls = len(outputs) - tiles * (height - 1)
        table = _table(self.mode, gf, np.ascontiguousarray(matrix).tobytes(), matrix.shape, height, talls)
        ins, outs = addresses(inputs), addresses(outputs)
        aligned = bool(np.all((outs - outs[0]) % np.uint64(self.mode.width) == 0))
        stream = aligned and length * len(outputs) >= STREAM_FROM
        lead = int(-int(outs[0]) % self.mode.width) if stream else 0
        run = _SIGNATURE(_compiled(self.mode, None))
        chunk = max(1024, min(CHUNK, CACHE // len(inputs) // 1024 * 1024))

        def call(start: int, stop: int, past_caches: bool) -> None:
            tall = _compiled(self.mode, _Tile(height, accumulate, past_caches))
            short = tall if talls == tiles else _compiled(self.mode, _Tile(height - 1, accumulate, past_caches))
            run(
                table.ctypes.data, ins.ctypes.data, outs.ctypes.data, len(inputs), start, stop, chunk,
                tall, talls, height, short, tiles - talls,
            )  # fmt: skip

        if lead:
            call(0, lead, False)
        busy = length * (len(inputs) + len(outputs)) >= PARALLEL_FROM
        spread(
            lambda start, stop: call(lead + start, lead + stop, stream),
            length - lead, CHUNK, (threads or self.threads) if busy else 1,
        )  # fmt: skip


@lru_cache(maxsize=16)
def _table(mode: Mode, gf: Field, matrix: bytes, shape: tuple[int, int], height: int, talls: int) -> NDArray[np.uint8]:
    """The constants in the order the tiles read them: tile, input, row of the tile. Many calls share a matrix."""
    every = constants(mode, plane_maps(gf, np.frombuffer(matrix, np.uint16).reshape(shape)))
    rows, columns, size = every.shape
    cut = talls * height
    parts = [
        part.reshape(-1, tall, columns, size).swapaxes(1, 2).reshape(-1)
        for part, tall in ((every[:cut], height), (every[cut:], height - 1))
        if len(part)
    ]
    room = np.empty(rows * columns * size + 64, np.uint8)
    skip = -int(room.__array_interface__["data"][0]) % 64
    return np.concatenate(parts, out=room[skip : skip + rows * columns * size])
