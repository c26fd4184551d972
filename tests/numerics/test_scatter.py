"""Segment reductions against NumPy's ufunc.at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.numerics import scatter

CASES = [
    (scatter.segment_sum, np.add, 0.0),
    (scatter.segment_prod, np.multiply, 1.0),
    (scatter.segment_max, np.maximum, np.finfo(np.float64).min),
    (scatter.segment_min, np.minimum, np.finfo(np.float64).max),
]


@pytest.mark.parametrize("reduce, ufunc, empty", CASES)
@given(
    rows=st.integers(0, 40),
    row_shape=st.sampled_from([(), (1,), (3,), (2, 2), (0,)]),
    count=st.integers(1, 8),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_rows_of_one_id_are_reduced(reduce, ufunc, empty, rows, row_shape, count, seed):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((rows, *row_shape))
    ids = rng.integers(-2, count + 2, rows).astype(np.int32)
    expected = np.full((count, *row_shape), empty)
    kept = (ids >= 0) & (ids < count)
    ufunc.at(expected, ids[kept], data[kept])
    result = reduce(np, data, ids, count)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-12)


ORDERED = ["int8", "uint8", "int32", "int64", "uint64", "float16", "float32"]


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("reduce, ufunc, empty", CASES)
def test_dtype_is_kept(reduce, ufunc, empty, dtype):
    data = np.array([1, 0, 3], dtype)
    result = reduce(np, data, np.array([1, 1, 0]), 2)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, [data[2], ufunc(data[0], data[1])])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_sums_and_products(dtype):
    data = np.array([1 + 2j, 3 - 1j, 2j], dtype)
    ids = np.array([0, 0, 2])
    total = scatter.segment_sum(np, data, ids, 3)
    assert total.dtype == dtype
    np.testing.assert_array_equal(total, [4 + 1j, 0, 2j])
    product = scatter.segment_prod(np, data, ids, 3)
    np.testing.assert_array_equal(product, [5 + 5j, 1, 2j])


def test_integers_wrap_and_keep_their_sign():
    data = np.array([-5, 2, np.iinfo(np.int64).min, -1], np.int64)
    result = scatter.segment_sum(np, data, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(result, [-3, np.iinfo(np.int64).max])


def test_float16_is_summed_in_float32():
    data = np.full(4096, 1.0, np.float16)
    assert scatter.segment_sum(np, data, np.zeros(4096, int), 1)[0] == 4096


def test_a_nan_wins():
    data, ids = np.array([1.0, np.nan, 2.0, 5.0]), np.array([0, 0, 0, 1])
    for reduce in (scatter.segment_max, scatter.segment_min):
        np.testing.assert_array_equal(reduce(np, data, ids, 2), [np.nan, 5.0])


def test_counts():
    ids = np.array([0, -1, 5, 1, 1])
    np.testing.assert_array_equal(scatter.segment_count(np, ids, 3), [1, 2, 0])


def test_blocks_agree_with_one_block(monkeypatch):
    rng = np.random.default_rng(0)
    data, ids = rng.standard_normal((50, 4)), rng.integers(0, 7, 50)
    whole = scatter.segment_sum(np, data, ids, 7)
    monkeypatch.setattr(scatter, "HOST_BLOCK", 8 * 4 * 3)
    np.testing.assert_allclose(scatter.segment_sum(np, data, ids, 7), whole)
