"""dropout: the mask, its shape, its seed, and what the gradient is."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_values_are_dropped_or_scaled():
    tf.random.set_seed(1)
    y = tf.nn.dropout(tf.ones([10000]), 0.3).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.7], rtol=1e-6)
    assert abs(np.mean(y == 0) - 0.3) < 0.02


def test_the_gradient_is_the_same_mask():
    x = tf.Variable(tf.ones([50]))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.nn.dropout(x, 0.5)
        g = tape.gradient(y, x)
    np.testing.assert_array_equal(g, y)
    assert outer.gradient(g, x) is None


def test_rate_zero_is_x_itself():
    x = tf.constant([1.0])
    assert tf.nn.dropout(x, 0.0) is x


def test_dropped_infinities_are_zeros():
    tf.random.set_seed(0)
    assert np.all(np.isin(tf.nn.dropout(tf.fill([100], np.inf), 0.5), [0, np.inf]))


def test_noise_shape():
    y = tf.nn.dropout(tf.ones([6, 4]), 0.5, noise_shape=[None, 1]).numpy()
    assert np.all(y == y[:, :1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="dropout"):
        tf.nn.dropout(tf.ones([3, 4]), 0.5, noise_shape=[2, 1])


def test_seeds():
    x = tf.ones([100])
    tf.random.set_seed(3)
    first = tf.nn.dropout(x, 0.5, seed=1).numpy()
    second = tf.nn.dropout(x, 0.5, seed=1).numpy()
    tf.random.set_seed(3)
    assert np.any(first != second)
    np.testing.assert_array_equal(tf.nn.dropout(x, 0.5, seed=1), first)


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, [0.5]])
def test_rates_outside_the_range(rate):
    with pytest.raises(ValueError, match="rate"):
        tf.nn.dropout([1.0], rate)


def test_integers_are_refused():
    with pytest.raises(ValueError, match="floating"):
        tf.nn.dropout([1, 2], 0.5)
