"""Sums, means and variances of many numbers, eagerly, in a NumPy program and in a native one.

One by one, 10^6 float32 numbers near 1000 are added with an error of 1e-2.
"""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

MODES = ["eager", "program", pytest.param("native", marks=pytest.mark.native)]
pytestmark = pytest.mark.parametrize("mode", MODES)
ROWS = 1_000_003


def called(mode, function, *args):
    """The arrays that `function` makes of the arrays `args`."""
    made = (function if mode == "eager" else tf.function(function))(*map(tf.constant, args))
    return [m.numpy() for m in tf.nest.flatten(made)]


def near_1000(*shape, dtype=np.float32):
    return dtype(1000) + np.random.default_rng(0).random(shape, np.float32).astype(dtype)


def test_sums_of_columns(mode):
    x = near_1000(ROWS, 3)
    wide = x.astype(np.float64)
    made = called(mode, lambda x: (tf.reduce_sum(x, 0), tf.reduce_mean(x, 0), tf.norm(x, axis=0),
                                   tf.math.reduce_variance(x, 0), tf.nn.moments(x, [0])), x)
    wanted = [wide.sum(0), wide.mean(0), np.sqrt((wide ** 2).sum(0)), wide.var(0), wide.mean(0),
              wide.var(0)]
    for got, exact in zip(made, wanted, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-6)


@pytest.mark.parametrize("shape, axes", [
    ((ROWS,), (0,)), ((1, ROWS, 2), (1,)), ((3, 200_003, 2), (1,)), ((50_021, 4, 5), (0, 2)),
    ((30, 20_011), (1,)), ((7, 2049), (0, 1)), ((127, 129), (0,)), ((2, 5_003, 3, 11), (1, 3))])
def test_sums_over_other_axes(mode, shape, axes):
    x = near_1000(*shape)
    (made,) = called(mode, lambda x: tf.reduce_sum(x, axes), x)
    np.testing.assert_allclose(made, x.sum(axis=axes, dtype=np.float64), rtol=1e-6)


def test_means_of_short_floats(mode):
    x = near_1000(100_003, 2, dtype=np.float16)
    (made,) = called(mode, lambda x: tf.reduce_mean(x, 0), x)
    np.testing.assert_array_equal(made, x.astype(np.float64).mean(0).astype(np.float16))


def test_gradients_of_what_was_broadcast(mode):
    def gradients(x, bias, scale):
        with tf.GradientTape() as tape:
            tape.watch([bias, scale])
            y = tf.reduce_sum((tf.nn.bias_add(x, bias) + scale) * x)
        return tape.gradient(y, [bias, scale])

    x = near_1000(ROWS, 2)
    wanted = x.astype(np.float64).sum(0)
    for made in called(mode, gradients, x, np.zeros(2, np.float32), np.zeros((1, 2), np.float32)):
        np.testing.assert_allclose(made, wanted.reshape(made.shape), rtol=1e-6)


def test_sums_of_exponentials_over_rows(mode):
    x = np.random.default_rng(0).random((ROWS, 2), np.float32)
    wide = np.exp(x.astype(np.float64))
    made = called(mode, lambda x: (tf.nn.softmax(x, axis=0), tf.reduce_logsumexp(x, 0),
                                   tf.nn.log_softmax(x, axis=0)), x)
    total = wide.sum(0)
    for got, exact in zip(made, [wide / total, np.log(total), np.log(wide / total)], strict=True):
        np.testing.assert_allclose(got, exact, rtol=2e-6)


def test_sums_of_squares(mode):
    x = near_1000(3_000_001)
    exact = x.astype(np.float64) @ x.astype(np.float64)
    made = called(mode, lambda x: (tf.nn.l2_loss(x), tf.norm(x), tf.linalg.global_norm([x, x])), x)
    np.testing.assert_allclose(made, [exact / 2, exact ** 0.5, (2 * exact) ** 0.5], rtol=3e-7)


