"""Products, log-sum-exp, variances, norms and counts at special points."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def _gradient(fn, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [5.0],
                               [1.0, 0.0, 2.0, -1.0, 3.0, 4.0, 0.5]])
def test_the_gradient_of_a_product_is_the_product_of_the_others(x):
    wanted = [np.prod(x[:i] + x[i + 1:]) for i in range(len(x))]
    np.testing.assert_allclose(_gradient(tf.reduce_prod, x), wanted)


def test_second_derivative_of_a_product_at_zeros():
    x = tf.constant([0.0, 0.0, 3.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_prod(x)
        first = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(first, x), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_product_over_axes_and_of_nothing():
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))
    np.testing.assert_allclose(tf.reduce_prod(x, [0, 2], keepdims=True), x.prod((0, 2),
                                                                              keepdims=True))
    assert tf.reduce_prod(tf.zeros((0,))).numpy() == 1
    assert _gradient(tf.reduce_prod, np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert tf.reduce_prod(tf.constant([2, 3])).dtype == tf.int32


def test_product_of_complex_numbers():
    x = np.array([1 + 2j, 3 - 1j, 0j])
    got = _gradient(tf.reduce_prod, x)
    np.testing.assert_allclose(got, np.conj([0, 0, (1 + 2j) * (3 - 1j)]))


@pytest.mark.parametrize("fn", [tf.reduce_all, tf.reduce_any])
def test_logical_reductions_take_bools_only(fn):
    with pytest.raises(TypeError, match="takes bools"):
        fn([1, 0])


def test_logical_reductions():
    x = tf.constant([[True, False], [True, True]])
    assert tf.reduce_all(x, 1).numpy().tolist() == [False, True]
    assert tf.reduce_any(x, keepdims=True).numpy().tolist() == [[True]]
    assert bool(tf.reduce_all(tf.constant([], tf.bool)))
    assert not bool(tf.reduce_any(tf.constant([], tf.bool)))


@pytest.mark.parametrize("x, value, gradient", [
    ([1000.0, 1000.0], 1000.6931472, [0.5, 0.5]), ([-np.inf, -np.inf], -np.inf, [0, 0]),
    ([np.inf, 0.0], np.inf, [np.nan, 0]), ([-np.inf, 2.0], 2.0, [0, 1])])
def test_logsumexp_at_its_limits(x, value, gradient):
    assert tf.reduce_logsumexp(x).numpy() == pytest.approx(value)
    np.testing.assert_allclose(_gradient(tf.reduce_logsumexp, x), gradient)


def test_logsumexp_of_nothing_and_of_integers():
    assert tf.reduce_logsumexp(tf.zeros((0,))).numpy() == -np.inf
    with pytest.raises(tf.errors.InvalidArgumentError, match="cast"):
        tf.reduce_logsumexp([1, 2])


def test_deviation_and_norm_have_gradient_zero_where_they_are_zero():
    assert _gradient(tf.math.reduce_std, [1.0, 1.0]).tolist() == [0, 0]
    assert _gradient(tf.math.reduce_euclidean_norm, [0.0, 0.0]).tolist() == [0, 0]
    np.testing.assert_allclose(_gradient(tf.math.reduce_std, [1.0, 2.0]), [-0.5, 0.5])


def test_variance_of_complex_numbers_is_real():
    z = np.array([1 + 2j, 3 - 1j])
    found = tf.math.reduce_variance(z)
    assert found.dtype == tf.float64
    assert found.numpy() == pytest.approx(np.var(z))


@pytest.mark.parametrize("fn", [tf.math.reduce_variance, tf.math.reduce_std])
def test_spread_refuses_integers(fn):
    with pytest.raises(TypeError, match="floating"):
        fn([1, 2])


def test_variance_of_nothing_is_nan():
    assert np.isnan(tf.math.reduce_variance(tf.zeros((0,))).numpy())


def test_norm_keeps_the_dtype():
    assert tf.math.reduce_euclidean_norm([3, 4]).numpy() == 5
    assert tf.math.reduce_euclidean_norm([3, 4]).dtype == tf.int32
    assert tf.math.reduce_euclidean_norm(tf.constant([3 + 4j])).numpy() == 5 + 0j


def test_counts():
    x = tf.constant([[0.0, 1.0], [0.0, 2.0]])
    assert tf.math.count_nonzero(x, axis=0).numpy().tolist() == [0, 2]
    assert tf.math.count_nonzero(x).dtype == tf.int64
    assert tf.math.count_nonzero(["", "a"]).numpy() == 1
    assert tf.math.zero_fraction([0, 1, 0]).numpy() == pytest.approx(2 / 3)


def test_zero_fraction_of_bools():
    assert tf.math.zero_fraction([True, False, False, False]).numpy() == 0.75


def test_an_axis_is_an_integer():
    with pytest.raises(TypeError, match=r"axis must be an integer; got 1\.7"):
        tf.reduce_sum([[1.0]], axis=1.7)
