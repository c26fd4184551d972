"""Memory of large results is used again only when nobody can see it."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.entry import Result
from tests.threads import together

pytestmark = pytest.mark.native(required=False)

MANY = 1 << 18


def _result(count: int = MANY) -> Result:
    return Result((count,), np.dtype(np.float32))


def _address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_what_nobody_holds_is_given_again() -> None:
    result = _result()
    array = result.make()
    first = _address(array)
    del array
    assert _address(result.make()) == first


def test_two_arrays_take_turns() -> None:
    result = _result()
    y = result.make()
    seen = {_address(y)}
    for _ in range(10):
        y = result.make()
        seen.add(_address(y))
    assert len(seen) == 2


def test_whatever_sees_an_array_keeps_it() -> None:
    views: list[Any] = [
        lambda a: a, lambda a: a[3:5], lambda a: a.reshape(2, -1).T, memoryview,
        lambda a: a.__dlpack__(), lambda a: np.from_dlpack(a), lambda a: tf.constant(a)._a,
        lambda a: [a], lambda a: (lambda: a)]
    for view in views:
        result = _result()
        array = result.make()
        held = view(array)
        del array
        taken = result.make()
        taken[...] = 1.0
        if isinstance(held, np.ndarray):
            assert not np.shares_memory(held, taken)
        again = result.make()
        assert again is not taken
        del held


def test_small_results_are_not_kept() -> None:
    result = _result(16)
    array = result.make()
    assert not result._kept
    assert not result.large
    del array


def test_only_two_are_kept() -> None:
    result = _result()
    held = [result.make() for _ in range(5)]
    assert len({_address(a) for a in held}) == 5
    assert len(result._kept) == 2


def test_threads_never_get_the_same_array() -> None:
    result = _result()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(2000):
            array = result.make()
            array[0] = number
            array[-1] = number
            if array[0] != number or array[-1] != number:
                wrong.append(number)

    together(*[partial(work, i) for i in range(4)])
    assert not wrong


def test_results_of_calls_stay_what_they_are() -> None:
    f = tf.function(lambda x: x * 2.0)
    kept = [f(tf.fill((MANY,), float(i))) for i in range(6)]
    views = [k._a[:3] for k in kept]
    del kept
    gc.collect()
    for i in range(6, 12):
        f(tf.fill((MANY,), float(i)))
    for i, view in enumerate(views):
        np.testing.assert_array_equal(view, 2.0 * i)


def test_a_variable_keeps_the_result_it_was_given() -> None:
    f = tf.function(lambda x: x + 1.0)
    v = tf.Variable(tf.zeros((MANY,)))
    v.assign(f(tf.zeros((MANY,))))
    for i in range(4):
        f(tf.fill((MANY,), float(i)))
    np.testing.assert_array_equal(v.numpy()[:5], 1.0)


def test_a_tape_keeps_the_results_it_needs() -> None:
    f = tf.function(lambda x: x * x)
    x = tf.fill((MANY,), 3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(f(x))
    for i in range(4):
        f(tf.fill((MANY,), float(i)))
    np.testing.assert_array_equal(tape.gradient(y, x).numpy()[:5], 4 * 27.0)
