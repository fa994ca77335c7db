import numpy as np
import pytest

from fedforget.coding import RealLagrange, code_named, error_table
from fedforget.coding.real import FAMILIES, nodes
from fedforget.errors import SettingError


def models(count: int, size: int, precision: str = "float64") -> list[bytes]:
    return [np.random.default_rng(i).normal(size=size).astype(precision).tobytes() for i in range(count)]


def numbers(blocks: list[bytes], precision: str = "float64") -> np.ndarray:
    return np.stack([np.frombuffer(b, precision) for b in blocks])


def test_only_who_studies_gets_it():
    with pytest.raises(SettingError, match="study"):
        code_named("real-float32-integers/100/4/0")
    assert code_named("real-float32-integers/100/4/0", study=True) == RealLagrange(100, 4)
    with pytest.raises(SettingError):
        code_named("real-float32-integers/100/4/1", study=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (2, 3), (4, 20), (4, 100), (16, 100), (3, 3)])
def test_nodes_are_all_different(family: str, k: int, n: int):
    data, held = nodes(family, k, n)
    assert (len(data), len(held)) == (k, n)
    assert len({*data.tolist(), *held.tolist()}) == k + n


def test_it_is_the_papers_formula():
    """u(α) = Σ_s w_s ∏_{j≠s} (α − ω_j)/(ω_s − ω_j), with ω = 1, 2 and α = 3, 4: a straight line goes on."""
    code = RealLagrange(2, 2, "integers", "float64")
    blocks = [np.array([1.0, 10.0]).tobytes(), np.array([2.0, 10.0]).tobytes()]
    assert numbers(code.encode(blocks)).tolist() == [[3.0, 10.0], [4.0, 10.0]]


@pytest.mark.parametrize("family", ["uniform", "chebyshev"])
def test_reconstruct_as_written_gives_coefficients_not_blocks(family: str):
    code = RealLagrange(12, 4, family, "float64")
    blocks = models(4, 6)
    slices = dict(enumerate(code.encode(blocks)))
    literal = code.reconstruct_literally(slices)
    assert not np.allclose(numbers(literal), numbers(blocks), rtol=0.1, atol=0.1)
    assert np.allclose(numbers(code.evaluated(literal)), numbers(blocks))


def test_locating_is_refused():
    code = RealLagrange(12, 3)
    with pytest.raises(SettingError, match="finite field"):
        code.locate_errors(dict(enumerate(code.encode(models(3, 4, "float32")))))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RealLagrange(3, 4),
        lambda: RealLagrange(3, 0),
        lambda: RealLagrange(3, 2, "random"),
        lambda: RealLagrange(3, 2, precision="float16"),
        lambda: RealLagrange(3, 2).encode([b"abcd"]),
        lambda: RealLagrange(3, 2).encode([b"abc", b"abc"]),
        lambda: RealLagrange(3, 2).decode({0: b"abcd", 3: b"abcd"}),
        lambda: RealLagrange(3, 2).encode_into([b"abcd", b"abcd"], [bytearray(4)]),
        lambda: nodes("random", 2, 3),
    ],
)
def test_settings_that_cannot_be(make):
    with pytest.raises(SettingError):
        make()


def test_what_it_loses():
    rows = {(r.nodes, r.precision): r for r in error_table((4,), (100,), size=128, draws=10)}
    assert rows["integers", "float32"].median_error > 1e-3
    assert rows["integers", "float64"].median_error < rows["integers", "float32"].median_error
    assert all(row.exact < 0.5 for row in rows.values()), "hardly a number comes back bit for bit"
    assert rows["chebyshev", "float32"].nearest < 0.2, "where rounding is mild one slice is nearly a model"
    assert rows["integers", "float32"].nearest > 1


def test_the_table_is_a_function_of_its_seed():
    first, again, other = (list(error_table((2,), (6,), size=32, draws=3, seed=s)) for s in (1, 1, 2))
    assert first == again != other
    assert [(r.nodes, r.precision) for r in first] == [(f, p) for f in FAMILIES for p in ("float32", "float64")]
