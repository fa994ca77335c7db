"""Coding speed beside its peers, in one run.

    python benchmarks/coding.py [--codes 20/4 100/4] [--sizes 16 128] [--json FILE]

Peers are benchmark dependencies only: `pip install pyeclib zfec galois`. A peer that is missing or cannot do a thing
shows as `-`, with the reason below the table. Every number is GB/s of *payload*: the record for encode, decode and
locate, the changed block for update (which patches all n slices). The best of several runs; compare within one run.

What is not alike: ours is not systematic and so makes n slices where the peers make n − k and reuse the data;
pyeclib also checksums and copies every fragment, so ISA-L is called directly as well (`isal`, the library that
pyeclib's wheel brings along, with its buffers reused as ours are). Decoding starts from slices none of which is plain
data, where n ≥ 2k allows it. `fast/1` is `fast` in one thread, as the peers are.
"""

import argparse
import ctypes
import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedforget.coding import NumpyKernel, ReedSolomon, buffers, choose_mode, host_features, llvm_kernel
from fedforget.coding.kernels import workers

CODES = ((20, 4), (100, 4), (100, 16), (20, 10), (100, 80), (1000, 50))
OPERATIONS = ("encode", "decode", "locate", "update")
MB = 1_000_000
SLOW_RECORD = MB // 4  # galois works symbol by symbol; more would only take longer at the same rate
FEW_WORDS = 16  # it takes tens of milliseconds to find the errors of one word


class Unable(Exception):
    """Why a peer has no number."""


