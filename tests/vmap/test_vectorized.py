"""vectorized_map: at once, what a loop gives; one by one, what cannot be had at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.vmap import batch_trace

_RNG = np.random.default_rng(0)
W = tf.Variable(_RNG.standard_normal((4, 3)))
B = tf.Variable(_RNG.standard_normal(3))
FILTERS = tf.Variable(_RNG.standard_normal((2, 2, 1, 2)))
X = tf.constant(_RNG.standard_normal((5, 4)))


@tf.custom_gradient
def _cubed(v: Any) -> Any:
    return v ** 3, lambda g: g * 3.0 * v * v * W[0, 0]


@tf.function
def _dense(v: Any) -> Any:
    return tf.tanh(v[None] @ W)[0] + B


def _gradients(r: Any) -> Any:
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(r[None] @ W + B) ** 2)
    return tape.gradient(y, [W, B])


def _of_filters(r: Any) -> Any:
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.conv2d(tf.reshape(r, (1, 2, 2, 1)), FILTERS, 1, "SAME") ** 2)
    return tape.gradient(y, FILTERS)


def _hessian(r: Any) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(r)
        with tf.GradientTape() as inner:
            inner.watch(r)
            y = tf.reduce_sum(tf.tanh(r[None] @ W) ** 2)
        g = inner.gradient(y, r)
    return outer.jacobian(g, r)


#: Functions of a row [4] that go at once.
_AT_ONCE: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda r: r * tf.reduce_sum(r) - W[:, 0],
    "product": lambda r: tf.linalg.matvec(W, r, transpose_a=True),
    "outer": lambda r: r[:, None] * r[None],
    "structure": lambda r: {"a": r, "b": (tf.reduce_sum(r), W * 1.0)},
    "nothing_of_it": lambda r: tf.reduce_sum(W),
    "function": _dense,
    "custom": _cubed,
    "gradients": _gradients,
    "gradients_of_filters": _of_filters,
    "hessian": _hessian,
    "nested": lambda r: tf.vectorized_map(lambda s: s * tf.reduce_sum(r) + W[0, 0], r),
    "choice": lambda r: tf.where(r > 0, r, W[:, 1]),
    "picked": lambda r: tf.gather(r, tf.cast(tf.abs(r), tf.int32) % 4),
    "looked_up": lambda r: tf.gather(W, tf.argmax(r)),
    "indexed": lambda r: X[tf.argmax(r)],
    "convolution": lambda r: tf.nn.conv2d(tf.reshape(r, (1, 2, 2, 1)), FILTERS, 1, "SAME"),
    "masked": lambda r: tf.boolean_mask(r, [True, False, True, True]),
    "statistics": lambda r: tf.reduce_logsumexp(r) - tf.math.reduce_std(r) * tf.norm(r),
}
#: Functions that run for one row after another.
_ONE_BY_ONE: dict[str, Callable[[Any], Any]] = {
    "if": lambda r: r * W[0, 0] if r[0] > 0 else r,
    "numpy": lambda r: tf.constant(np.sin(r.numpy())),
    "number": lambda r: r * float(r[0]),
    "random": lambda r: r + 0.0 * tf.random.normal((4,), dtype=tf.float64),
}
_STEPS: dict[str, Callable[[Any], Any]] = {
    "cond": lambda r: tf.cond(r[0] > 0, lambda: r * W[0, 0], lambda: r - 1.0),
    "while": lambda r: tf.while_loop(lambda v: tf.reduce_sum(v * v) < 10.0,
                                     lambda v: (v * 1.5,), (r,))[0],
}


def _looped(fn: Callable[[Any], Any], elems: Any) -> Any:
    made = [fn(elems[i]) for i in range(len(elems))]
    columns = zip(*[tf.nest.flatten(m) for m in made])
    return tf.nest.pack_sequence_as(made[0], [tf.stack(c) for c in columns])


def _same(got: Any, wanted: Any) -> None:
    tf.nest.assert_same_structure(got, wanted)
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(wanted)):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", sorted(_AT_ONCE | _ONE_BY_ONE | _STEPS))
def test_the_map_is_a_loop(name: str) -> None:
    fn = (_AT_ONCE | _ONE_BY_ONE | _STEPS)[name]
    _same(tf.vectorized_map(fn, X), _looped(fn, X))


@pytest.mark.parametrize("name", sorted(_AT_ONCE | _STEPS))
def test_functions_that_need_no_numbers_run_once(name: str) -> None:
    fn, calls = (_AT_ONCE | _STEPS)[name], []

    def counted(r: Any) -> Any:
        calls.append(r.shape)
        return fn(r)

    tf.vectorized_map(counted, X, fallback_to_while_loop=False)
    assert calls == [(4,)]


@pytest.mark.parametrize("name", sorted(_ONE_BY_ONE))
def test_the_others_may_be_refused(name: str) -> None:
    with pytest.raises(batch_trace.NEEDS_ELEMENTS):
        tf.vectorized_map(_ONE_BY_ONE[name], X, fallback_to_while_loop=False)


@pytest.mark.parametrize("name", sorted(_AT_ONCE | _STEPS))
def test_gradients_flow_to_elements_and_to_what_they_share(name: str) -> None:
    fn = (_AT_ONCE | _STEPS)[name]

    def gradients(apply: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(X)
            made = apply(fn, X)
            total = tf.add_n([tf.reduce_sum(y * y) for y in tf.nest.flatten(made)])
        found = tape.gradient(total, [X, W, B, FILTERS])
        return [g if g is None else tf.convert_to_tensor(g) for g in found]

    _same(gradients(tf.vectorized_map), gradients(_looped))


@pytest.mark.parametrize("name", sorted(_AT_ONCE | _STEPS))
def test_in_a_function(name: str) -> None:
    fn = (_AT_ONCE | _STEPS)[name]
    _same(tf.function(lambda x: tf.vectorized_map(fn, x))(X), _looped(fn, X))


def test_random_numbers_differ_between_elements() -> None:
    found = tf.vectorized_map(lambda r: tf.random.normal((3,)), X).numpy()
    assert len(np.unique(found)) == 15


def test_variables_are_assigned_once_for_each_element() -> None:
    count = tf.Variable(0)
    tf.vectorized_map(lambda r: (count.assign_add(1), r)[1], X)
    assert int(count) == 5


def test_an_error_of_the_function_is_its_own() -> None:
    def wrong(r: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tf.vectorized_map(wrong, X)


def test_one_element_for_all() -> None:
    one = X[:1]
    _same(tf.vectorized_map(lambda p: p[0] * p[1], (X, one)), X * one)
    _same(tf.vectorized_map(lambda r: r * 2.0, one), one * 2.0)


def test_no_elements() -> None:
    assert tf.vectorized_map(lambda r: r[:2] * 2.0, X[:0]).shape == (0, 2)
