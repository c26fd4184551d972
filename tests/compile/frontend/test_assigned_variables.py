"""A Variable that a traced function assigns and reads again: gradients by it are those of eager
code, whose value after an assignment is the Variable's as much as the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf

pytestmark = pytest.mark.native(required=False)

X = tf.constant([3.0, 4.0])


class Programs:
    """Functions of x that assign to `w`."""

    def __init__(self) -> None:
        self.w = tf.Variable([1.0, 2.0])
        self._optimizer = tf.keras.optimizers.SGD(0.5)
        self._optimizer.build([self.w])

    def before_and_after(self, x: Any) -> Any:
        y = tf.reduce_sum(self.w * x)
        self.w.assign_add([1.0, 1.0])
        return y + tf.reduce_sum(self.w * x * x)

    def after(self, x: Any) -> Any:
        self.w.assign_sub([1.0, 1.0])
        return tf.reduce_sum(self.w * self.w * x)

    def given(self, x: Any) -> Any:
        self.w.assign([5.0, 1.0])
        return tf.reduce_sum(self.w * x * x)

    def twice(self, x: Any) -> Any:
        self.w.assign(self.w * 2.0)
        y = tf.reduce_sum(self.w * x)
        self.w.assign(self.w * x)
        return y * tf.reduce_sum(self.w)

    def in_a_branch(self, x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: self.after(x), lambda: tf.reduce_sum(x))

    def in_a_loop(self, x: Any) -> Any:
        i, total = tf.constant(0), tf.constant(0.0)
        while i < 3:
            self.w.assign_add(x)
            total = total + tf.reduce_sum(self.w * self.w)
            i += 1
        return total + tf.reduce_sum(self.w)

    def behind_an_update(self, x: Any) -> Any:
        self._optimizer.apply_gradients([(x, self.w)])
        return tf.reduce_sum(self.w * self.w * x)


NAMES = [name for name in vars(Programs) if not name.startswith("_")]


def _outside(fn: Callable[..., Any], w: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(X)
        loss = fn(X)
    return tape.gradient(loss, [w, X])


def _second(fn: Callable[..., Any], w: Any) -> Any:
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = fn(X)
        found = tape.gradient(loss, w)
    return outer.gradient(found, w)


def _forward(fn: Callable[..., Any], w: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(w, tf.constant([1.0, -2.0])) as accumulator:
        loss = fn(X)
    return accumulator.jvp(loss)


def _same(name: str, ways: Callable[..., Any], wraps: list[Callable[..., Any]]) -> None:
    def result(wrap: Callable[..., Any]) -> Any:
        programs = Programs()
        found = wrap(ways, getattr(programs, name), programs.w)
        return [None if f is None else np.asarray(f) for f in tf.nest.flatten([found])], (
            programs.w.numpy())

    want, value = result(lambda way, fn, w: way(fn, w))
    assert want[0] is not None
    for wrap in wraps:
        got, left = result(wrap)
        np.testing.assert_allclose(left, value, rtol=1e-6)
        for g, e in zip(got, want, strict=True):
            assert (g is None) == (e is None)
            if e is not None:
                np.testing.assert_allclose(g, e, rtol=1e-5)


_WRAPS: list[Callable[..., Any]] = [
    lambda way, fn, w: way(tf.function(fn), w),
    lambda way, fn, w: tf.function(lambda: way(fn, w))(),
    lambda way, fn, w: tf.function(lambda: way(tf.function(fn), w))(),
]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_eager_code(name: str) -> None:
    _same(name, _outside, _WRAPS)


@pytest.mark.parametrize("name", ["after", "twice", "in_a_branch", "in_a_loop"])
def test_second_gradients_are_those_of_eager_code(name: str) -> None:
    _same(name, _second, _WRAPS[:1])


@pytest.mark.parametrize("name", NAMES)
def test_tangents_are_those_of_eager_code(name: str) -> None:
    _same(name, _forward, _WRAPS[:1])


def test_no_gradient_flows_through_an_assignment() -> None:
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x: Any) -> Any:
        v.assign(x * 3.0)
        return tf.reduce_sum(v * 2.0)

    with tf.GradientTape() as tape:
        tape.watch(X)
        loss = f(X)
    by_x, by_v = tape.gradient(loss, [X, v])
    assert by_x is None
    np.testing.assert_array_equal(by_v, [2.0, 2.0])
