"""Compiled functions in several threads, in child processes, in themselves, and interrupted."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp import program
from gtape.compile.cpp.program import compile_closed
from gtape.core import locks
from tests.threads import together

pytestmark = pytest.mark.native


@pytest.mark.parametrize(("size", "calls"), [(40, 100), (600, 4)])
def test_one_function_in_many_threads(size, calls):
    """A small program, and one during which other threads of Python run."""
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.sin(x) * x, 1), x @ x

    given = [tf.constant(np.random.default_rng(i).normal(size=(size, size))) for i in range(4)]
    want = [[r.numpy() for r in f(x)] for x in given]

    def task(i):
        for _ in range(calls):
            for a, b in zip(f(given[i]), want[i]):
                np.testing.assert_array_equal(a, b)

    together(*(lambda i=i: task(i) for i in range(4)))


@pytest.mark.parametrize("count", [300, 3_000_000])
def test_readers_never_see_half_a_write(count):
    v, done = tf.Variable(np.zeros(count, "f")), []

    @tf.function
    def step():
        v.assign_add(tf.ones(count))

    step()

    def read():
        last = 0.0
        while not done:
            now = v.numpy()
            assert now.min() == now.max() >= last
            last = now[0]

    def write():
        for _ in range(20):
            step()
            time.sleep(0.002)
        done.append(True)

    together(read, read, write)
    assert float(v[0]) == 21.0


def test_two_functions_whose_python_code_reads_what_both_write():
    v = tf.Variable(0.0)

    def stepping():
        @tf.function
        def step(x):
            y = tf.py_function(lambda a: (time.sleep(0.003), float(v), a)[2], [x],
                               tf.TensorSpec([], tf.float32))
            v.assign_add(y)
            return y

        step(tf.constant(1.0))
        return step

    def task(step):
        for _ in range(10):
            step(tf.constant(1.0))

    first, second = stepping(), stepping()
    together(lambda: task(first), lambda: task(second))
    assert 12 <= float(v) <= 22


def test_python_code_that_waits_for_another_thread():
    """The other thread reads and writes variables through a compiled function."""
    v, w = tf.Variable(0.0), tf.Variable(1.0)

    @tf.function
    def inner(x):
        w.assign_add(x)
        return w.read_value()

    def elsewhere(a):
        found = []
        thread = threading.Thread(target=lambda: found.append(inner(a) + v), daemon=True)
        thread.start()
        thread.join(20)
        assert found, "the threads wait for each other"
        return found[0]

    @tf.function
    def outer(x):
        y = tf.py_function(elsewhere, [x], tf.TensorSpec([], tf.float32))
        v.assign_add(y)
        return y

    inner(tf.constant(1.0))
    assert [float(outer(tf.constant(1.0))) for _ in range(2)] == [3.0, 7.0]
    assert float(v) == 10.0


def test_a_function_whose_python_code_calls_it():
    @tf.function
    def f(x):
        below = tf.py_function(lambda a: f(a - 1.0) if a > 0 else a, [x],
                               tf.TensorSpec([], tf.float32))
        return below + tf.sin(x)

    want = sum(np.sin(np.float32(i)) for i in range(4))
    for _ in range(2):
        np.testing.assert_allclose(float(f(tf.constant(3.0))), want, rtol=1e-6)


def in_a_thread(work):
    """What `work` gives in another thread, for which this one waits."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "the threads wait for each other"
    return found[0]


@pytest.mark.parametrize("state", [False, True])
def test_python_code_that_waits_for_a_thread_that_calls_the_same_function(state):
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        below = tf.py_function(lambda a: in_a_thread(lambda: f(a - 1.0)) if a > 0 else a, [x],
                               tf.TensorSpec([], tf.float32))
        if state:
            v.assign_add(1.0)
        return below + tf.sin(x)

    want = sum(np.sin(np.float32(i)) for i in range(4))
    for _ in range(2):
        np.testing.assert_allclose(float(f(tf.constant(3.0))), want, rtol=1e-6)
    assert float(v) == 8.0 * state


