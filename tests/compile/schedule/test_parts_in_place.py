"""Arrays that are put together of parts: the parts are made in their places, nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from tests.compile.native_calls import assert_native

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(6, 5)).astype(np.float32)
_W = _RNG.normal(size=(5, 5)).astype(np.float32)

#: How the program copies a part that was made elsewhere.
_COPY = "float* const y = "


def _beside(x: Any, w: Any) -> Any:
    return tf.sin(tf.concat([tf.exp(x), tf.tanh(x) * 2], 1) @ tf.concat([w, w + 1], 0))


def _above(x: Any, w: Any) -> Any:
    return tf.concat([x @ w, tf.exp(x), tf.reduce_sum(x, 0, keepdims=True)], 0) @ w


def _nested(x: Any, w: Any) -> Any:
    rows = [tf.concat([tf.exp(x + i), x * i], 1) for i in range(3)]
    total = tf.matmul(rows[2], rows[0], transpose_a=True)
    return tf.reshape(tf.stack(rows), (18, 10)) @ total


def _read_before(x: Any, w: Any) -> Any:
    h, states = tf.exp(x), []
    for _ in range(4):
        states.append(h)
        h = tf.tanh(h @ w)
    return tf.matmul(tf.reshape(tf.stack(states), (-1, 5)), w) + h[:1]


@pytest.mark.parametrize("program", [_beside, _above, _nested, _read_before],
                         ids=lambda f: f.__name__.strip("_"))
def test_nothing_is_copied(program: Callable[..., Any]) -> None:
    assert_native(program, _X, _W, tolerance=2e-5)
    assert _COPY not in str(tf.function(program).inspect(_X, _W))


def _twice(x: Any, w: Any) -> Any:
    y = tf.exp(x)
    return tf.concat([y, y], 1) @ tf.concat([w, w], 0)


def _in_two(x: Any, w: Any) -> Any:
    y = tf.exp(x)
    return tf.concat([y, x], 1) @ tf.concat([w, w], 0), tf.stack([x, y]) @ w


def _given(x: Any, w: Any) -> Any:
    return tf.concat([x, x], 0) @ w


def _turned(x: Any, w: Any) -> Any:
    y = tf.exp(x)
    both = tf.concat([y, x + 1], 1)
    return tf.transpose(y) @ both, tf.reduce_sum(y[:, 1:3] * both[:, 4:6])


def _result_too(x: Any, w: Any) -> Any:
    y = tf.exp(x)
    return y, tf.concat([y, y + 1], 1) @ tf.concat([w, w], 0)


def _given_away(x: Any, w: Any) -> Any:
    return tf.concat([tf.exp(x), tf.sin(x)], 1)


@pytest.mark.parametrize("program", [_twice, _in_two, _given, _turned, _result_too, _given_away],
                         ids=lambda f: f.__name__.strip("_"))
def test_parts_that_others_read_or_that_stand_twice(program: Callable[..., Any]) -> None:
    assert_native(program, _X, _W, tolerance=2e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "bool"])
def test_dtypes(dtype: str) -> None:
    x = tf.cast(_X > 0 if dtype == "bool" else _X * 3, dtype)

    def program(x: Any) -> Any:
        both = tf.concat([tf.where(x == x[0], x, x[:1]), x[::-1]], 1)
        return tf.reverse(tf.stack([both, tf.roll(both, 1, 0)], 1), [1])

    assert_native(program, x)


def test_a_variable_that_becomes_a_part() -> None:
    state = tf.Variable(_X)

    @tf.function
    def step(x: Any) -> Any:
        new = tf.exp(x) + state
        state.assign(new)
        return tf.concat([new, x], 1) @ tf.ones((10, 2))

    made = step(tf.constant(_X))
    np.testing.assert_allclose(state, np.exp(_X) + _X, rtol=1e-6)
    np.testing.assert_allclose(made[:, 0], (np.exp(_X) + 2 * _X).sum(1), rtol=1e-4, atol=1e-5)