@pytest.mark.parametrize("dtype, values, mean", [
    ("uint8", [250] * 3, 250), ("int8", [-100] * 3 + [-101], -100), ("int32", [-7, 2], -2),
    ("uint16", [65535] * 5, 65535), ("int64", [2**62] * 3, 2**62),
    ("int64", [2**53 + 1] * 2, 2**53 + 1), ("int64", [-2**63] * 2, -2**63),
    ("int64", [-2**63, -2**63 + 1], -2**63 + 1), ("uint64", [7, 2**64 - 2], 2**63 + 2),
    ("uint32", [2**32 - 1] * 3, 2**32 - 1)])
def test_means_of_integers_are_exact(mode, dtype, values, mean):
    x = np.array(values, dtype)
    made = called(mode, lambda x: (tf.reduce_mean(x), tf.reduce_mean(x, 0, keepdims=True),
                                   tf.reduce_mean(tf.stack([x, x], 1), 0)), x)
    assert [m.tolist() for m in made] == [mean, [mean], [mean, mean]]
    assert all(m.dtype == x.dtype for m in made)


@pytest.mark.parametrize("width", [1, 3, 10])
def test_sums_of_segments(mode, width):
    def sums(x, ids):
        return (tf.math.unsorted_segment_sum(x, ids, 3), tf.math.unsorted_segment_mean(x, ids, 3),
                tf.scatter_nd(ids[:, None], x, [3, width]),
                tf.tensor_scatter_nd_add(tf.zeros([3, width]), ids[:, None], x))

    x = near_1000(200_003, width)
    ids = np.random.default_rng(1).integers(0, 3, len(x)).astype(np.int32)
    wanted = np.stack([x[ids == i].sum(0, dtype=np.float64) for i in range(3)])
    total, mean, *scattered = called(mode, sums, x, ids)
    np.testing.assert_allclose(mean, wanted / np.bincount(ids)[:, None], rtol=3e-7)
    for made in (total, *scattered):
        np.testing.assert_array_equal(made, wanted.astype(np.float32))


def test_gradients_of_rows_gathered_often(mode):
    def gradient(table, ids, x):
        with tf.GradientTape() as tape:
            tape.watch(table)
            y = tf.reduce_sum(tf.gather(table, ids) * x)
        return tf.convert_to_tensor(tape.gradient(y, table))

    x = near_1000(100_003, 5)
    ids = np.full(len(x), 1, np.int32)
    (made,) = called(mode, gradient, np.zeros((2, 5), np.float32), ids, x)
    np.testing.assert_array_equal(made[1], x.sum(0, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_many_values_of_one_row_of_a_variable(mode, dtype):
    x = np.random.default_rng(0).random((20_003, 2), np.float32).astype(dtype)
    variable = tf.Variable(np.zeros((9, 2), dtype))

    def change(values, rows):
        variable.scatter_add(tf.IndexedSlices(values, rows))
        return variable.read_value()

    called(mode, change, x, np.where(np.arange(len(x)) == 7, 3, 8))
    others = np.delete(x, 7, axis=0)
    np.testing.assert_array_equal(variable.numpy()[8], others.sum(
        0, dtype=np.float64).astype(np.float32).astype(dtype))
    np.testing.assert_array_equal(variable.numpy()[3], x[7])


@pytest.mark.parametrize("shape, axis", [
    ((1_000_003,), 0), ((257,), 0), ((3, 20_011), 1), ((20_011, 3), 0), ((2, 4_001, 70), 1),
    ((300, 301), 1), ((90_001, 1, 1), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(mode, shape, axis, reverse):
    x = near_1000(*shape)
    (made,) = called(mode, lambda x: tf.cumsum(x, axis, reverse=reverse), x)
    turn = (slice(None),) * axis + (slice(None, None, -1),) if reverse else ()
    wanted = np.cumsum(x[turn], axis, np.float64)[turn]
    np.testing.assert_allclose(made, wanted, rtol=1.2e-7)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "int8"])
def test_running_sums_of_other_types(mode, dtype):
    x = np.random.default_rng(0).integers(0, 3, 2000).astype(dtype)
    (made,) = called(mode, tf.cumsum, x)
    wide = {"float16": "f8", "complex64": "c16", "int8": "i1"}[dtype]
    np.testing.assert_array_equal(made, np.cumsum(x, dtype=wide).astype(dtype))
