"""segment_* and unsorted_segment_*."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.ops.indexing.gathering import rows_or_zero_

_M = [[1.0, 2.0], [3.0, 4.0]]


def _grad(function: Any, x: Any) -> list[Any]:
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = function(t)
    return tape.gradient(y, t).numpy().tolist()


@pytest.mark.parametrize("name, wanted", [
    ("sum", [3, 0, 4]), ("mean", [1.5, 0, 4]), ("max", [2, 0, 4]), ("min", [1, 0, 4]),
    ("prod", [2, 1, 4])])
def test_sorted_segments(name: str, wanted: Any) -> None:
    made = getattr(tf.math, f"segment_{name}")([1.0, 2.0, 4.0], [0, 0, 2])
    assert made.numpy().tolist() == wanted


@pytest.mark.parametrize("name, wanted", [
    ("sum", [5, 2, 0]), ("mean", [2.5, 2, 0]), ("sqrt_n", [5 / 2**0.5, 2, 0]),
    ("max", [4, 2, np.finfo("f").min]), ("min", [1, 2, np.finfo("f").max]), ("prod", [4, 2, 1])])
def test_unsorted_segments(name: str, wanted: Any) -> None:
    function = getattr(tf.math, f"unsorted_segment_{name}")
    made = function([1.0, 2.0, 4.0, 9.0], [0, 1, 0, -1], 3)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-6)


def test_ids_of_many_axes_and_of_none() -> None:
    assert tf.math.unsorted_segment_sum(_M, [[0, 1], [1, 0]], 2).numpy().tolist() == [5, 5]
    assert tf.math.unsorted_segment_sum(_M, 0, 2).numpy().tolist() == [_M, [[0, 0], [0, 0]]]
    assert tf.math.segment_sum(tf.zeros([0, 2]), tf.constant([], tf.int32)).shape == [0, 2]


def test_means_of_integers() -> None:
    assert tf.math.segment_mean([1, 2, 4], [0, 0, 2]).numpy().tolist() == [1, 0, 4]
    mean = tf.math.unsorted_segment_mean([1, 2], [0, 0], 2)
    assert mean.dtype == tf.float64 and mean.numpy().tolist() == [1.5, 0]


def test_ties_share_the_gradient() -> None:
    assert _grad(lambda x: tf.math.segment_max(x, [0, 0, 1]), [2.0, 2.0, 3.0]) == [0.5, 0.5, 1]
    assert _grad(lambda x: tf.math.unsorted_segment_min(x, [1, -1, 1], 3),
                 [2.0, 2.0, 2.0]) == [0.5, 0, 0.5]


@pytest.mark.parametrize("x, wanted", [([3.0, 2.0, 0.0], [0, 1, 3]), ([0.0, 2.0, 0.0], [0, 1, 0]),
                                       ([3.0, 2.0, 5.0], [5, 1, 3])])
def test_products_are_exact_at_zeros(x: Any, wanted: Any) -> None:
    assert _grad(lambda t: tf.math.unsorted_segment_prod(t, [1, 0, 1], 2), x) == wanted


def test_second_derivative_of_a_product_with_a_zero() -> None:
    x = tf.constant([2.0, 0.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.segment_prod(x, [0, 0, 0])
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(slope, x).numpy(), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])


def test_empty_segments_do_not_spoil_second_derivatives() -> None:
    x, w = tf.constant([1.0, 2.0]), tf.constant([1.0, 1.0, 1.0])
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(w * tf.math.unsorted_segment_max(x, [0, 2], 3) ** 2)
        slope = inner.gradient(y, x)
    assert np.isfinite(outer.gradient(slope, w).numpy()[[0, 2]]).all()


@pytest.mark.parametrize("ids", [[1, 0], [0], [-1, 0], [0.0, 1.0], [[0, 1], [0, 1]]])
def test_sorted_ids_that_do_not_fit(ids: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.segment_sum(_M, ids)


@pytest.mark.parametrize("ids, count", [([5, 0], 2), ([0, 1, 1], 2), ([0, 1], -1)])
def test_unsorted_ids_that_do_not_fit(ids: Any, count: int) -> None:
    for name in ("sum", "mean", "max", "prod"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            getattr(tf.math, f"unsorted_segment_{name}")(_M, ids, count)


@pytest.mark.parametrize("name", ["sum", "mean", "sqrt_n", "max", "min", "prod"])
def test_gradients_of_no_segments(name: str) -> None:
    function = getattr(tf.math, f"unsorted_segment_{name}")
    assert function(_M, [-1, -1], 0).shape == (0, 2)
    assert _grad(lambda x: function(x, [-1, -1], 0), _M) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.native)])
@pytest.mark.parametrize("rows", [0, 3])
def test_rows_out_of_range_are_zeros(rows: int, compiled: bool) -> None:
    def f(x: Any, at: Any) -> Any:
        return rows_or_zero_(x, at)

    x, at = tf.ones((rows, 2)), tf.constant([-9, -1, 2, 3, 10**6])
    made = (tf.function(f) if compiled else f)(x, at).numpy()
    wanted = np.zeros((5, 2), "f")
    wanted[2] = rows > 2
    np.testing.assert_array_equal(made, wanted)


def test_dtypes_that_do_not_fit() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.segment_max([True], [0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.native)])
def test_what_is_not_finite_stays_in_its_segment(bad: float, compiled: bool) -> None:
    """Of products too: [2, 3 | bad, 5 | 7, bad (dropped)]."""
    x = tf.constant([2.0, bad, 3.0, 5.0, 7.0, bad])
    ids = tf.constant([0, 1, 0, 1, 2, -1])

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.unsorted_segment_prod(x, ids, 3)
        return tape.gradient(y, x)

    made = (tf.function(gradient) if compiled else gradient)(x).numpy()
    np.testing.assert_array_equal(made, [3, 5, 2, bad, 1, 0])


def test_products_of_long_segments_against_float64() -> None:
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, 7, 300))
    x = rng.uniform(0.9, 1.1, (300, 2))
    x[5, 0] = 0
    made = np.array(_grad(lambda t: tf.math.segment_prod(t, ids), x))
    for i in range(300):
        others = (ids == ids[i]) & (np.arange(300) != i)
        np.testing.assert_allclose(made[i], x[others].prod(0), rtol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_of_negative_ids_have_no_gradient_whatever_the_first_segment_has(
        value: float) -> None:
    assert _grad(lambda x: tf.math.unsorted_segment_sum(x, [0, -1], 1) * value, [1.0, 2.0]) == [
        pytest.approx(value, nan_ok=True), 0]


# ---------------------------------------------------------------- rows dealt out and put together


def _lists(tensors: Any) -> list[Any]:
    return [t.numpy().tolist() for t in tensors]


def test_partition() -> None:
    assert _lists(tf.dynamic_partition(_M, [1, 0], 2)) == [[[3, 4]], [[1, 2]]]
    assert _lists(tf.dynamic_partition(_M, [[1, 0], [0, 0]], 3)) == [[2, 3, 4], [1], []]
    assert [t.shape.as_list() for t in tf.dynamic_partition(_M, 1, 2)] == [[0, 2, 2], [1, 2, 2]]


@pytest.mark.parametrize("partitions, count", [([1, 2], 2), ([1], 2), ([0, 1], 0), ([0.0, 1.0], 2),
                                               ([-1, 0], 2)])
def test_partitions_that_do_not_fit(partitions: Any, count: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.dynamic_partition(_M, partitions, count)


def test_the_gradient_of_one_part() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.dynamic_partition(x, [0, 1, 0], 2)[0] ** 2
    assert tape.gradient(y, x).numpy().tolist() == [2, 0, 6]


def test_stitch() -> None:
    rows = tf.dynamic_stitch([[2, 0], [1]], [[[1], [2]], [[3]]])
    assert rows.numpy().tolist() == [[2], [3], [1]]
    assert tf.dynamic_stitch([0, [1, 3]], [5, [6, 7]]).numpy().tolist() == [5, 6, 0, 7]
    assert tf.dynamic_stitch([[0, 0], [0]], [[1, 2], [3]]).numpy().tolist() == [3]
    assert tf.dynamic_stitch([tf.zeros([0], tf.int32)], [tf.zeros([0, 2])]).shape == [0, 2]


def test_partition_and_stitch_undo_each_other() -> None:
    x, numbers = tf.constant([5.0, 6.0, 7.0, 8.0]), [1, 0, 1, 1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        places = tf.dynamic_partition([0, 1, 2, 3], numbers, 2)
        y = tf.dynamic_stitch(places, tf.dynamic_partition(x, numbers, 2))
        z = y * y
    assert y.numpy().tolist() == [5, 6, 7, 8]
    assert tape.gradient(z, x).numpy().tolist() == [10, 12, 14, 16]


def test_of_equal_indices_the_last_gets_the_gradient() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.dynamic_stitch([[0, 1], [0]], [x, y])
    assert _lists(tape.gradient(z, [x, y])) == [[0, 1], [1]]


@pytest.mark.parametrize("indices, data", [
    ([[0, -1]], [[1, 2]]), ([[0], [1]], [[1, 2], [3]]), ([[0], [1]], [[1]]), ([], [])])
def test_stitches_that_do_not_fit(indices: Any, data: Any) -> None:
    with pytest.raises(ValueError):
        tf.dynamic_stitch(indices, data)
