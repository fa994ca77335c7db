"""All kernels give the same bytes, and no kernel is compiled for a CPU that is not there."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedforget.coding import NumpyKernel, choose_mode, fastest_kernel, host_features, kernels_llvm, llvm_kernel
from fedforget.coding.field import field
from fedforget.coding.kernel_ir import MODES
from fedforget.coding.kernels import Kernel, spread
from fedforget.errors import MissingExtra, SettingError

HERE = host_features()
ABLE = [mode.name for mode in MODES if all(HERE.get(need, False) for need in mode.needs)]
LENGTHS = [0, 1, 2, 31, 32, 63, 64, 65, 127, 128, 129, 200, 16384, 16385, 70001]


def symbolwise(bits: int, matrix: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Through the field's tables; planes in, planes out."""
    gf = field(bits)
    if bits == 8:
        return gf.product(matrix, inputs.astype(np.uint16)).astype(np.uint8)
    result = gf.product(matrix, inputs[0::2] | inputs[1::2].astype(np.uint16) << 8)
    return np.stack([result & 255, result >> 8], axis=1).reshape(2 * len(matrix), inputs.shape[1]).astype(np.uint8)


def check(kernel: Kernel, bits: int, rows: int, columns: int, length: int, offset: int = 0) -> None:
    gf, rng, wide = field(bits), np.random.default_rng([bits, rows, columns, length]), bits // 8
    matrix = rng.integers(0, gf.order, (rows, columns)).astype(np.uint16)
    matrix[rng.random(matrix.shape) < 0.1] = 0
    inputs = rng.integers(0, 256, (columns * wide, length), dtype=np.uint8)
    expected = symbolwise(bits, matrix, inputs)
    room = rng.integers(0, 256, (rows * wide, offset + length + 70), dtype=np.uint8)
    before = room.copy()
    outputs = [row[offset : offset + length] for row in room]
    kernel.apply(gf, matrix, list(inputs), outputs)
    assert np.array_equal(np.array(outputs), expected)
    kernel.apply(gf, matrix, list(inputs), outputs, accumulate=True)
    assert not np.any(outputs)
    assert np.array_equal(room[:, :offset], before[:, :offset]), "nothing written in front"
    assert np.array_equal(room[:, offset + length :], before[:, offset + length :]), "nothing written behind"


@pytest.fixture(params=["numpy", *ABLE])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return NumpyKernel() if request.param == "numpy" else llvm_kernel(request.param)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("length", LENGTHS)
def test_same_bytes_at_every_length(kernel: Kernel, bits: int, length: int):
    check(kernel, bits, 5, 3, length)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (7, 2), (8, 4), (9, 4), (12, 5), (20, 4), (33, 20), (4, 100)])
def test_same_bytes_at_every_shape(kernel: Kernel, bits: int, shape: tuple[int, int]):
    check(kernel, bits, *shape, 300)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([8, 16]), st.integers(1, 25), st.integers(1, 12), st.integers(0, 300), st.integers(0, 64))
def test_same_bytes_anywhere(bits: int, rows: int, columns: int, length: int, offset: int):
    for name in ABLE:
        check(llvm_kernel(name), bits, rows, columns, length, offset)
    check(NumpyKernel(), bits, rows, columns, length, offset)


@pytest.mark.parametrize("offset", [0, 5])
def test_large_outputs_written_past_the_caches(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, offset: int):
    monkeypatch.setattr(kernels_llvm, "STREAM_FROM", 1 << 16)
    check(kernel, 8, 8, 4, (1 << 17) + 26 - offset, offset)  # rows of 2¹⁷ + 96 bytes: all equally aligned
    check(kernel, 8, 8, 4, (1 << 17) + 1, offset)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("mode", ABLE)
def test_threads_change_nothing(mode: str, threads: int):
    check(llvm_kernel(mode, threads=threads), 8, 20, 4, 100_001)


