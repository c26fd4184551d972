"""Libraries go with the last program that uses them, and not before."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import gtape as tf

pytestmark = [pytest.mark.native, pytest.mark.skipif(
    sys.platform != "linux", reason="the mappings of a process are read as Linux tells them")]


def _mapped() -> Counter[str]:
    """How often each library is mapped that was compiled here."""
    with open("/proc/self/maps") as file:
        return Counter(line.split()[-1] for line in file if re.search("/cpu/|/program.so", line))


def _function(number: int) -> Any:
    return tf.function(lambda x: tf.cumsum(x * float(number)) + tf.nn.relu(x) @ tf.transpose(x))


X = tf.constant(np.random.default_rng(0).normal(size=(5, 5)).astype("f"))


def test_libraries_of_collected_functions_are_unmapped() -> None:
    _function(1)(X)
    gc.collect()
    before = _mapped()
    made = []
    for number in range(1000, 1006):
        function = _function(number)
        made.append(function(X))
        assert sum(_mapped().values()) > sum(before.values())
        del function
        gc.collect()
        assert not _mapped() - before
    wanted = [_function(n).python_function(X).numpy() for n in range(1000, 1006)]
    for a, b in zip(made, wanted):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5)


def test_programs_under_tapes_go_too() -> None:
    def gradient(number: int) -> Any:
        function = tf.function(lambda x: tf.sin(x * float(number)) @ x)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = function(X)
        return tape.gradient(y, X)

    gradient(1)
    gc.collect()
    before = _mapped()
    for number in range(2000, 2003):
        gradient(number)
        gc.collect()
    assert not _mapped() - before


def test_equal_programs_share_a_library_until_the_last_one_goes() -> None:
    before = _mapped()
    first, second = _function(3000), _function(3000)
    want = first(X).numpy()
    one = _mapped()
    np.testing.assert_array_equal(second(X).numpy(), want)
    assert _mapped() == one
    del first
    gc.collect()
    assert _mapped() == one
    np.testing.assert_array_equal(second(X).numpy(), want)
    del second
    gc.collect()
    assert not _mapped() - before


def test_a_library_stays_while_a_thread_runs_in_it() -> None:
    """The function is collected while its program runs with other threads of Python."""
    x = tf.constant(np.random.default_rng(0).normal(size=(700, 700)))

    @tf.function
    def f(x):
        for _ in range(4):
            x = tf.sin(x @ x)
        return x

    want, made = f(x).numpy(), []
    functions = [f]
    begun = threading.Event()

    def work() -> None:
        function = functions[0]
        begun.set()
        made.append(function(x).numpy())

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    del f
    functions.clear()
    gc.collect()
    thread.join()
    np.testing.assert_array_equal(made[0], want)
