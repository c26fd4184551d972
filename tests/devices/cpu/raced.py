"""Run by test_races.py in a process with ThreadSanitizer: one scenario of threads in native code.

Python is not built with it; it sees the locks and threads of Python and all that native code does.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import gtape as tf
from gtape.devices.compiler import Recipe
from gtape.devices.cpu import toolchain
from gtape.devices.cpu.toolchain import library
from tests.forking import child

TEXT = r"""
#include "cpu_threads.h"
static void add(void* context, int part, int) { ((long*)context)[part] += part; }
static void nested(void* context, int part, int) {
  long own[7] = {};
  gtape_parallel(add, own, 7);
  for (long each : own) ((long*)context)[part] += each;
}
static void race(void* context, int part, int) {
  for (int i = 0; i < 1000; i++) *(volatile long*)context += part;
}
static void last(void* context, int part, int parts) {
  for (int i = 0; i < 1000; i++) ((long*)context)[parts - 1 - part] += ((long*)context)[part];
}
GTAPE_EXPORT void run(int kind, int parts, long* context) {
  gtape_parallel(kind == 0 ? add : kind == 1 ? nested : kind == 2 ? race : last, context, parts);
}
"""

#: Before another stands in its place.
USUAL = toolchain.recipe


def recipe(*more: str) -> Recipe:
    """How programs are compiled here, in place of `toolchain.recipe`."""
    usual = USUAL(*more)
    kept = tuple(o for o in usual.options if o not in ("-O2", "-O3"))
    return usual._replace(options=(*kept, "-O1", "-g1", "-fsanitize=thread"))


def together(*tasks: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _loops(kind: int, times: int = 200) -> None:
    native = library(TEXT, name="raced")
    for i in range(times):
        sums = (ctypes.c_long * 40)()
        native.run(kind, 1 + i % 40, sums)
        if kind < 2:
            want = [p if kind == 0 else 21 for p in range(1 + i % 40)]
            assert sums[: 1 + i % 40] == want


def callers() -> None:
    """Many threads call loops at once, nested ones too, while their number changes."""
    def counts() -> None:
        for i in range(100):
            toolchain.set_threads(1 + i % 5)

    together(*[lambda k=k: _loops(k % 2) for k in range(4)], counts)
    toolchain.set_threads(4)


def forks() -> None:
    """Processes that fork while other threads run loops. ThreadSanitizer has no threads in children
    of such: theirs are in test_cpu_threads.py."""
    def alone() -> bool:
        toolchain.set_threads(1)
        _loops(1, 20)
        return True

    _loops(0, 1)  # a child hangs in what another thread was importing
    stop = threading.Event()

    def beside() -> None:
        while not stop.is_set():
            _loops(0, 20)

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        for _ in range(3):
            assert child(alone, 60)
    finally:
        stop.set()
        thread.join()


def _drawn(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape).astype("f"))


def _convolved(x: Any, k: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, k])
        y = tf.nn.max_pool2d(tf.nn.conv2d(x, k, 1, "SAME"), 2, 2, "VALID")
        z = tf.nn.avg_pool2d(y, 2, 2, "VALID")
    return tape.gradient(z, [x, k], tf.sin(z))


def _multiplied(x: Any, y: Any) -> Any:
    row = tf.nn.softmax(x @ y)
    return tf.reduce_sum(row, 0), tf.reduce_max(row), tf.linalg.matvec(x, y[:, 0]), tf.cumsum(row)


def _moved(x: Any, at: Any) -> Any:
    rows = tf.gather(x, at)
    return (tf.math.unsorted_segment_sum(rows, at, 600), tf.argmax(rows, 1),
            tf.math.unsorted_segment_max(rows, at, 600),
            tf.tensor_scatter_nd_add(x, at[:, None], rows))


def programs() -> None:
    """Compiled functions in several threads: products, convolutions, moves, random numbers,
    Variables, steps in Python that call a program again, and calls that fail."""
    v, table = tf.Variable(_drawn(600, 64)), tf.Variable(tf.zeros([600, 64]))
    at = tf.constant(np.random.default_rng(0).integers(0, 600, 1000))

    @tf.function
    def step(x: Any, at: Any) -> Any:
        v.assign_add(x * 0.1)
        table.scatter_nd_add(at[:, None], tf.gather(v, at))
        return tf.reduce_sum(v) + tf.reduce_mean(tf.random.normal([300, 100]))

    @tf.function
    def again(x: Any, depth: Any) -> Any:
        below = tf.py_function(lambda a, d: again(a, d - 1) if d > 0 else a, [x, depth],
                               tf.TensorSpec(x.shape, tf.float32))
        return tf.sin(below @ x)

    x, y = _drawn(300, 200), _drawn(200, 250)
    image, kernel, square = _drawn(8, 24, 24, 3), _drawn(3, 3, 3, 10), _drawn(120, 120)
    whole = _drawn(600, 64)
    convolved, multiplied, moved = map(tf.function, (_convolved, _multiplied, _moved))
    wrong = tf.constant(np.full(1000, -1))

    def refused() -> None:
        try:
            step(whole, wrong)
        except tf.errors.InvalidArgumentError:
            return
        raise AssertionError("an index out of range was taken")

    calls = [lambda: convolved(image, kernel), lambda: multiplied(x, y), lambda: moved(v, at),
             lambda: step(whole, at), lambda: again(square, tf.constant(2)), refused,
             lambda: v.numpy().sum()]
    for call in calls:
        call()
    together(*[lambda k=k: [calls[(i + 3 * k) % len(calls)]() for i in range(14)]
               for k in range(4)])


SCENARIOS = {"callers": callers, "forks": forks, "programs": programs,
             "planted": lambda: _loops(2), "planted order": lambda: _loops(3)}


def main(name: str) -> None:
    os.environ["GTAPE_NATIVE"] = "1"
    toolchain.recipe = recipe  # type: ignore[assignment]
    toolchain.set_threads(4)
    SCENARIOS[name]()
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