@pytest.mark.parametrize("mode", ABLE)
def test_many_callers_at_once_while_it_compiles(mode: str):
    for _ in range(5):
        kernels_llvm._engine.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda rows: check(llvm_kernel(mode, threads=2), 8, rows, 4, 120_000), [7] * 8))


def test_spread_covers_everything_once_and_passes_failures_on():
    for length in (0, 1, 10, 99, 100, 101):
        seen: list[int] = []
        spread(lambda start, stop, seen=seen: seen.extend(range(start, stop)), length, 10, 4)
        assert sorted(seen) == list(range(length))

    def fails(start: int, stop: int) -> None:
        if start:
            raise ValueError(start)

    with pytest.raises(ValueError):
        spread(fails, 100, 10, 4)


def flags(*names: str) -> dict[str, bool]:
    return dict.fromkeys(names, True)


def test_mode_is_chosen_by_what_is_there():
    wide = ("avx", "avx2", "avx512f", "avx512bw", "avx512vl")
    assert choose_mode(flags(*wide, "gfni")) == "gfni512"
    assert choose_mode(flags(*wide)) == "avx2"
    assert choose_mode(flags("avx", "avx2", "gfni")) == "gfni256"
    assert choose_mode(flags("avx", "avx2")) == "avx2"
    assert choose_mode(flags("gfni", "avx")) is None, "GFNI of SSE width only"
    assert choose_mode({**flags("avx", "avx2"), "gfni": False}) == "avx2"
    assert choose_mode({}) is None


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
def test_a_mode_the_cpu_lacks_is_refused(mode: str):
    needs = next(m.needs for m in MODES if m.name == mode)
    for lacking in needs:
        there = {need: need != lacking for need in needs}
        with pytest.raises(SettingError, match="kernel mode"):
            llvm_kernel(mode, there)


def test_unknown_mode_is_refused():
    with pytest.raises(SettingError, match="abacus"):
        llvm_kernel("abacus")


def test_without_any_of_the_instructions_numpy_does_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedforget.coding.reed_solomon.host_features", lambda: {"avx": True})
    fastest_kernel.cache_clear()
    assert fastest_kernel().name == "numpy"
    fastest_kernel.cache_clear()


def test_without_llvmlite_numpy_does_it_and_asking_for_more_says_how():
    script = """
        import sys
        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("llvmlite", "numba"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Hidden())
        import importlib.util
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name.startswith("llvmlite") else real(name, *rest)
        from fedforget.coding import ReedSolomon, llvm_kernel
        from fedforget.errors import MissingExtra
        code = ReedSolomon(5, 2)
        assert code.kernel.name == "numpy"
        assert code.decode(dict(enumerate(code.encode([b"ab", b"cd"])))) == [b"ab", b"cd"]
        try:
            llvm_kernel()
        except MissingExtra as error:
            assert "fedforget[fast]" in str(error)
        else:
            raise SystemExit("no error")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)


@pytest.mark.parametrize("mode", [mode.name for mode in MODES if mode.name not in ("avx2",)])
def test_faked_flags_end_in_an_exception_not_in_an_abort(mode: str):
    """In a process of its own: compiling GFNI for a CPU without it would take the process down."""
    script = f"""
        from fedforget.coding import choose_mode, llvm_kernel
        from fedforget.errors import SettingError
        without = {{"avx": True, "avx2": True, "gfni": False}}
        assert choose_mode(without) == "avx2"
        try:
            llvm_kernel({mode!r}, without)
        except SettingError:
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "refused"


def test_an_llvm_too_old_for_the_text_is_not_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels_llvm, "OLDEST_LLVM", 10_000)
    assert host_features() == {}


def test_importing_the_room_loads_no_compiler():
    script = "import sys, fedforget.coding; sys.exit('llvmlite' in sys.modules or 'numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_missing_extra_is_the_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fedforget.coding.kernels_llvm.importlib.util.find_spec", lambda name: None)
    assert host_features() == {}
    with pytest.raises(MissingExtra):
        llvm_kernel()
