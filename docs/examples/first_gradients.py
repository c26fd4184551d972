"""First gradients: scalars, vectors, several sources, intermediate values, persistent tapes."""

from __future__ import annotations

import numpy as np

import gtape as tf


def slope_of_a_parabola() -> None:
    """d(x^2)/dx = 2x. A variable is watched as soon as it is read."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
    slope = tape.gradient(y, x)
    print("d(x^2)/dx at 3:", slope.numpy())
    assert slope.numpy() == 6.0


def through_a_sum() -> None:
    """z = (sum of x)^2, so every element of x has the derivative 2 * sum = 8."""
    x = tf.ones((2, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(x)
        z = tf.multiply(total, total)
    gradient = tape.gradient(z, x)
    print("d(sum^2)/dx of four ones:", gradient.numpy().tolist())
    np.testing.assert_array_equal(gradient, np.full((2, 2), 8.0))


def with_respect_to_an_intermediate() -> None:
    """A source may be anything on the way: z = y^2 with y = 4."""
    x = tf.ones((2, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x)
        z = y * y
    assert tape.gradient(z, y).numpy() == 8.0


def several_sources() -> None:
    """z = x^2 + y^3. The answer has the structure of the question: a list, a dict, a nest."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = x**2 + y**3
    by_x, by_y = tape.gradient(z, [x, y])
    named = tape.gradient(z, {"x": x, "y": y})
    print("d(x^2 + y^3) at (2, 3):", by_x.numpy(), by_y.numpy())
    assert by_x.numpy() == named["x"].numpy() == 4.0
    assert by_y.numpy() == named["y"].numpy() == 27.0


def several_targets() -> None:
    """Gradients of several targets add up: d(x^2)/dx + d(1/x)/dx = 4 - 1/4 at x = 2."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        square, inverse = x**2, 1 / x
    assert tape.gradient([square, inverse], x).numpy() == 3.75


def a_dense_layer() -> None:
    """The gradient of a loss has the shape of the weights it is taken for."""
    weight = tf.Variable(tf.ones((3, 2)), name="weight")
    bias = tf.Variable(tf.zeros(2), name="bias")
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        y = x @ weight + bias
        loss = tf.reduce_mean(y**2)
    by_weight, by_bias = tape.gradient(loss, [weight, bias])
    print("shapes:", tuple(by_weight.shape), tuple(by_bias.shape))
    np.testing.assert_array_equal(by_weight, [[6.0, 6.0], [12.0, 12.0], [18.0, 18.0]])
    np.testing.assert_array_equal(by_bias, [6.0, 6.0])


def asking_twice() -> None:
    """A tape answers once and lets go of what it kept; a persistent one keeps answering."""
    x = tf.constant(3.0)
    with tf.GradientTape() as once:
        once.watch(x)
        y = x * x
    assert once.gradient(y, x).numpy() == 6.0
    try:
        once.gradient(y, x)
    except RuntimeError as error:
        print("a second question:", error)
    else:
        raise AssertionError("a spent tape must refuse")

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0


if __name__ == "__main__":
    slope_of_a_parabola()
    through_a_sum()
    with_respect_to_an_intermediate()
    several_sources()
    several_targets()
    a_dense_layer()
    asking_twice()
