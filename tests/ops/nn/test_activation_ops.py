"""Activations: values and slopes at special points, second derivatives, arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gtape as tf
from gtape.ops.nn import activations

_INF, _NAN = math.inf, math.nan


def _value_and_slope(function, points):
    x = tf.constant(points, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y.numpy(), tape.gradient(y, x).numpy()


@pytest.mark.parametrize("name, points, values, slopes", [
    ("relu", [-1, 0, 1, _NAN, _INF], [0, 0, 1, _NAN, _INF], [0, 0, 1, 0, 1]),
    ("relu6", [-1, 0, 3, 6, 7], [0, 0, 3, 6, 6], [0, 0, 1, 0, 0]),
    ("leaky_relu", [-1, 0, 1], [-0.2, 0, 1], [0.2, 0.2, 1]),
    ("elu", [-1, 0, 1, -200], [-0.63212055, 0, 1, -1], [0.36787945, 1, 1, 0]),
    ("selu", [-1, 0, 1], [-1.1113307, 0, 1.050701], [0.64676857, 1.050701, 1.050701]),
    ("gelu", [-1, 0, 1], [-0.15865526, 0, 0.8413447], [-0.08331549, 0.5, 1.0833155]),
    ("silu", [-1, 0, 1], [-0.26894143, 0, 0.7310586], [0.072329484, 0.5, 0.92767054]),
    ("softplus", [-200, 0, 200, 1000], [0, 0.6931472, 200, 1000], [0, 0.5, 1, 1]),
    ("softsign", [-1, 0, 1], [-0.5, 0, 0.5], [0.25, 1, 0.25]),
    ("log_sigmoid", [-200, 0, 200], [-200, -0.6931472, 0], [1, 0.5, 0]),
])
def test_special_points(name, points, values, slopes):
    got, slope = _value_and_slope(getattr(activations, name), points)
    np.testing.assert_allclose(got, values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, second", [
    ("relu", [0, 0]), ("relu6", [0, 0]), ("leaky_relu", [0, 0]), ("elu", [0.36787945, 0]),
    ("gelu", [0.24197075, -0.107981935]), ("silu", [0.30236614, 0.050062157])])
def test_second_derivatives_are_connected(name, second):
    x = tf.Variable([-1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = getattr(activations, name)(x)
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(slope, x), second, rtol=1e-4, atol=1e-6)


def test_parameters_are_differentiable():
    x, alpha = tf.constant([-2.0, 3.0]), tf.Variable(0.1)
    with tf.GradientTape() as tape:
        y = tf.nn.leaky_relu(x, alpha)
    assert tape.gradient(y, alpha).numpy() == -2
    beta = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.nn.silu(x, beta)
    s = 1 / (1 + np.exp(-2 * x.numpy()))
    np.testing.assert_allclose(tape.gradient(y, beta), np.sum(x.numpy() ** 2 * s * (1 - s)), 1e-5)


def test_approximate_gelu():
    got, slope = _value_and_slope(lambda x: tf.nn.gelu(x, approximate=True), [-1, 0, 1])
    np.testing.assert_allclose(got, [-0.158808, 0, 0.841192], atol=1e-6)
    np.testing.assert_allclose(slope, [-0.08296409, 0.5, 1.0829641], atol=1e-6)


def test_crelu():
    np.testing.assert_array_equal(tf.nn.crelu([1.0, -2.0]), [1, 0, 0, 2])


def test_relu_takes_integers_and_lists_but_no_bools():
    np.testing.assert_array_equal(tf.nn.relu(tf.constant([1, -1])), [1, 0])
    np.testing.assert_array_equal(tf.nn.relu([1.0, -1.0]), [1, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="real numbers"):
        tf.nn.relu([True])
    with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
        tf.nn.gelu([1, 2])


def test_large_arrays_equal_small_ones():
    x = np.linspace(-4, 4, 70000, dtype=np.float32)
    for name in ("relu", "gelu", "silu", "elu", "softplus"):
        function = getattr(activations, name)
        whole, parts = function(x), [function(x[:100]), function(x[-100:])]
        np.testing.assert_allclose(whole[:100], parts[0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(whole[-100:], parts[1], rtol=1e-6, atol=1e-7)


def test_leaky_relu_of_integers():
    found = tf.nn.leaky_relu([5, -5])
    assert found.dtype is tf.float32 and found.numpy().tolist() == [5, -1]
