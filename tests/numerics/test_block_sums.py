"""Sums in blocks, and exact means of integers, against sums in float64 and of Python's numbers."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.numerics.sums import BLOCK, integer_mean, squares, total

LENGTHS = (1, 2, 5, 17, BLOCK - 1, BLOCK, BLOCK + 1, 521, 2 * BLOCK)


def turned(x, rng, how):
    """x as it is, transposed, with steps, repeated along a new axis, or along its own first one."""
    if how == "transposed":
        return x.transpose(rng.permutation(x.ndim))
    if how == "stepped":
        return x[tuple(slice(None, None, int(rng.choice([1, 2, -1]))) for _ in range(x.ndim))]
    if how == "repeated":
        return np.broadcast_to(x, (3, *x.shape))
    return np.broadcast_to(x[:1], (300, *x.shape[1:])) if how == "stretched" else x


@given(
    shape=st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=4),
    dtype=st.sampled_from(["float16", "float32", "float64", "complex64", "complex128", "int32"]),
    how=st.sampled_from(["", "transposed", "stepped", "repeated", "stretched"]),
    keepdims=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_sums_over_any_axes_of_any_layout(shape, dtype, how, keepdims, seed):
    while prod(shape) > 300_000:
        shape = shape[:-1]
    rng = np.random.default_rng(seed)
    x = turned((rng.random(shape) * (10 if dtype == "int32" else 1)).astype(dtype), rng, how)
    axes = tuple(a for a in range(x.ndim) if rng.random() < 0.6)
    with np.errstate(over="ignore"):  # of float16
        made = total(x, axes, keepdims)
    wanted = x.astype("c16" if x.dtype.kind == "c" else "f8").sum(axis=axes, keepdims=keepdims)
    assert made.dtype == x.dtype and np.shape(made) == np.shape(wanted)
    limit = {"float16": 2e-3, "float32": 1e-6, "complex64": 2e-6}.get(dtype, 1e-13)
    with np.errstate(over="ignore"):
        wanted = wanted.astype(x.dtype)
    np.testing.assert_allclose(made, wanted, rtol=limit)


@pytest.mark.parametrize("shape, axes", [
    ((1_000_003, 3), (0,)), ((1 << 20, 1), (0,)), (((1 << 19) - 1, 2, 2), (0, 2)),
    ((3, 300_007, 2), (1,)), ((700, 31, 37), (0, 2)), ((2, 500_000), (1,)), ((999_983,), (0,))])
@pytest.mark.parametrize("fill", ["random", "equal"])
def test_errors_do_not_grow_with_the_number_of_terms(shape, axes, fill):
    rng = np.random.default_rng(0)
    x = np.float32(1000) + rng.random(shape, np.float32) if fill == "random" else (
        np.full(shape, 1000.3, np.float32))
    np.testing.assert_allclose(total(x, axes), x.sum(axis=axes, dtype=np.float64),
                               rtol=1e-6 if fill == "random" else 1e-5)


@pytest.mark.parametrize("width", [1, 2, 10])
def test_a_column_with_nan_or_infinity_keeps_to_itself(width):
    x = np.ones((5000, width + 2), np.float32)
    x[17, 0], x[4999, 1] = np.inf, np.nan
    made = total(x, (0,))
    assert made[0] == np.inf and np.isnan(made[1]) and (made[2:] == 5000).all()


@pytest.mark.parametrize("count", [0, 1, 3, (1 << 15) - 1, 1 << 15, 1_000_003])
def test_squares_are_summed_in_blocks(count):
    x = np.float32(1000) + np.random.default_rng(0).random(count, np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(squares(x), wide @ wide, rtol=1e-6)


@given(
    dtype=st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                           "uint64"]),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    what=st.sampled_from(["any", "lowest", "highest", "near 0"]),
    axes=st.sampled_from([(), (0,), (1,), (0, 1)]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_means_of_integers_are_exact(dtype, shape, what, axes, seed):
    rng, limits = np.random.default_rng(seed), np.iinfo(dtype)
    low, high = {"any": (limits.min, limits.max), "lowest": (limits.min, limits.min),
                 "highest": (limits.max, limits.max), "near 0": (max(limits.min, -5), 5)}[what]
    x = rng.integers(low, high, shape, dtype, endpoint=True)
    made = integer_mean(np, x, axes)
    sums, count = x.astype(object).sum(axis=axes), prod(shape[a] for a in axes)
    assert made.dtype == x.dtype
    for got, exact in zip(np.ravel(made).tolist(), np.ravel(sums).tolist(), strict=True):
        assert got == abs(exact) // count * (1 if exact >= 0 else -1)
