"""What traced choices and loops refuse, and how they say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_NOT_ALLOWED = tf.errors.OperatorNotAllowedInGraphError


def unset(x: Any) -> Any:
    if x > 0:
        y = x
    return y


def unset_in_loop(x: Any) -> Any:
    while x < 10.0:
        y = x
        x = x + 1.0
    return y


def mixed(x: Any) -> Any:
    if x > 0:
        return x
    return 1


def none(x: Any) -> Any:
    if x > 0:
        r = x
    else:
        r = None
    return r


def no_return(x: Any) -> Any:  # noqa: RET503
    if x > 0:
        return x


def other_shape(x: Any) -> Any:
    return tf.zeros([2]) if x > 0 else tf.zeros([3])


def other_structure(x: Any) -> Any:
    return (x, x) if x > 0 else [x, x]


def an_object(x: Any) -> Any:
    word = "a"
    if x > 0:
        word = "b"
    return x, len(word)


def growing(x: Any) -> Any:
    y = tf.zeros([1])
    while x < 10.0:
        y = tf.concat([y, [x]], 0)
        x = x + 1.0
    return y


def other_dtype(x: Any) -> Any:
    k = 0
    while x < 10.0:
        k = k * 0.5 if False else x
        x = x + 1.0
    return k


def caught(x: Any) -> Any:
    y = 1.0
    try:
        if x > 5.0:
            raise KeyError("big")
    except KeyError:
        y = 2.0
    return y


def scalar_rows(x: Any) -> Any:
    for _ in x:
        pass
    return x


def builtin_max(x: Any) -> Any:
    return max(x, 2.0)


def asserted(x: Any) -> Any:
    assert x > 0
    return x


def comprehension(x: Any) -> Any:
    return [i + 1 for i in range(tf.cast(x, tf.int32))]


def numpy_method(x: Any) -> Any:
    return x.numpy()


def numpy_mean(x: Any) -> Any:
    return np.mean(x)


def several(x: Any) -> Any:
    return 1.0 if tf.stack([x, x]) > 0 else 2.0


@pytest.mark.parametrize(("fn", "kind", "text"), [
    (unset, ValueError, "'y' must be set in both branches"),
    (unset_in_loop, ValueError, "'y' must be set before the loop"),
    (mixed, TypeError, r"one dtype; got float32\[\] .* int32\[\]"),
    (none, ValueError, "'r' must be a tensor, or None"),
    (no_return, ValueError, "the result must be a tensor, or None"),
    (other_shape, ValueError, r"one shape; got float32\[2\] .* float32\[3\]"),
    (other_structure, TypeError, "one structure"),
    (an_object, TypeError, "'word' must be a tensor both times"),
    (growing, ValueError, r"'y' must have one shape; got float32\[1\] before"),
    (other_dtype, TypeError, r"'k' must have one dtype; got int32\[\] before"),
    (caught, RuntimeError, "KeyError was raised while tracing a branch"),
    (scalar_rows, TypeError, "a scalar tensor cannot be iterated over"),
    (builtin_max, _NOT_ALLOWED, "bool"),
    (asserted, _NOT_ALLOWED, "bool"),
    (comprehension, _NOT_ALLOWED, "index"),
    (numpy_method, AttributeError, "numpy"),
    (numpy_mean, NotImplementedError, "NumPy"),
    (several, ValueError, "a condition must be one value"),
], ids=lambda p: getattr(p, "__name__", ""))
def test_refused(fn: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        tf.function(fn)(tf.constant(1.0))


@pytest.mark.parametrize("fn", [unset, mixed, growing])
def test_the_line_is_named(fn: Any) -> None:
    first = fn.__code__.co_firstlineno
    at = first + 2 if fn is growing else first + 1
    with pytest.raises((ValueError, TypeError), match=f"test_refused.py:{at}: "):
        tf.function(fn)(tf.constant(1.0))


def test_an_error_in_a_branch_says_that_all_branches_are_traced() -> None:
    @tf.function
    def f(x: Any) -> Any:
        if x > 0:
            raise KeyError("negative")
        return x

    with pytest.raises(KeyError, match="negative") as found:
        f(tf.constant(1.0))
    assert any("every branch is traced" in note for note in found.value.__notes__)


def test_a_failed_trace_leaves_the_function_usable() -> None:
    calls: list[int] = []

    @tf.function
    def f(x: Any) -> Any:
        calls.append(1)
        if x > 0:
            y = x
        elif len(calls) > 1:
            y = -x
        return y

    with pytest.raises(ValueError, match="'y'"):
        f(tf.constant(1.0))
    assert f(tf.constant(-2.0)) == 2.0


def test_without_autograph_nothing_is_converted() -> None:
    @tf.function(autograph=False)
    def f(x: Any) -> Any:
        if x > 0:
            return x
        return -x

    with pytest.raises(_NOT_ALLOWED):
        f(tf.constant(1.0))
