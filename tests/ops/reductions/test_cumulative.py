"""cumsum, cumprod and cumulative_logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf


def _grad(function: Any, x: Any, weights: Any = None, **options: Any) -> np.ndarray:
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = function(t, **options)
        if weights is not None:
            y = y * tf.constant(weights)
    return tape.gradient(y, t).numpy()


@pytest.mark.parametrize("exclusive, reverse, wanted", [
    (False, False, [1, 3, 6]), (True, False, [0, 1, 3]), (False, True, [6, 5, 3]),
    (True, True, [5, 3, 0])])
def test_cumsum(exclusive: bool, reverse: bool, wanted: Any) -> None:
    made = tf.cumsum([1, 2, 3], exclusive=exclusive, reverse=reverse)
    assert made.numpy().tolist() == wanted and made.dtype == tf.int32


@pytest.mark.parametrize("exclusive, reverse, wanted", [
    (False, False, [2, 6, 24]), (True, False, [1, 2, 6]), (False, True, [24, 12, 4]),
    (True, True, [12, 4, 1])])
def test_cumprod(exclusive: bool, reverse: bool, wanted: Any) -> None:
    made = tf.math.cumprod([2.0, 3.0, 4.0], exclusive=exclusive, reverse=reverse)
    assert made.numpy().tolist() == wanted


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumulative_logsumexp"])
def test_gradients_of_every_form_equal_finite_differences(name: str, exclusive: bool,
                                                          reverse: bool) -> None:
    function, step = getattr(tf.math, name), 1e-6
    x, w = np.array([0.5, -1.2, 2.0, 0.7]), np.array([1.0, -2.0, 3.0, 0.5])
    if name == "cumulative_logsumexp" and exclusive:
        w[-1 if reverse else 0] = 0
    options = {"exclusive": exclusive, "reverse": reverse}

    def total(values: np.ndarray) -> float:
        y = function(values, **options).numpy()
        return float(np.sum(y[w != 0] * w[w != 0]))

    slopes = [(total(x + step * e) - total(x - step * e)) / (2 * step) for e in np.eye(4)]
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = tf.boolean_mask(function(t, **options), w != 0) * w[w != 0]
    np.testing.assert_allclose(tape.gradient(y, t).numpy(), slopes, rtol=1e-5)


@pytest.mark.parametrize("x, wanted", [([1.0, 0.0, 3.0], [1, 4, 0]), ([2.0, 0.0, 0.0], [1, 2, 0]),
                                       ([0.0, 0.0], [1, 0])])
def test_cumprod_is_exact_at_zeros(x: Any, wanted: Any) -> None:
    np.testing.assert_allclose(_grad(tf.math.cumprod, x), wanted)


def test_the_second_derivative_of_cumprod_at_a_zero() -> None:
    x = tf.constant([2.0, 0.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.cumprod(x)[2]
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(slope, x).numpy(), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])


def test_products_that_overflow_where_nothing_looks_do_not_spoil_the_gradient() -> None:
    grad = _grad(tf.math.cumprod, [1e-30, 1e20, 1e20], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(grad, [1, 0, 0])


def test_long_axes() -> None:
    x = np.linspace(0.9, 1.1, 1000)
    grad = _grad(tf.math.cumprod, x)
    tails = np.cumsum(np.cumprod(x)[::-1])[::-1]
    np.testing.assert_allclose(grad, tails / x, rtol=1e-9)


def test_logsumexp_does_not_overflow() -> None:
    made = tf.math.cumulative_logsumexp([1000.0, 1000.0, -1000.0])
    np.testing.assert_allclose(made.numpy(), [1000, 1000 + np.log(2), 1000 + np.log(2)])
    grad = _grad(tf.math.cumulative_logsumexp, [1000.0, 1000.0])
    np.testing.assert_allclose(grad, [1.5, 0.5], rtol=1e-4)
    np.testing.assert_allclose(_grad(tf.math.cumulative_logsumexp, [-np.inf, 1.0]), [0, 1])


def test_half_precision_sums_in_single() -> None:
    made = tf.cumsum(tf.ones([3000], tf.float16))
    assert made.dtype == tf.float16 and made.numpy()[-1] == 3000


def test_complex_numbers() -> None:
    x = np.array([1 + 2j, 0.5 - 1j])
    np.testing.assert_allclose(tf.math.cumprod(x).numpy(), np.cumprod(x))
    np.testing.assert_allclose(_grad(tf.math.cumprod, x), np.conj([1 + x[1], x[0]]))


@pytest.mark.parametrize("function", [tf.cumsum, tf.math.cumprod])
def test_small_integers_wrap(function: Any) -> None:
    assert function(tf.constant([100, 100], tf.int8)).dtype == tf.int8


@pytest.mark.parametrize("x, axis", [(1.0, 0), ([1.0], 1), ([True], 0)])
def test_bad_input(x: Any, axis: int) -> None:
    for function in (tf.cumsum, tf.math.cumprod, tf.math.cumulative_logsumexp):
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(x, axis)


def test_empty_axes() -> None:
    for function in (tf.cumsum, tf.math.cumprod, tf.math.cumulative_logsumexp):
        assert function(tf.zeros([0, 2]), exclusive=True).shape == [0, 2]
        assert _grad(function, np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_logsumexp_of_short_floats(dtype, reverse):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.cumulative_logsumexp(x, reverse=reverse)
        return y, tape.gradient(y, x)

    x = np.random.default_rng(0).normal(size=40).astype(np.float32)
    given = tf.cast(tf.constant(x), dtype)
    wanted = gradient(tf.cast(given, tf.float64))
    for made in (gradient(given), tf.function(gradient)(given)):
        for got, exact in zip(made, wanted):
            assert got.dtype.name == dtype
            np.testing.assert_allclose(got.numpy().astype(np.float64), exact.numpy(), rtol=2e-2)
