"""The special functions as SciPy has them, and their derivatives at special points."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.ops.elementwise.special import igamma_slope

special = pytest.importorskip("scipy.special")
_ONE = np.array([-2.5, -0.3, 0.4, 1.0, 3.0])
_POSITIVE = np.array([0.3, 1.0, 2.5, 7.0])


def _gradient(fn, *args):
    tensors = [tf.constant(a, tf.float64) for a in args]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = fn(*tensors)
    return tape.gradient(y, tensors)


@pytest.mark.parametrize("name, theirs, x", [
    ("erf", special.erf, _ONE), ("erfc", special.erfc, _ONE), ("lgamma", special.gammaln, _ONE),
    ("digamma", special.digamma, _ONE), ("bessel_i0", special.i0, _ONE),
    ("bessel_i1e", special.i1e, _ONE), ("erfinv", special.erfinv, np.array([-0.9, 0.0, 0.5])),
    ("erfcinv", special.erfcinv, np.array([0.1, 1.0, 1.9])),
    ("ndtri", special.ndtri, np.array([0.01, 0.5, 0.9]))])
def test_values(name, theirs, x):
    np.testing.assert_allclose(getattr(tf.math, name)(x), theirs(x), rtol=1e-12, atol=1e-14)


def test_two_and_three_arguments():
    a, x = np.meshgrid(_POSITIVE, _POSITIVE)
    np.testing.assert_allclose(tf.math.igamma(a, x), special.gammainc(a, x), rtol=1e-12)
    np.testing.assert_allclose(tf.math.igammac(a, x), special.gammaincc(a, x), rtol=1e-12)
    np.testing.assert_allclose(tf.math.zeta(a + 1.1, x), special.zeta(a + 1.1, x), rtol=1e-12)
    np.testing.assert_allclose(tf.math.betainc(a, x, 0.3), special.betainc(a, x, 0.3), rtol=1e-11)
    order = tf.constant(2.0, tf.float64)
    np.testing.assert_allclose(tf.math.polygamma(order, x), special.polygamma(2, x), rtol=1e-12)


@pytest.mark.parametrize("a", [9.9e5, 1e6, 4e7, 1e10])
def test_igamma_of_large_orders(a):
    x = a + np.array([-2.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.0]) * np.sqrt(a)
    np.testing.assert_allclose(tf.math.igamma(np.full(7, a), x), special.gammainc(a, x), rtol=1e-12)
    np.testing.assert_allclose(tf.math.igammac(np.full(7, a), x), special.gammaincc(a, x),
                               rtol=1e-12)
    far = tf.math.igamma(np.full(2, a), [1.0, 3 * a])
    np.testing.assert_array_equal(far, [0, 1])


@pytest.mark.parametrize("a", [0.2, 1.0, 5.0, 40.0])
def test_gradient_of_igamma_in_its_order(a):
    x = np.array([0.1, 1.0, 6.0, 38.0, 60.0])
    step = 1e-5
    wanted = (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)
    found, _ = _gradient(tf.math.igamma, np.full(5, a), x)
    np.testing.assert_allclose(found, wanted, atol=2e-9)


def test_igamma_at_zero_is_flat_in_its_order():
    assert _gradient(tf.math.igamma, [2.0], [0.0])[0].numpy().tolist() == [0]


def test_orders_and_shapes_of_betas_get_none():
    assert _gradient(tf.math.polygamma, [1.0], [2.0])[0] is None
    assert _gradient(tf.math.zeta, [2.0], [2.0])[0] is None
    assert _gradient(tf.math.betainc, [2.0], [2.0], [0.5])[:2] == [None, None]


def test_bessel_slopes_at_zero():
    assert _gradient(tf.math.bessel_i1, [0.0])[0].numpy().tolist() == [0.5]
    assert _gradient(tf.math.bessel_i1e, [0.0])[0].numpy().tolist() == [0.5]
    assert _gradient(tf.math.bessel_i0, [0.0])[0].numpy().tolist() == [0.0]


def test_orders_of_derivatives_of_igamma_in_its_order():
    a = tf.constant(1.5, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(a)
        with tf.GradientTape() as inner:
            inner.watch(a)
            y = tf.math.igamma(a, 2.0)
        first = inner.gradient(y, a)
    step = 1e-3
    wanted = np.dot([1, -2, 1], special.gammainc([1.5 - step, 1.5, 1.5 + step], 2.0)) / step**2
    assert outer.gradient(first, a).numpy() == pytest.approx(wanted, rel=1e-5)
    with tf.GradientTape() as third:
        third.watch(a)
        with tf.GradientTape() as outer:
            outer.watch(a)
            y = igamma_slope(a, a)
        slope = outer.gradient(y, a)
    with pytest.raises(LookupError, match="IgammaGradA"):
        third.gradient(slope, a)


def test_lbeta():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(tf.math.lbeta(x), special.betaln(x[:, 0], x[:, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
        tf.math.lbeta(3.0)


@pytest.mark.parametrize("name", ["erf", "lgamma", "bessel_i0"])
def test_integers_are_refused(name):
    with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
        getattr(tf.math, name)(tf.constant([1, 2]))
