"""`tape.explain` where an unwatched value meets watched ones, and where a metric took it in."""

from __future__ import annotations

import pytest

import gtape as tf


def _check(found: tf.Explanation, cause: str, advice: str, line: str = "") -> None:
    assert found.cause == cause, found.text
    assert advice in found.text, found.text
    assert line in (found.site.text if found.site else ""), found.text


def test_an_unwatched_tensor_beside_a_variable() -> None:
    x, w = tf.constant([[3.0]]), tf.Variable([[2.0]])
    with tf.GradientTape() as tape:
        y = x @ w
    _check(tape.explain(y, x, show=False), "NOT_WATCHED", "tape.watch(x)")


def test_an_unwatched_tensor_one_step_before_a_variable() -> None:
    x, w = tf.constant([[3.0]]), tf.Variable([[2.0]])
    with tf.GradientTape() as tape:
        y = (x + 1.0) @ w
    _check(tape.explain(y, x, show=False), "NOT_WATCHED", "tape.watch(x)", "(x + 1.0) @ w")


def test_a_frozen_variable_beside_a_trainable_one() -> None:
    frozen, w = tf.Variable(3.0, trainable=False), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = frozen * w
    _check(tape.explain(y, frozen, show=False), "NOT_TRAINABLE", "tape.watch(variable)",
           "frozen * w")


def test_the_averages_of_a_layer() -> None:
    norm = tf.keras.layers.BatchNormalization(name="norm")
    norm.build((None, 2))
    with tf.GradientTape() as tape:
        y = norm(tf.ones((1, 2)))
    _check(tape.explain(y, norm.moving_mean, show=False), "NOT_TRAINABLE",
           "'norm/moving_mean:0' has trainable=False", "norm(tf.ones")


def test_a_tensor_that_was_used_beside_a_variable_before_its_watch() -> None:
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * w
        tape.watch(x)
    _check(tape.explain(y, x, show=False), "NOT_USED", "was it used before tape.watch")


def test_the_derivative_of_something_linear() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = v * 3.0
        slope = inner.gradient(y, v)
    _check(outer.explain(slope, v, show=False), "NOT_USED", "derivative of something linear")


def test_the_state_of_a_metric() -> None:
    v, mean = tf.Variable([1.0, 2.0]), tf.keras.metrics.Mean()
    with tf.GradientTape() as tape:
        mean.update_state(v ** 2)
        y = mean.result()
    _check(tape.explain(y, v, show=False), "STATE_ASSIGN", "the Variable 'mean/total:0'",
           "mean.update_state(v ** 2)")


def test_a_drawn_class() -> None:
    v = tf.Variable([[0.1, 0.9]])
    with tf.GradientTape() as tape:
        y = tf.cast(tf.random.categorical(v * 2.0, 3), tf.float32)
    _check(tape.explain(y, v, show=False), "NON_DIFFERENTIABLE_OP", "categorical")


def test_one_source_at_a_time() -> None:
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * v
    with pytest.raises(TypeError, match=r"one source.*got a list of 2.*Ask for each"):
        tape.explain(y, [v, v])