def test_two_functions_that_call_each_other_from_two_threads():
    both = threading.Barrier(2)

    def calls(other):
        def work(a):
            if a == 0:
                return a
            both.wait(20)
            return other()(a - 1.0)

        return tf.function(lambda x: tf.cos(x) + tf.py_function(
            work, [x], tf.TensorSpec([], tf.float32)))

    f, g = calls(lambda: g), calls(lambda: f)
    zero, one = tf.constant(0.0), tf.constant(1.0)
    assert float(f(zero)) == float(g(zero)) == 1.0
    want = float(tf.cos(one) + 1.0)
    found = []
    together(lambda: found.append(float(f(one))), lambda: found.append(float(g(one))))
    assert found == [want, want]


def test_memory_of_many_calls_at_once_is_not_kept():
    count = 9
    all_here = threading.Barrier(count)

    def work(a):
        all_here.wait(20)
        return a

    @tf.function
    def f(x):
        return tf.py_function(work, [x * 2.0], tf.TensorSpec([], tf.float32)) + 1.0

    found = []
    given = [tf.constant(float(i)) for i in range(count)]
    together(*(lambda i=i: found.append((i, float(f(given[i])))) for i in range(count)))
    assert sorted(found) == [(i, 2.0 * i + 1.0) for i in range(count)]
    (trace,) = f._cache.traces
    (executable,) = f._cache._executables.values()
    assert len(executable.program._spare) <= 4
    assert trace.calls == count


def test_a_trace_that_waits_for_a_thread_that_calls_the_function(monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    waited = []

    @tf.function
    def f(x):
        if not waited:
            waited.append(True)
            assert float(in_a_thread(lambda: f(tf.constant(2.0)))) == 4.0
        return x * 2.0

    assert float(f(tf.constant(3.0))) == 6.0


def test_a_first_call_in_the_middle_of_another_one(monkeypatch):
    """Another thread calls the function when its program is made and not yet ready."""
    f = tf.function(lambda x: x + 1.0)
    met = []

    class Slow:
        def __init__(self, program):
            self.program = program

        @property
        def entry(self):
            if not met:
                met.append(None)
                met[0] = float(in_a_thread(lambda: f(tf.constant(1.0))))
            return self.program.entry

    monkeypatch.setattr(program, "compile_closed", lambda traced: Slow(compile_closed(traced)))
    assert float(f(tf.constant(4.0))) == 5.0
    assert met == [2.0]


_COLLECTED = """
import gc
import gtape as tf
for i in range(20):
    f = tf.function(lambda x: x * 2.0 + i)
    made = f(tf.constant([1.0, 2.0]))
    del f
    gc.collect()
    assert made.numpy().tolist() == [2.0 + i, 4.0 + i]
print("fine")
"""


def test_a_function_that_is_collected_leaves_no_pointer_behind():
    """Memory that is given back is overwritten at once."""
    done = subprocess.run([sys.executable, "-c", _COLLECTED], capture_output=True, text=True,
                          timeout=100, check=False,
                          env={**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "2"})
    assert done.stdout == "fine\n", (done.returncode, done.stderr)


@pytest.fixture
def interruptible():
    """A process that was started in the background ignores the signal."""
    held = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, held)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_call():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        tf.py_function(lambda: signal.raise_signal(signal.SIGINT), [], [])
        v.assign_add(x)
        return v.read_value()

    @tf.function
    def g(x):
        v.assign_add(x)
        return v.read_value()

    assert float(g(tf.constant(1.0))) == 1.0
    with pytest.raises(KeyboardInterrupt):
        f(tf.constant(1.0))
    assert float(v) == 1.0 and float(g(tf.constant(1.0))) == 2.0


_STATE = tf.Variable(np.zeros((200, 200), "f"))


@tf.function
def _step(x):
    _STATE.assign_add(x @ x * 0.0 + 1.0)
    return tf.reduce_sum(tf.sin(_STATE) @ x)


def _child(queue):
    x = tf.ones((200, 200))
    queue.put((float(_step(x)), float(_step(x)), float(_STATE[0, 0])))


def test_child_processes_go_on_by_themselves():
    x = tf.ones((200, 200))
    assert float(_STATE[0, 0]) == 0.0
    want = [float(_step(x)) for _ in range(3)]
    _STATE.assign(tf.ones((200, 200)))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_child, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    found = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
    assert found == [(want[1], want[2], 3.0)] * 2
    assert float(_STATE[0, 0]) == 1.0
