"""softmax and kin: overflow, axes, empty arrays, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gtape as tf


def test_no_overflow():
    np.testing.assert_array_equal(tf.nn.softmax([1000.0, 0.0]), [1, 0])
    np.testing.assert_array_equal(tf.nn.log_softmax([1000.0, 0.0]), [0, -1000])
    np.testing.assert_array_equal(tf.nn.softmax([-math.inf, 0.0]), [0, 1])


def test_half_precision_is_summed_in_single():
    y = tf.nn.softmax(tf.zeros([5000], tf.float16))
    assert y.dtype is tf.float16
    np.testing.assert_allclose(y, np.full(5000, 1 / 5000), rtol=1e-3)


def test_axes():
    x = np.arange(6.0).reshape(2, 3)
    wanted = np.exp(x) / np.exp(x).sum(0)
    np.testing.assert_allclose(tf.nn.softmax(x, axis=0), wanted)
    np.testing.assert_allclose(tf.nn.log_softmax(x, axis=-2), np.log(wanted))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty(shape):
    assert tf.nn.softmax(tf.zeros(shape)).shape == shape
    assert tf.nn.log_softmax(tf.zeros(shape)).shape == shape


@pytest.mark.parametrize("function", [tf.nn.softmax, tf.nn.log_softmax])
def test_errors(function):
    for bad in (1.0, [1, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(bad))
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
        function([1.0, 2.0], axis=3)


def test_gradient_of_a_constant_sum_is_zero():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.nn.softmax(x)
    np.testing.assert_allclose(tape.gradient(y, x), [0, 0], atol=1e-7)
