"""Pooling: ties, padding, layouts, positions, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

_X = np.random.default_rng(0).normal(size=(2, 5, 6, 3)).astype(np.float32)


def _slope(function, points):
    x = tf.constant(points, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y.numpy(), tape.gradient(y, x).numpy()


_SQUARE = [[[[1.0], [3.0]], [[3.0], [2.0]]]]


def test_a_tie_goes_to_the_first_cell():
    y, g = _slope(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), _SQUARE)
    assert y == 3
    np.testing.assert_array_equal(g[0, :, :, 0], [[0, 1], [0, 0]])


def test_padding_never_wins_and_is_not_counted():
    x = -np.ones((1, 3, 3, 1), np.float32)
    assert np.all(tf.nn.max_pool2d(x, 3, 1, "SAME").numpy() == -1)
    assert np.all(tf.nn.avg_pool2d(x, 3, 1, "SAME").numpy() == -1)
    _, g = _slope(lambda x: tf.nn.avg_pool2d(x, 2, 1, "SAME"), _SQUARE)
    np.testing.assert_allclose(g[0, :, :, 0], [[0.25, 0.75], [0.75, 2.25]])


def test_second_derivative_is_zeros():
    x = tf.Variable([-1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.nn.max_pool1d(x[None, :, None], 2, 2, "VALID")
        g = inner.gradient(y, x)
    np.testing.assert_array_equal(outer.gradient(g, x), [0, 0])


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_channels_first(name):
    function = getattr(tf.nn, name)
    x = np.ascontiguousarray(_X.transpose(0, 3, 1, 2))
    got = function(x, [1, 1, 2, 3], [1, 1, 1, 2], "SAME", "NCHW")
    wanted = function(_X, [1, 2, 3, 1], [1, 1, 2, 1], "SAME").numpy()
    np.testing.assert_array_equal(got, wanted.transpose(0, 3, 1, 2))


def test_ranks_agree():
    two = tf.nn.max_pool2d(_X, [1, 2], [1, 2], "SAME")
    np.testing.assert_array_equal(tf.nn.max_pool(_X, [1, 2], [1, 2], "SAME"), two)
    np.testing.assert_array_equal(tf.nn.max_pool1d(_X[:, 0], 2, 2, "SAME"), two[:, 0])
    np.testing.assert_array_equal(
        tf.nn.max_pool3d(_X[:, None], [1, 1, 2], [1, 1, 2], "SAME")[:, 0], two)
    np.testing.assert_array_equal(tf.nn.pool(_X, [1, 2], "MAX", [1, 2], "SAME"), two)
    dilated = tf.nn.pool(_X[:, 0], [2], "AVG", dilations=[2])
    np.testing.assert_allclose(dilated, (_X[:, 0, :-2] + _X[:, 0, 2:]) / 2, rtol=1e-6)


def test_positions_of_the_largest():
    values, index = tf.nn.max_pool_with_argmax(_X, 3, 2, "SAME")
    flat = _X.reshape(2, -1)
    picked = np.take_along_axis(flat, index.numpy().reshape(2, -1), 1)
    np.testing.assert_array_equal(picked, values.numpy().reshape(2, -1))
    result = tf.nn.max_pool_with_argmax(_X, 3, 2, "SAME", output_dtype=tf.int32,
                                        include_batch_in_index=True)
    assert result.argmax.dtype is tf.int32
    np.testing.assert_array_equal(_X.reshape(-1)[result.argmax.numpy()], values)


@pytest.mark.parametrize("x, size, padding, message", [
    (_X[0], 2, "SAME", "rank 4"), (_X, 0, "SAME", "1 or more"), (_X, 9, "VALID", "fit"),
    (_X, 2, "HALF", "padding"), (_X, [2, 1, 1, 1], "SAME", "batch")])
def test_errors(x, size, padding, message):
    for function in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
        with pytest.raises(ValueError, match=message):
            function(x, size, 1, padding)


def test_integers_and_empty_batches():
    assert tf.nn.max_pool2d(_X.astype(np.int32), 2, 1, "SAME").dtype is tf.int32
    with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
        tf.nn.avg_pool2d(_X.astype(np.int32), 2, 1, "SAME")
    assert tf.nn.max_pool2d(_X[:0], 2, 1, "SAME").shape == (0, 5, 6, 3)
    with pytest.raises(ValueError, match="pooling_type"):
        tf.nn.pool(_X, [2, 2], "SUM")


def test_no_window_lies_in_the_padding():
    pads = [[0, 0], [2, 0], [0, 0], [0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="smaller than the window"):
        tf.nn.max_pool2d(_X, 2, 1, pads)
    assert np.isfinite(tf.nn.max_pool2d(_X, 3, 1, pads)).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="got None"):
        tf.nn.max_pool2d(_X, 2, 1, None)
