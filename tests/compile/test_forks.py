"""A forked process runs traced functions, whatever other threads did when it was made."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import gtape as tf

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


def _child(work: Callable[[], bool]) -> bool:
    """Whether `work` gives True in a forked process, within a minute."""
    child = os.fork()
    if child == 0:
        threading.Timer(60, os._exit, (2,)).start()
        good = False
        try:
            good = work()
        finally:
            os._exit(0 if good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextmanager
def _beside(work: Callable[[], Any]) -> Iterator[None]:
    """Another thread that does `work` again and again."""
    stop, begun = threading.Event(), threading.Event()

    def again() -> None:
        while not stop.is_set():
            work()
            begun.set()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        begun.wait()
        yield
    finally:
        stop.set()
        thread.join()


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

    with _beside(lambda: large(x)):
        assert all(_child(work) for _ in range(8))


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
        assert _child(lambda: float(f(tf.constant(2.0))) == 4.0)
    finally:
        forked.set()
        thread.join()
    assert float(f(tf.constant(3.0))) == 6.0
