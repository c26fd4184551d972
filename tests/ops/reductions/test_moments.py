"""Derivatives of moments of all orders, and moments of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

MODES = ["eager", "program", pytest.param("native", marks=pytest.mark.native)]


def _hessian(function: Any, mode: str, x: np.ndarray) -> np.ndarray:
    def hessian(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        return outer.jacobian(slope, x)

    return (hessian if mode == "eager" else tf.function(hessian))(tf.constant(x)).numpy()


@pytest.mark.parametrize("mode", MODES)
def test_the_second_derivative_of_a_variance(mode: str) -> None:
    """(2 / n) (I - 1 / n): TensorFlow takes the mean for a constant and has (2 / n) I."""
    x = np.array([0.5, -1.0, 2.0])
    wanted = 2 / 3 * (np.eye(3) - 1 / 3)
    for function in (lambda x: tf.nn.moments(x, [0])[1], tf.math.reduce_variance,
                     lambda x: tf.nn.weighted_moments(x, [0], [1.0, 1.0, 1.0])[1]):
        np.testing.assert_allclose(_hessian(function, mode, x), wanted, atol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("training", [False, True])
def test_the_second_derivative_of_batch_normalization(mode: str, training: bool) -> None:
    weights = tf.constant([[1.0, -2.0], [3.0, 0.5], [-1.0, 2.0]], tf.float64)

    def loss(x: Any) -> Any:
        from gtape.ops.nn.normalization import batch_norm_training

        if training:
            one = tf.ones([2], tf.float64)
            return tf.reduce_sum(batch_norm_training(x, one, one, axes=(0,), eps=0.1) * weights)
        mean, variance = tf.nn.moments(x, [0])
        return tf.reduce_sum(weights * tf.nn.batch_normalization(x, mean, variance, None, None,
                                                                 0.1))

    x, step = np.array([[0.5, 1.0], [-1.0, 0.0], [2.0, 0.3]]), 1e-5
    made = _hessian(loss, mode, x).reshape(6, 6)

    def slope(x: np.ndarray) -> np.ndarray:
        t = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(t)
            y = loss(t)
        return tape.gradient(y, t).numpy().reshape(6)

    for i, unit in enumerate(np.eye(6).reshape(6, 3, 2)):
        wanted = (slope(x + step * unit) - slope(x - step * unit)) / (2 * step)
        np.testing.assert_allclose(made[i], wanted, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_moments_of_complex_numbers(mode: str) -> None:
    def moments(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            mean, variance = tf.nn.moments(x, [0])
        return mean, variance, tape.gradient(variance, x)

    x = np.array([1 + 2j, 3 - 1j, 0.5j], np.complex64)
    made = (moments if mode == "eager" else tf.function(moments))(tf.constant(x))
    wanted = [x.mean(), x.var(), 2 / 3 * (x - x.mean())]
    for got, exact in zip(made, wanted):
        assert got.dtype is tf.complex64
        np.testing.assert_allclose(got.numpy(), exact, rtol=1e-6)
