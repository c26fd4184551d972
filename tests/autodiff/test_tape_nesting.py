"""Tapes inside tapes: derivatives of every order."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gtape as tf


def _derivatives(f: object, x: float, orders: int) -> list[float | None]:
    """The first `orders` derivatives of f at x, by nested tapes."""
    source = tf.Variable(x, dtype=tf.float64)
    tapes = [tf.GradientTape() for _ in range(orders)]
    for tape in tapes:
        tape.__enter__()
    value = f(source)  # type: ignore[operator]
    found = []
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        value = None if value is None else tape.gradient(value, source)
        found.append(None if value is None else float(value))
    return found


def test_all_orders_of_known_functions() -> None:
    x = 0.7
    assert _derivatives(lambda t: tf.exp(2.0 * t), x, 4) == pytest.approx(
        [2 ** n * math.exp(1.4) for n in range(1, 5)])
    assert _derivatives(lambda t: tf.sin(t), x, 4) == pytest.approx(
        [math.cos(x), -math.sin(x), -math.cos(x), math.sin(x)])
    assert _derivatives(lambda t: tf.math.log(t), x, 4) == pytest.approx(
        [1 / x, -1 / x ** 2, 2 / x ** 3, -6 / x ** 4])
    assert _derivatives(lambda t: 1.0 / t, x, 3) == pytest.approx(
        [-1 / x ** 2, 2 / x ** 3, -6 / x ** 4])


def test_structure_decides_between_none_and_zero() -> None:
    assert _derivatives(lambda t: t ** 3, 2.0, 4) == [12.0, 12.0, 6.0, 0.0]
    assert _derivatives(lambda t: t * t, 2.0, 3) == [4.0, 2.0, None]
    assert _derivatives(lambda t: t + t, 2.0, 2) == [2.0, None]


def test_the_tangent_of_tanh_to_the_fifth_order() -> None:
    x = 0.3
    t = math.tanh(x)
    s = 1 - t * t
    wanted = [s, -2 * t * s, s * (6 * t * t - 2), s * t * (16 - 24 * t * t),
              s * (16 - 120 * t * t + 120 * t ** 4)]
    assert _derivatives(lambda v: tf.tanh(v), x, 5) == pytest.approx(wanted)


def test_the_outer_tape_must_be_active_during_the_inner_gradient() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x * x * x
    g = inner.gradient(y, x)
    assert outer.gradient(g, x) is None


def test_each_tape_watches_for_itself() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        g = inner.gradient(y, x)
    assert outer.gradient(g, x) is None
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        g = inner.gradient(y, x)
    assert float(outer.gradient(g, x)) == 18.0


def test_mixed_derivatives_agree() -> None:
    def mixed(first: int, second: int) -> float:
        xs = [tf.Variable(1.2, dtype=tf.float64), tf.Variable(0.4, dtype=tf.float64)]
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.sin(xs[0] * xs[1]) + xs[0] ** 2 * xs[1]
            g = inner.gradient(y, xs[first])
        return float(outer.gradient(g, xs[second]))

    assert mixed(0, 1) == pytest.approx(mixed(1, 0), rel=1e-12)


def test_a_gradient_penalty_reaches_the_weights() -> None:
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.standard_normal((3, 1)))
    x = tf.constant(rng.standard_normal((5, 3)))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.tanh(x @ w)
        slope = inner.gradient(y, x)
        penalty = tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1.0))
    got = outer.gradient(penalty, w).numpy()
    step = 1e-6
    for i in range(3):
        moved = []
        for sign in (1, -1):
            at = w.numpy()
            at[i, 0] += sign * step
            s = 1 - np.tanh(x.numpy() @ at) ** 2
            moved.append(np.mean((np.linalg.norm(s * at.T, axis=1) - 1) ** 2))
        assert got[i, 0] == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-6)


def test_hessian_vector_products_by_two_tapes() -> None:
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    v = tf.constant([1.0, 0.0, -1.0], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x ** 3) + x[0] * x[1] * x[2]
        g = inner.gradient(y, x)
        product = tf.reduce_sum(g * v)
    a, b, c = 1.0, 2.0, 3.0
    hessian = np.array([[6 * a, c, b], [c, 6 * b, a], [b, a, 6 * c]])
    np.testing.assert_allclose(outer.gradient(product, x), hessian @ v.numpy())


def test_two_independent_tapes_side_by_side() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as one, tf.GradientTape() as two:
        y = x * x
        z = y * x
    assert float(one.gradient(y, x)) == 4.0
    assert float(two.gradient(z, x)) == 12.0


def test_a_tape_inside_a_custom_gradient() -> None:
    x = tf.Variable(2.0)

    @tf.custom_gradient
    def cube(t):  # type: ignore[no-untyped-def]
        def grad(g):  # type: ignore[no-untyped-def]
            with tf.GradientTape() as inside:
                inside.watch(t)
                y = t ** 3
            return g * inside.gradient(y, t)

        return t ** 3, grad

    with tf.GradientTape() as tape:
        y = cube(x)
    assert float(tape.gradient(y, x)) == 12.0
