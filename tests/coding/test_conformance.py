"""What every `Code` must do. The real code does it up to rounding, and locates nothing."""

import numpy as np
import pytest

from fedforget.coding import Code, NumpyKernel, RealLagrange, ReedSolomon, buffers, code_named, fastest_kernel
from fedforget.errors import SettingError, TooManyErrors, Unrecoverable

EXACT: dict[str, Code] = {
    f"{name}-{kernel.name}": ReedSolomon(*arguments, kernel=kernel)
    for kernel in (NumpyKernel(), fastest_kernel())
    for name, arguments in {
        "rs8": (20, 4),
        "rs16": (20, 4, 0, 16),
        "rs8-masked": (12, 3, 2),
        "rs16-masked": (12, 3, 2, 16),
        "rs16-many": (300, 20),
        "whole": (6, 6),
        "copies": (5, 1),
    }.items()
}
REAL: dict[str, Code] = {
    f"real-{nodes}-{precision}": RealLagrange(12, 3, nodes, precision)
    for nodes in ("integers", "uniform", "chebyshev")
    for precision in ("float32", "float64")
}


@pytest.fixture(params=[*EXACT, *REAL])
def code(request: pytest.FixtureRequest) -> Code:
    return {**EXACT, **REAL}[request.param]


@pytest.fixture(params=list(EXACT))
def exact(request: pytest.FixtureRequest) -> Code:
    return EXACT[request.param]


def blocks_for(code: Code, seed: int = 0, size: int = 24) -> list[bytes]:
    rng = np.random.default_rng(seed)
    if isinstance(code, RealLagrange):
        return [rng.normal(size=size // 8).astype(code.precision).tobytes() for _ in range(code.k)]
    return [rng.bytes(size) for _ in range(code.k)]


def same(code: Code, got: list[bytes], wanted: list[bytes]) -> bool:
    if not isinstance(code, RealLagrange):
        return got == wanted
    numbers = [np.stack([np.frombuffer(b, code.precision) for b in side]) for side in (got, wanted)]
    return bool(np.allclose(*numbers, rtol=1e-2, atol=1e-2 if code.precision == "float32" else 1e-6))


def drawn(size: int) -> bytes:
    return np.random.default_rng(5).bytes(size)


def good(code: Code, slices: list[bytes], seed: int = 1) -> dict[int, bytes]:
    holders = np.random.default_rng(seed).permutation(code.n)[: code.k + code.masks].tolist()
    return {holder: slices[holder] for holder in holders}


def test_has_the_shape(code: Code):
    assert code.n >= code.k + code.masks
    assert code.symbol in (1, 2, 4, 8)
    assert code_named(code.description, study=True).description == code.description


def test_any_k_slices_give_the_blocks(code: Code):
    blocks = blocks_for(code)
    slices = code.encode(blocks)
    assert len(slices) == code.n
    assert {len(s) for s in slices} == {len(blocks[0])}
    for seed in range(10):
        assert same(code, code.decode(good(code, slices, seed)), blocks)


def test_all_kinds_of_buffers(code: Code):
    blocks = blocks_for(code)
    slices = code.encode([bytearray(b) for b in blocks], entropy=drawn)
    assert slices == code.encode([memoryview(b) for b in blocks], entropy=drawn)
    assert slices == code.encode([np.frombuffer(b, np.uint8) for b in blocks], entropy=drawn)
    have = {h: bytearray(s) for h, s in good(code, slices).items()}
    assert same(code, code.decode(have), blocks)


def test_into_given_buffers(code: Code):
    blocks = blocks_for(code)
    for room in (buffers(code.n, len(blocks[0])), [bytearray(len(blocks[0])) for _ in range(code.n)]):
        code.encode_into(blocks, list(room), entropy=drawn)
        assert [bytes(r) for r in room] == code.encode(blocks, entropy=drawn)
    have = good(code, code.encode(blocks))
    room = [bytearray(len(blocks[0])) for _ in range(code.k)]
    code.decode_into(have, room)
    assert [bytes(r) for r in room] == code.decode(have)


def test_too_few_slices_are_refused(code: Code):
    slices = good(code, code.encode(blocks_for(code)))
    slices.popitem()
    with pytest.raises(Unrecoverable) as caught:
        code.decode(slices)
    assert caught.value.needed == code.k + code.masks
    assert caught.value.good == len(slices)


def test_empty_blocks(code: Code):
    slices = code.encode([b""] * code.k)
    assert slices == [b""] * code.n
    assert code.decode(dict(enumerate(slices))) == [b""] * code.k


def test_update_is_encoding_again(code: Code):
    blocks = blocks_for(code)
    changed = list(blocks)
    before = code.encode(blocks, entropy=drawn)
    for block in range(code.k):
        new = blocks_for(code, 77)[block]
        delta = code.delta(changed[block], new)
        changed[block] = new
        in_place = {h: bytearray(s) for h, s in enumerate(before)}
        code.update_into(in_place, block, delta)
        one_by_one = [code.update(before[h], h, block, delta) for h in range(code.n)]
        assert [bytes(s) for s in in_place.values()] == one_by_one
        before = one_by_one
    after = code.encode(changed, entropy=drawn)
    assert same(code, code.decode(good(code, before)), changed)
    if not isinstance(code, RealLagrange):
        assert before == after


def test_update_outside_is_refused(code: Code):
    slices = code.encode(blocks_for(code))
    delta = bytes(len(slices[0]))
    for holder, block in ((0, code.k), (0, -1), (code.n, 0), (-1, 0)):
        with pytest.raises(SettingError):
            code.update(slices[0], holder, block, delta)


def test_honest_holders_are_not_accused(exact: Code):
    slices = dict(enumerate(exact.encode(blocks_for(exact))))
    assert exact.locate_errors(slices) == ()
    assert exact.locate_errors(good(exact, list(slices.values()))) == ()
    assert exact.locate_errors(dict(enumerate(exact.encode([b""] * exact.k)))) == ()


def test_liars_up_to_the_bound_are_named_and_one_more_is_refused(exact: Code):
    bound = (exact.n - exact.k - exact.masks) // 2
    rng = np.random.default_rng(3)
    slices = dict(enumerate(exact.encode(blocks_for(exact))))
    order = rng.permutation(exact.n).tolist()
    for holder in order[:bound]:
        slices[holder] = rng.bytes(24)
    assert exact.locate_errors(slices) == tuple(sorted(order[:bound]))
    if exact.n > exact.k + exact.masks:
        slices[order[bound]] = rng.bytes(24)
        with pytest.raises(TooManyErrors):
            exact.locate_errors(slices)


def test_locating_needs_enough_slices(exact: Code):
    slices = good(exact, exact.encode(blocks_for(exact)))
    slices.popitem()
    with pytest.raises(Unrecoverable):
        exact.locate_errors(slices)
