"""Five classic bugs that make a gradient None, and what `tape.explain` says about each."""

from __future__ import annotations

from typing import Any

import numpy as np

import gtape as tf


def explain(tape: tf.GradientTape, target: Any, source: Any) -> None:
    """Print why the gradient is None, and check that it is."""
    tape.explain(target, source)
    assert tape.gradient(target, source) is None


def variable_replaced_by_a_tensor() -> None:
    """`x = x + 1` makes x a tensor, which no tape watches. Write x.assign_add(1.0)."""
    x = tf.Variable(2.0, name="x")
    x = x + 1.0
    with tf.GradientTape() as tape:
        y = x**2
    explain(tape, y, x)


def left_to_numpy() -> None:
    """np.mean computes outside gtape, so its result is a constant. Write tf.reduce_mean."""
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="x")
    with tf.GradientTape() as tape:
        squares = x**2
        y = tf.reduce_mean(np.mean(squares, axis=0))
    explain(tape, y, x)


def whole_numbers() -> None:
    """Integers have no derivative. Write tf.Variable(10.0), or give a dtype."""
    x = tf.Variable(10, name="x")
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) ** 2
    explain(tape, y, x)


def through_the_state_of_a_variable() -> None:
    """A variable knows its value, not where it came from. Compute with total + x itself."""
    x = tf.Variable(3.0, name="x")
    total = tf.Variable(0.0, name="total")
    with tf.GradientTape() as tape:
        total.assign_add(x)
        y = total**2
    explain(tape, y, x)


def computed_before_the_tape() -> None:
    """A tape knows nothing of what happened before it. Move the line into its block."""
    x = tf.Variable(3.0, name="x")
    doubled = 2.0 * x
    with tf.GradientTape() as tape:
        y = doubled**2
    explain(tape, y, x)


BUGS = (variable_replaced_by_a_tensor, left_to_numpy, whole_numbers,
        through_the_state_of_a_variable, computed_before_the_tape)

if __name__ == "__main__":
    for number, bug in enumerate(BUGS, start=1):
        title = bug.__name__.replace("_", " ")
        print(f"\n{number}. {title}")
        bug()
