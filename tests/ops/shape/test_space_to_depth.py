"""Blocks of pixels, dilation by batches, and isotonic regression."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_space_to_depth_and_back():
    x = np.arange(48.0).reshape(1, 4, 6, 2)
    y = tf.nn.space_to_depth(x, 2)
    np.testing.assert_array_equal(y[0, 0, 0], [0, 1, 2, 3, 12, 13, 14, 15])
    np.testing.assert_array_equal(tf.nn.depth_to_space(y, 2), x)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    z = tf.nn.space_to_depth(first, 2, "NCHW")
    np.testing.assert_array_equal(z, y.numpy().transpose(0, 3, 1, 2))


@pytest.mark.parametrize("function, shape, block", [
    (tf.nn.space_to_depth, (1, 3, 4, 1), 2), (tf.nn.space_to_depth, (1, 4, 4, 1), 1),
    (tf.nn.depth_to_space, (1, 2, 2, 2), 2), (tf.nn.depth_to_space, (2, 2, 4), 2)])
def test_errors(function, shape, block):
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(np.zeros(shape), block)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_by_batches(padding):
    x, f = (np.random.default_rng(0).normal(size=s) for s in ((1, 7, 8, 2), (3, 2, 2, 3)))

    def convolve(images, num_spatial_dims, padding):
        return tf.nn.conv2d(images, f, 1, padding)

    got = tf.nn.with_space_to_batch(x, [2, 3], padding, convolve, filter_shape=[3, 2])
    np.testing.assert_allclose(got, tf.nn.conv2d(x, f, 1, padding, dilations=[2, 3]))
    plain = tf.nn.with_space_to_batch(x, [1, 1], padding, convolve)
    np.testing.assert_allclose(plain, tf.nn.conv2d(x, f, 1, padding))
    with pytest.raises(ValueError, match="filter_shape"):
        tf.nn.with_space_to_batch(x, [2, 2], "SAME", convolve)


def test_isotonic_regression():
    output, segments = tf.nn.isotonic_regression([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(output, [3, 1.5, 1.5])
    np.testing.assert_array_equal(segments, [0, 1, 1])
    rising = tf.nn.isotonic_regression([[3.0], [1.0], [2.0]], decreasing=False, axis=0)
    np.testing.assert_array_equal(rising.output, [[2], [2], [2]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.nn.isotonic_regression([1, 2])
