"""A forked process runs traced functions, whatever other threads did when it was made."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

import gtape as tf
from tests.forking import beside, child

pytestmark = [
    pytest.mark.native(required=False),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


def test_while_another_thread_runs_a_function() -> None:
    # No product: NumPy's BLAS does not survive a fork beside one.
    v, one = tf.Variable(tf.ones((300, 300))), tf.Variable(1.0)
    x = tf.ones((300, 300))

    @tf.function
    def large(x: Any) -> Any:
        v.assign(tf.sin(v) + x)
        return tf.reduce_sum(tf.tanh(v))

    small = tf.function(lambda x: one * x)
    large(x)
    small(tf.constant(1.0))

    def work() -> bool:
        one.assign_add(1.0)
        large(x)
        return float(small(tf.constant(2.0))) == 4.0 and bool(tf.reduce_all(tf.math.is_finite(v)))

    with beside(lambda: large(x)):
        assert all(child(work, 60) for _ in range(8))


def test_while_another_thread_traces() -> None:
    tracing, forked = threading.Event(), threading.Event()

    @tf.function
    def f(x: Any) -> Any:
        if x.shape.rank == 1:
            tracing.set()
            forked.wait(60)
        return x * 2.0

    thread = threading.Thread(target=lambda: f(tf.ones(3)))
    thread.start()
    tracing.wait()
    try:
        assert child(lambda: float(f(tf.constant(2.0))) == 4.0, 60)
    finally:
        forked.set()
        thread.join()
    assert float(f(tf.constant(3.0))) == 6.0


def test_a_step_that_forks() -> None:
    children: list[int] = []

    @tf.function
    def f(x: Any) -> Any:
        y = tf.py_function(lambda v: children.append(os.fork()) or v * 2.0, [x],
                           tf.TensorSpec([], tf.float32))
        return y + 1.0

    found = 0.0
    try:
        found = float(f(tf.constant(2.0)))
    finally:
        if children[-1] == 0:
            os._exit(0 if found == 5.0 else 1)
    assert found == 5.0
    assert os.waitstatus_to_exitcode(os.waitpid(children[-1], 0)[1]) == 0
