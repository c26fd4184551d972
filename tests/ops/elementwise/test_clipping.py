"""Clipping at the limits, with slices, and with norms that are not finite."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def _pulled(fn, *arrays):
    tensors = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = fn(*tensors)
    return y, [g.numpy() for g in tape.gradient(y, tensors)]


def test_bounds_get_the_gradient_of_what_they_replace():
    y, (x, low, high) = _pulled(tf.clip_by_value, [-1.0, 0.0, 0.5, 1.0, 2.0], 0.0, 1.0)
    assert y.numpy().tolist() == [0, 0, 0.5, 1, 1]
    assert (x.tolist(), low, high) == ([0, 1, 1, 1, 0], 1, 1)


def test_bounds_must_not_enlarge():
    with pytest.raises(ValueError, match="broadcast to the shape"):
        tf.clip_by_value(5.0, [3.0, 4.0], 6.0)


@pytest.mark.parametrize("x, limit, value, gradient", [
    ([0.0, 0.0], 1.0, [0, 0], [1, 1]), ([3.0, 4.0], 10.0, [3, 4], [1, 1]),
    ([3.0, 4.0], 5.0, [3, 4], [0.16, -0.12]), ([3.0, 4.0], 0.0, [0, 0], [0, 0]),
    ([3.0, 4.0], -1.0, [0, 0], [0, 0]), ([0.0, 0.0], 0.0, [0, 0], [0, 0]),
    ([np.nan, 1.0], 1.0, [np.nan] * 2, [np.nan] * 2)])
def test_clip_by_norm(x, limit, value, gradient):
    y, (g,) = _pulled(lambda x: tf.clip_by_norm(x, limit), x)
    np.testing.assert_allclose(y, value)
    np.testing.assert_allclose(g, gradient, atol=1e-6)


def test_clip_by_norm_along_axes_and_by_a_tensor():
    y = tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], tf.constant(1.0), axes=[1])
    np.testing.assert_allclose(y, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_clip_by_norm_refuses_integers_and_none():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.clip_by_norm(tf.constant([3, 4]), 1.0)
    with pytest.raises(ValueError):
        tf.clip_by_norm(None, 1.0)


def test_slices_are_clipped_by_the_norm_of_their_values():
    rows = tf.IndexedSlices(tf.ones((3, 2)), tf.constant([0, 2, 0]), tf.constant([3, 2]))
    clipped = tf.clip_by_norm(rows, 1.0)
    np.testing.assert_allclose(clipped.values, np.full((3, 2), 6**-0.5), rtol=1e-6)
    assert tf.clip_by_value(rows, 0.0, 0.5).values.numpy().max() == 0.5


def test_global_norm_keeps_none_and_structure():
    (x, none), norm = tf.clip_by_global_norm([[3.0, 4.0], None], 1.0)
    np.testing.assert_allclose(x, [0.6, 0.8], rtol=1e-6)
    assert none is None and norm.numpy() == 5


def test_a_norm_that_is_not_finite_makes_all_nan():
    (x, y), norm = tf.clip_by_global_norm([[np.inf], [1.0]], 1.0)
    assert np.isnan([x.numpy()[0], y.numpy()[0]]).all() and np.isinf(norm.numpy())


def test_small_gradients_are_not_changed_at_all():
    values = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    (x,), _ = tf.clip_by_global_norm([values], 1e3 / 3)
    np.testing.assert_array_equal(x, values)


def test_use_norm_and_bad_lists():
    (x,), norm = tf.clip_by_global_norm([[2.0]], 1.0, use_norm=tf.constant(4.0))
    assert (x.numpy()[0], norm.numpy()) == (0.5, 4)
    with pytest.raises(TypeError, match="list"):
        tf.clip_by_global_norm(tf.constant([1.0]), 1.0)


def test_the_lower_limit_wins_over_a_smaller_upper_one():
    assert tf.clip_by_value([-1.0, 0.5, 2.0], 1.0, 0.0).numpy().tolist() == [1, 1, 1]