@dataclass(frozen=True)
class Case:
    n: int
    k: int
    size: int

    @property
    def block(self) -> int:
        return -(-self.size // (self.k * 128)) * 128

    @property
    def memory(self) -> int:
        """Bytes at the worst moment: blocks, our slices, and a peer's own copy of them."""
        return self.block * (3 * self.k + 2 * self.n)

    def blocks(self) -> np.ndarray:
        rows = buffers(self.k, self.block)
        rows[:] = np.frombuffer(np.random.default_rng(self.n).bytes(self.block), np.uint8)
        rows ^= np.arange(self.k, dtype=np.uint8)[:, None]
        return rows


@dataclass
class Timer:
    """Best of several runs, ending early once the budget is spent."""

    budget: float
    notes: dict[str, str] = field(default_factory=dict)

    def rate(self, payload: int, work: Callable[[], Any], least: int = 3) -> float:
        work()
        best, spent, runs = float("inf"), 0.0, 0
        while runs < least or (spent < self.budget and runs < 50):
            start = time.perf_counter()
            work()
            taken = time.perf_counter() - start
            best, spent, runs = min(best, taken), spent + taken, runs + 1
            if spent > 4 * self.budget:
                break
        return payload / best / 1e9


def ours(case: Case, timer: Timer, kernel: Any) -> dict[str, float]:
    code = ReedSolomon(case.n, case.k, kernel=kernel)
    blocks = case.blocks()
    slices = buffers(case.n, case.block)
    slices.fill(0)
    result = {"encode": timer.rate(case.size, lambda: code.encode_into(list(blocks), list(slices)))}
    kept = {holder: slices[holder] for holder in range(case.n - case.k, case.n)}
    out = buffers(case.k, case.block)
    result["decode"] = timer.rate(case.size, lambda: code.decode_into(kept, list(out)))
    assert np.array_equal(out, blocks)
    everything = dict(enumerate(slices))
    delta = np.frombuffer(np.random.default_rng(0).bytes(case.block), np.uint8)
    result["update"] = timer.rate(case.block, lambda: code.update_into(everything, 0, delta))
    code.encode_into(list(blocks), list(slices))
    liars = tuple(range(0, case.n, 7))[: (case.n - case.k) // 4]
    for liar in liars:
        slices[liar, liar * 31 % case.block] ^= 1
    assert code.locate_errors(everything) == liars
    result["locate"] = timer.rate(case.size, lambda: code.locate_errors(everything), 1)
    return result


def memcpy(case: Case, timer: Timer) -> dict[str, float]:
    source = np.ones(case.size, np.uint8)
    target = np.ones(case.size, np.uint8)
    rate = timer.rate(case.size, lambda: np.copyto(target, source))
    return dict.fromkeys(OPERATIONS, rate)


def _small_field(case: Case) -> None:
    if case.n > 255:
        raise Unable("GF(2⁸) only: at most 255 slices")


def pyeclib(case: Case, timer: Timer) -> dict[str, float]:
    _small_field(case)
    from pyeclib.ec_iface import ECDriver

    driver = ECDriver(k=case.k, m=case.n - case.k, ec_type="isa_l_rs_cauchy")
    record = case.blocks().tobytes()[: case.size]
    slices = driver.encode(record)
    kept = slices[-case.k :]
    assert driver.decode(kept) == record
    return {
        "encode": timer.rate(case.size, lambda: driver.encode(record)),
        "decode": timer.rate(case.size, lambda: driver.decode(kept)),
    }


def isal(case: Case, timer: Timer) -> dict[str, float]:
    """The library itself, without pyeclib's copies: the fairest peer."""
    _small_field(case)
    lib = _isal_library()
    n, k, size = case.n, case.k, case.block
    spare = n - k
    matrix = (ctypes.c_ubyte * (n * k))()
    lib.gf_gen_cauchy1_matrix(matrix, n, k)
    table = (ctypes.c_ubyte * (32 * k * n))()
    lib.ec_init_tables(k, spare, ctypes.byref(matrix, k * k), table)
    blocks, parity, out = case.blocks(), buffers(spare, size), buffers(k, size)
    parity.fill(0)

    def pointers(rows: Any) -> Any:
        return (ctypes.c_void_p * len(rows))(*[row.ctypes.data for row in rows])

    data, coded = pointers(blocks), pointers(parity)
    result = {
        "encode": timer.rate(case.size, lambda: lib.ec_encode_data(size, k, spare, table, data, coded)),
        "update": timer.rate(
            size, lambda: lib.ec_encode_data_update(size, k, spare, 0, table, ctypes.c_void_p(data[0]), coded)
        ),
    }
    lib.ec_encode_data(size, k, spare, table, data, coded)
    kept = list(range(n - k, n))
    rows = b"".join(bytes(matrix[i * k : i * k + k]) for i in kept)
    inverse = (ctypes.c_ubyte * (k * k))()
    lib.gf_invert_matrix((ctypes.c_ubyte * (k * k)).from_buffer_copy(rows), inverse, k)
    back = (ctypes.c_ubyte * (32 * k * k))()
    lib.ec_init_tables(k, k, inverse, back)
    have = pointers([blocks[i] if i < k else parity[i - k] for i in kept])
    to = pointers(out)
    result["decode"] = timer.rate(case.size, lambda: lib.ec_encode_data(size, k, k, back, have, to))
    assert np.array_equal(out, blocks)
    return result


def _isal_library() -> Any:
    spec = importlib.util.find_spec("pyeclib")
    if spec is None or spec.origin is None:
        raise Unable("not installed: pip install pyeclib")
    beside = Path(spec.origin).parent.parent / "pyeclib.libs"
    found = sorted(beside.glob("libisal*"))
    if not found:
        raise Unable("pyeclib's wheel brings no libisal here")
    return ctypes.CDLL(str(found[0]))


def zfec(case: Case, timer: Timer) -> dict[str, float]:
    _small_field(case)
    import zfec as peer

    blocks = [row.tobytes() for row in case.blocks()]
    encoder, decoder = peer.Encoder(case.k, case.n), peer.Decoder(case.k, case.n)
    kept = list(range(case.n - case.k, case.n))
    slices = encoder.encode(blocks)
    have = [slices[i] for i in kept]
    assert decoder.decode(have, kept) == blocks
    return {
        "encode": timer.rate(case.size, lambda: encoder.encode(blocks), 1),
        "decode": timer.rate(case.size, lambda: decoder.decode(have, kept), 1),
    }


def galois(case: Case, timer: Timer) -> dict[str, float]:
    """A shortened RS(255, 255 − (n − k)); its decoder finds the errors itself and so stands under locate."""
    _small_field(case)
    import galois as peer

    gf = peer.GF(2**8)
    code = peer.ReedSolomon(255, 255 - (case.n - case.k), field=gf)
    message = gf(np.random.default_rng(0).integers(0, 256, (SLOW_RECORD // case.k, case.k), dtype=np.uint8))
    rate = timer.rate(message.size, lambda: code.encode(message), 1)
    few = message[:FEW_WORDS]
    words = code.encode(few)
    words[:, : (case.n - case.k) // 4] ^= gf(1)
    assert np.array_equal(code.decode(words), few)
    return {"encode": rate, "locate": timer.rate(few.size, lambda: code.decode(words), 1)}


def contestants() -> dict[str, Callable[[Case, Timer], dict[str, float]]]:
    mode = choose_mode(host_features())

    def fast(threads: int | None) -> Callable[[Case, Timer], dict[str, float]]:
        def run(case: Case, timer: Timer) -> dict[str, float]:
            if mode is None:
                raise Unable("needs llvmlite and a CPU with AVX2: pip install 'fedforget[fast]'")
            return ours(case, timer, llvm_kernel(mode, threads=threads))

        return run

    return {
        "fast": fast(None),
        "fast/1": fast(1),
        "numpy": lambda case, timer: ours(case, timer, NumpyKernel()),
        "memcpy": memcpy,
        "isal": isal,
        "pyeclib": pyeclib,
        "zfec": zfec,
        "galois": galois,
    }


def measure(case: Case, timer: Timer, names: list[str]) -> dict[str, dict[str, float]]:
    rates: dict[str, dict[str, float]] = {}
    for name, run in contestants().items():
        if name not in names:
            continue
        try:
            rates[name] = run(case, timer)
        except ImportError:
            timer.notes[name] = f"not installed: pip install {name}"
        except Unable as why:
            timer.notes[f"{name} at {case.n}/{case.k}"] = str(why)
        except AttributeError as why:  # a peer fallen behind NumPy's API is no reason to lose the others' numbers
            timer.notes[f"{name} at {case.n}/{case.k}"] = f"{type(why).__name__}: {why}"
    return rates


def show(case: Case, rates: dict[str, dict[str, float]], names: list[str]) -> None:
    for operation in OPERATIONS:
        cells = [rates.get(name, {}).get(operation) for name in names]
        text = "".join(f"{'-' if rate is None else f'{rate:.3g}':>9}" for rate in cells)
        print(f"{f'{case.n}/{case.k}':>8} {case.size // MB:>5} MB {operation:>8}{text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", nargs="+", default=[f"{n}/{k}" for n, k in CODES], metavar="N/K")
    parser.add_argument("--sizes", nargs="+", type=int, default=[16], metavar="MB")
    parser.add_argument("--only", nargs="+", default=list(contestants()), metavar="NAME")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a number")
    parser.add_argument("--rounds", type=int, default=1, help="go through all contestants so often, keep the best")
    parser.add_argument("--memory", type=float, default=12.0, help="skip what needs more GB than this")
    parser.add_argument("--slowest", type=float, default=30, help="skip NumPy where a pass would take more seconds")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    timer, rows = Timer(options.budget), []
    print(f"kernel {choose_mode(host_features()) or 'numpy'}, {workers()} threads; GB/s of payload, best of several")
    print(f"{'n/k':>8} {'record':>8} {'':>8}" + "".join(f"{name:>9}" for name in options.only))
    for size in options.sizes:
        for text in options.codes:
            case = Case(*map(int, text.split("/")), size * MB)
            if case.memory > options.memory * 1e9:
                timer.notes[f"{text} at {size} MB"] = f"skipped: needs {case.memory / 1e9:.1f} GB of memory"
                continue
            # NumPy sums about 8·10⁹ products of bytes a second, half as many of two; locating makes ten per byte.
            passes = 10 * case.n * case.size / (8e9 if case.n + case.k <= 256 else 4e9)
            names = [name for name in options.only if name != "numpy" or passes <= options.slowest]
            if len(names) < len(options.only):
                timer.notes[f"numpy at {text}, {size} MB"] = f"skipped: about {passes:.0f} s a pass"
            rates: dict[str, dict[str, float]] = {}
            for _ in range(options.rounds):  # one after the other, so that all see the machine at its quietest
                for name, found in measure(case, timer, names).items():
                    best = rates.setdefault(name, {})
                    best.update({what: max(rate, best.get(what, 0.0)) for what, rate in found.items()})
            show(case, rates, options.only)
            rows.append({"n": case.n, "k": case.k, "bytes": case.size, "rates": rates})
    for name, why in timer.notes.items():
        print(f"- {name}: {why}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "notes": timer.notes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
