"""Python's own if, for and while: the tape records what really ran."""

from __future__ import annotations

import gtape as tf


def product_of_some(x: tf.Tensor, steps: int) -> tf.Tensor:
    """x to the number of i in range(steps) with 1 < i < 5."""
    product = tf.constant(1.0)
    for i in range(steps):
        if 1 < i < 5:
            product = product * x
    return product


def slope(x: tf.Tensor, steps: int) -> float:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = product_of_some(x, steps)
    return float(tape.gradient(y, x))


def loops() -> None:
    """Six or five steps multiply three times, four steps twice."""
    x = tf.constant(2.0)
    slopes = [slope(x, steps) for steps in (6, 5, 4)]
    print("d(x^3), d(x^3), d(x^2) at 2:", slopes)
    assert slopes == [12.0, 12.0, 4.0]


def branches() -> None:
    """Only the branch that was taken is connected; the condition itself has no gradient."""
    x = tf.constant(1.0)
    taken, other = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = 3.0 * taken if x > 0.0 else other**2
    assert tape.gradient(result, taken).numpy() == 3.0
    assert tape.gradient(result, other) is None
    assert tape.gradient(result, x) is None


def newton_square_root(x: tf.Tensor) -> tf.Tensor:
    """The root of x by Newton's method, stopped by a condition on the values."""
    guess = x
    while abs(guess * guess - x) > 1e-5:
        guess = (guess + x / guess) / 2
    return guess


def through_a_while_loop() -> None:
    """The gradient of the iteration is that of the square root: 1 / (2 sqrt(x))."""
    x = tf.constant(9.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        root = newton_square_root(x)
    by_x = tape.gradient(root, x)
    print("sqrt(9) and its slope by iteration:", float(root), float(by_x))
    assert abs(float(root) - 3) < 1e-5
    assert abs(float(by_x) - 1 / 6) < 1e-5


if __name__ == "__main__":
    loops()
    branches()
    through_a_while_loop()
