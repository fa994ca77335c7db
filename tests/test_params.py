"""Params: one frozen vector, views of it, reductions in float64, and a file anybody's safetensors can read."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedforget.errors import Damaged, SettingError
from fedforget.params import Layout, Params, gram, mean, square_length, weighted_mean

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
floats = st.floats(-1e6, 1e6, width=32)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(lambda n: n != "__metadata__")


@st.composite
def models(draw: st.DrawFn) -> Params:
    """Scalars, tensors of size zero, and counters among the weights."""
    arrays = {}
    for name in draw(st.lists(names, max_size=4, unique=True)):
        weights = hnp.arrays(np.float32, shapes, elements=floats)
        counters = hnp.arrays(st.sampled_from([np.int64, np.uint8, np.bool_]), shapes)
        counters = counters.map(lambda a: a if a.dtype != np.int64 else a % 1000)
        arrays[name] = draw(st.one_of(weights, weights, counters))
    return Params.of(arrays)


@st.composite
def several(draw: st.DrawFn, least: int = 1) -> list[Params]:
    """Models of one layout, without counters."""
    size, count = draw(st.integers(0, 9)), draw(st.integers(least, 5))
    table = draw(hnp.arrays(np.float32, (count, size), elements=floats))
    cut = size // 2
    return [Params.of({"a": row[:cut], "b": row[cut:]}) for row in table]


def model(*values: float) -> Params:
    return Params.of({"w": np.array(values, np.float32)})


# --- one vector, many views ---------------------------------------------------------------------------------


@given(models())
def test_arrays_are_views_in_their_own_shape(params: Params) -> None:
    for (name, array), dtype in zip(params.arrays().items(), params.layout.dtypes, strict=True):
        assert array.shape == params.layout.shapes[params.layout.names.index(name)]
        assert str(array.dtype) == dtype
        if dtype == "float32" and array.size:
            assert np.shares_memory(array, params.vector)
        assert np.array_equal(array, params[name])


def test_nothing_can_be_written_through_a_model() -> None:
    source = np.arange(3, dtype=np.float32)
    params = Params.of({"w": source})
    source[0] = 9
    assert params["w"].tolist() == [0, 1, 2]
    for array in (params.vector, params["w"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_vector_is_taken_as_it_is_not_copied() -> None:
    layout, vector = model(0, 0).layout, np.ones(2, np.float32)
    assert np.shares_memory(Params(layout, vector).vector, vector)
    assert vector.flags.writeable  # the view is frozen, not its owner's


@pytest.mark.parametrize("vector", [np.ones(2), np.ones(3, np.float32), np.ones(4, np.float32)[::2]])
def test_a_vector_of_another_kind_size_or_stride_is_refused(vector: np.ndarray) -> None:
    with pytest.raises(SettingError, match=r"float32 of \(2,\), contiguous"):
        Params(model(0, 0).layout, vector)


def test_shapes_of_all_sorts() -> None:
    params = Params.of(
        {
            "scalar": np.float32(2.5),
            "none": np.zeros((0, 3), np.float32),
            "matrix": np.arange(6, dtype=np.float64).reshape(2, 3).T,
            "seen": np.array(7, np.int64),
        }
    )
    assert params.layout.sizes == (1, 0, 6, 1)
    assert params["scalar"].shape == ()
    assert params["none"].shape == (0, 3)
    assert params["matrix"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert (params["seen"], params["seen"].dtype) == (7, np.int64)
    assert params.nbytes == 32


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_what_is_no_number_is_refused_by_name(array: np.ndarray) -> None:
    with pytest.raises(SettingError, match="tensor odd"):
        Params.of({"odd": array})


@pytest.mark.parametrize(
    "count",
    [np.array([2**24 + 1]), np.array([-(2**24) - 1]), np.array([2**63], np.uint64), np.array([-(2**63)])],
)
def test_a_count_that_float32_cannot_hold_is_refused_by_name(count: np.ndarray) -> None:
    with pytest.raises(SettingError, match="counter seen"):
        Params.of({"seen": count})
    assert Params.of({"seen": np.array([2**24, -(2**24)])})["seen"].tolist() == [2**24, -(2**24)]


def test_equality_is_of_names_and_of_every_bit() -> None:
    assert model(1, 2) == model(1, 2)
    assert model(0.0) != model(-0.0)
    assert model(1, 2) != Params.of({"v": np.array([1, 2], np.float32)})
    assert model(1) != "a model"
    assert len({model(1), model(1), model(2)}) == 2
    assert model(float("nan")) == model(float("nan"))


def test_nan_and_infinity_are_seen() -> None:
    assert model(1, 2).is_finite
    assert not model(1, float("nan")).is_finite
    assert not model(1, float("inf")).is_finite


# --- reductions ---------------------------------------------------------------------------------------------


@given(several())
def test_the_mean_is_taken_in_float64_and_rounded_once(params: list[Params]) -> None:
    total = np.zeros(params[0].layout.size)
    for one in params:
        total += one.vector
    assert np.array_equal(mean(params).vector, (total / len(params)).astype(np.float32))


def test_so_what_float32_would_lose_is_kept() -> None:
    assert mean([model(1e8), model(1), model(-1e8)])["w"].tolist() == [np.float32(1 / 3)]


@given(several(least=2), st.data())
def test_a_weighted_mean_is_that_of_so_many_copies(params: list[Params], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(1, 5), min_size=len(params), max_size=len(params)))
    copies = [one for one, weight in zip(params, weights, strict=True) for _ in range(weight)]
    exact = np.average([p.vector.astype(np.float64) for p in params], axis=0, weights=weights)
    assert weighted_mean(params, weights).vector == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert weighted_mean(params, weights).vector == pytest.approx(mean(copies).vector, rel=1e-6, abs=1e-6)


def test_the_order_given_is_the_order_added_in_so_callers_sort() -> None:
    """Floating sums depend on their order: a fixed one is what makes digests the same everywhere."""
    big, small = model(3e38), model(1e-8)
    parts = [big, small, model(-3e38)]
    assert mean(parts) == mean(parts)
    assert mean(parts) != mean([parts[0], parts[2], parts[1]])


def test_counts_are_averaged_and_rounded() -> None:
    one, two = (Params.of({"w": np.float32([n]), "seen": np.array([n, 3 * n])}) for n in (1, 4))
    assert mean([one, two])["seen"].tolist() == [2, 8]  # to even, as `rint` does
    assert mean([one, two])["w"].tolist() == [2.5]


@pytest.mark.parametrize(
    ("params", "weights"),
    [
        ([], []),
        ([model(1)], [1.0, 2.0]),
        ([model(1)], [0.0]),
        ([model(1)], [float("nan")]),
        ([model(1), model(2)], [3.0, -1.0]),
    ],
)
def test_a_mean_of_nothing_is_refused(params: Sequence[Params], weights: Sequence[float]) -> None:
    with pytest.raises(SettingError, match="weights"):
        weighted_mean(params, weights)


def test_a_mean_of_unlike_models_is_refused() -> None:
    with pytest.raises(SettingError, match="layout"):
        mean([model(1), model(1, 2)])


@given(models())
def test_the_norm_is_of_the_learned_numbers_layer_by_layer(params: Params) -> None:
    learned = [a.astype(np.float64) for a in params.arrays().values() if a.dtype == np.float32]
    assert params.square_norms() == pytest.approx([float((a * a).sum()) for a in learned])
    assert params.norm() == pytest.approx(np.sqrt(sum(float((a * a).sum()) for a in learned)))


@given(several(least=2))
def test_the_gram_matrices_are_the_inner_products_of_updates(params: list[Params]) -> None:
    start, *ends = params
    table = gram(start, ends)
    for layer, name in enumerate(start.layout.names):
        steps = [(end[name].astype(np.float64) - start[name]).ravel() for end in ends]
        naive = [[one @ two for two in steps] for one in steps]
        assert table[layer] == pytest.approx(np.array(naive), rel=1e-9, abs=1e-9)
    assert np.array_equal(table, np.transpose(table, (0, 2, 1)))
    assert [square_length(start, end) for end in ends] == [table.sum(axis=0)[i, i] for i in range(len(ends))]


def test_reductions_go_over_models_of_many_chunks() -> None:
    rng = np.random.default_rng(0)
    start, one, two = (Params.of({"w": rng.standard_normal(100_003).astype(np.float32)}) for _ in range(3))
    steps = [p.vector.astype(np.float64) - start.vector for p in (one, two)]
    assert gram(start, [one, two])[0] == pytest.approx(np.array(steps) @ np.array(steps).T)
    assert one.norm() == pytest.approx(np.linalg.norm(one.vector.astype(np.float64)))


def test_counters_have_no_length_and_no_direction() -> None:
    start, end = (Params.of({"w": np.float32([n]), "seen": np.array(10 * n)}) for n in (1, 3))
    assert gram(start, [end]).tolist() == [[[4.0]]]
    halfway = start.along(end, 0.5)
    assert (halfway["w"].tolist(), int(halfway["seen"])) == ([2.0], 30)


@given(several(least=2), st.floats(-4, 4))
def test_a_step_along_an_update(params: list[Params], factor: float) -> None:
    start, end, *_ = params
    exact = start.vector + factor * (end.vector.astype(np.float64) - start.vector)
    assert start.along(end, factor).vector == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert start.along(end, 1.0) is end
    assert np.array_equal(start.along(end, 0.0).vector, start.vector)


def test_a_step_out_of_float32_is_infinite_not_a_warning() -> None:
    assert not model(0).along(model(1), 1e39).is_finite
    assert not model(0, 0).along(model(1, 0), float("inf")).is_finite


# --- the file -----------------------------------------------------------------------------------------------


@given(models())
@example(Params.of({}))
@example(Params.of({"none": np.zeros((0, 2), np.float32)}))
def test_written_and_read_back_is_the_same_model_and_the_digest_is_the_files(params: Params) -> None:
    blob = params.to_bytes()
    back = Params.from_bytes(blob)
    assert back == params
    assert {n: str(a.dtype) for n, a in back.arrays().items()} == {n: str(a.dtype) for n, a in params.arrays().items()}
    assert params.digest == back.digest == hashlib.sha256(blob).hexdigest()
    assert blob.endswith(params.body)


@given(models())
def test_the_file_follows_the_safetensors_format(params: Params) -> None:
    blob = params.to_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + length])
    data = blob[8 + length :]
    assert blob[8:9] == b"{"
    assert length % 8 == 0
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(value, str) for value in metadata.values())
    assert list(header) == list(params.layout.names)
    end = 0
    for name, tensor in header.items():
        begin, stop = tensor["data_offsets"]
        assert (tensor["dtype"], begin) == ("F32", end)  # in order, no holes
        values = np.frombuffer(data[begin:stop], "<f4").reshape(tensor["shape"])
        assert np.array_equal(values, params[name].astype(np.float32))
        end = stop
    assert end == len(data)


def test_reading_copies_nothing() -> None:
    blob = bytearray(model(1, 2, 3).to_bytes())
    assert np.shares_memory(Params.from_bytes(blob).vector, np.frombuffer(blob, np.uint8))


@given(models(), st.data())
def test_cut_short_anywhere_it_is_damaged_and_named(params: Params, data: st.DataObject) -> None:
    blob = params.to_bytes()
    cut = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises(Damaged) as fault:
        Params.from_bytes(blob[:cut], "the model")
    assert fault.value.path == "the model"
    with pytest.raises(Damaged):
        Params.from_bytes(blob + b"\0", "the model")


@given(models(), st.data())
def test_a_flipped_bit_is_damage_or_another_model_with_another_digest(params: Params, data: st.DataObject) -> None:
    blob = bytearray(params.to_bytes())
    bit = data.draw(st.integers(0, 8 * len(blob) - 1))
    blob[bit // 8] ^= 1 << bit % 8
    try:
        read = Params.from_bytes(blob)
    except Damaged:
        return
    assert len(read.arrays()) == len(params.arrays())
    if read == params:  # the same header in other words: \u00e9 for \u00E9
        assert blob.lower() == params.to_bytes().lower()
    else:
        assert read.digest != params.digest


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{",
        b"\xff\xff",
        b"[" * 100_000,
        b'{"w":3}',
        b'{"w":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":"1","data_offsets":[0,4]}}',
        b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        b'{"w":{"dtype":"F32","shape":[1]}}',
        b'{"w":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}}',
        b'{"__metadata__":{"fedforget.counters":"{\\"w\\":\\"int65\\"}"},'
        b'"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"__metadata__":{"fedforget.counters":"{\\"w\\":\\"complex64\\"}"},'
        b'"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b'{"__metadata__":{"fedforget.counters":"[]"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    ],
)
def test_a_header_that_makes_no_sense_is_damage_not_a_crash(header: bytes) -> None:
    with pytest.raises(Damaged, match="model is damaged"):
        Params.from_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def test_numbers_that_are_missing_are_counted() -> None:
    with pytest.raises(Damaged, match="expected 12 bytes of numbers, found 8"):
        Params.from_bytes(model(1, 2, 3).to_bytes()[:-4])


def test_a_layout_knows_its_weights_from_its_counters() -> None:
    layout = Layout(("w", "seen", "b"), ((2, 2), (), (3,)), ("float32", "int64", "float32"))
    assert layout.size == 8
    assert layout.weights == (slice(0, 4), slice(5, 8))
    assert layout.counters == (slice(4, 5),)
