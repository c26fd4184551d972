"""Higher derivatives: tapes inside tapes, Hessian-vector products, a gradient penalty."""

from __future__ import annotations

import numpy as np

import gtape as tf


def second_derivative() -> None:
    """y = x^3: y' = 3x^2 and y'' = 6x. The outer tape records how the inner one answers."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    print("x^3 at 3, first and second derivative:", first.numpy(), second.numpy())
    assert first.numpy() == 27.0
    assert second.numpy() == 18.0


def derivatives_of_sine(x: float, order: int) -> list[float]:
    """sin and its first `order` derivatives at x, by as many tapes."""
    point = tf.constant(x)

    def derive(level: int) -> list[tf.Tensor]:
        if level == 0:
            return [tf.sin(point)]
        with tf.GradientTape() as tape:
            tape.watch(point)
            values = derive(level - 1)
        return [*values, tape.gradient(values[-1], point)]

    return [float(value) for value in derive(order)]


def fourth_order() -> None:
    """sin, cos, -sin, -cos and sin again."""
    found = derivatives_of_sine(0.5, 4)
    sine, cosine = np.sin(0.5), np.cos(0.5)
    print("derivatives of sin at 0.5:", np.round(found, 4).tolist())
    np.testing.assert_allclose(found, [sine, cosine, -sine, -cosine, sine], rtol=1e-5)


def hessian_vector_product() -> None:
    """H v without H, as the gradient of (gradient . v): Pearlmutter 1994, Neural Computation 6(1).

    f(x, y) = x^2 y has the Hessian [[2y, 2x], [2x, 0]].
    """
    x = tf.Variable([2.0, 5.0])
    v = tf.constant([1.0, -1.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            f = x[0] ** 2 * x[1]
        gradient = inner.gradient(f, x)
        along_v = tf.reduce_sum(gradient * v)
    product = outer.gradient(along_v, x)
    print("Hessian times vector:", product.numpy().tolist())
    np.testing.assert_allclose(product, [2 * 5 - 2 * 2, 2 * 2])


def gradient_penalty() -> None:
    """A loss that contains the length of a gradient: Gulrajani et al. 2017, arXiv:1704.00028.

    For f(x) = w . x the gradient in x is w, so the penalty (|w| - 1)^2 has the derivative
    2 (|w| - 1) w / |w| in w.
    """
    w = tf.Variable([3.0, 4.0])
    x = tf.constant([0.5, -1.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            f = tf.reduce_sum(w * x)
        length = tf.norm(inner.gradient(f, x))
        penalty = (length - 1.0) ** 2
    by_w = outer.gradient(penalty, w)
    print("gradient of the penalty:", by_w.numpy().tolist())
    np.testing.assert_allclose(by_w, [2 * 4 * 3 / 5, 2 * 4 * 4 / 5], rtol=1e-6)


if __name__ == "__main__":
    second_derivative()
    fourth_order()
    hessian_vector_product()
    gradient_penalty()
