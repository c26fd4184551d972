"""tf.function: Variables, methods, threads, and what is kept alive."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gtape as tf


@pytest.fixture(autouse=True)
def _applied(monkeypatch):
    monkeypatch.setenv("GTAPE_NATIVE", "0")


# ---------------------------------------------------------------------- variables


def test_variables_are_read_and_written_at_every_call():
    n, w = tf.Variable(0), tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        n.assign_add(1)
        y = w * x
        w.assign(y)
        return n, y

    assert [int(f(tf.constant(2.0))[0]) for _ in range(3)] == [1, 2, 3]
    np.testing.assert_array_equal(w, [8.0, 16.0])
    w.assign([1.0, 1.0])
    np.testing.assert_array_equal(f(tf.constant(3.0))[1], [3.0, 3.0])


def test_only_the_first_call_creates_variables():
    class Layer:
        def __init__(self):
            self.runs, self.w = 0, None

        @tf.function
        def __call__(self, x):
            self.runs += 1
            if self.w is None:
                self.w = tf.Variable(tf.ones((2,)), name="w")
            return self.w * x

    layer = Layer()
    np.testing.assert_array_equal(layer(tf.constant(2.0)), [2.0, 2.0])
    assert layer.runs == 2
    layer(tf.constant(3.0))
    assert layer.runs == 2
    other = Layer()
    np.testing.assert_array_equal(other(tf.constant(3.0)), [3.0, 3.0])
    assert other.w is not layer.w


def test_a_variable_in_every_call_is_refused():
    @tf.function
    def bad(x):
        return tf.Variable(1.0) * x

    for _ in range(2):
        with pytest.raises(ValueError, match="only in the first call"):
            bad(tf.constant(1.0))
    kept = []

    @tf.function
    def late(x):
        if x.dtype == tf.int32 and not kept:
            kept.append(tf.Variable(1))
        return x

    late(tf.constant(1.0))
    with pytest.raises(ValueError, match="only in the first call"):
        late(tf.constant(1))
    assert late.experimental_get_tracing_count() == 1


def test_a_failing_first_call_may_create_again():
    made, fail = {}, [True]

    @tf.function
    def f(x):
        if "v" not in made:
            made["v"] = tf.Variable(1.0)
        if fail[0]:
            raise RuntimeError("later")
        if "w" not in made:
            made["w"] = tf.Variable(2.0)
        return x * made["v"] * made["w"]

    with pytest.raises(RuntimeError, match="later"):
        f(tf.constant(3.0))
    fail[0] = False
    assert float(f(tf.constant(3.0))) == 6.0


def test_a_variable_of_any_shape_is_traced_for_the_one_it_has():
    v = tf.Variable([1.0], shape=[None])
    f = tf.function(lambda: tf.reduce_sum(v) * tf.cast(tf.size(v), tf.float32))
    assert float(f()) == 1.0
    v.assign([1.0, 2.0, 3.0])
    assert float(f()) == 18.0
    assert float(tf.function(lambda: f() + 1.0)()) == 19.0
    v.assign([4.0])
    assert float(f()) == 4.0


def test_unread_variables_are_not_watched():
    v, w = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def f(x):
        return x * w if v.dtype == tf.float32 else x

    with tf.GradientTape() as tape:
        f(tf.constant(1.0))
    assert [u.name for u in tape.watched_variables()] == [w.name]
    assert tape.watched_variables()[0] is w


# ---------------------------------------------------------------------- methods, threads, memory


def test_methods_have_a_trace_for_each_object_and_do_not_keep_it():
    seen = []

    class A(tf.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @tf.function
        def f(self, x):
            seen.append(self.k)
            return x * self.k

    a, b = A(2.0), A(3.0)
    assert [float(m.f(tf.constant(1.0))) for m in (a, a, b, b)] == [2.0, 2.0, 3.0, 3.0]
    assert seen == [2.0, 3.0]
    assert float(A.f(a, tf.constant(5.0))) == 10.0
    assert a.f.__self__ is a
    assert a.f.experimental_get_tracing_count() == 1
    assert float(a.f.python_function(tf.constant(1.0))) == 2.0
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    assert float(b.f(tf.constant(1.0))) == 3.0
    assert len(A.f._methods) == 1


def test_a_function_and_its_traces_can_be_collected():
    class Big:
        pass

    held = Big()

    def body(x, o):
        return x * 2.0

    f = tf.function(body)
    f(tf.constant(1.0), held)
    assert f.experimental_get_tracing_count() == 1
    gone, function = weakref.ref(held), weakref.ref(f)
    del held
    gc.collect()
    assert gone() is None
    f(tf.constant(1.0), Big())
    assert f.experimental_get_tracing_count() == 1
    del f
    gc.collect()
    assert function() is None


def test_a_function_can_be_copied_with_its_object():
    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)
            self.step = tf.function(self._step)

        def _step(self, x):
            return self.w * x

    a = Model()
    assert float(a.step(tf.constant(1.0))) == 2.0
    b = copy.deepcopy(a)
    b.w.assign(5.0)
    assert float(a.step(tf.constant(1.0))) == 2.0
    assert float(b.step(tf.constant(1.0))) == 5.0


def test_one_thread_traces_and_the_others_wait():
    seen, start = [], threading.Barrier(4)

    @tf.function
    def f(x):
        seen.append(1)
        return tf.sin(x) + x

    def call(v):
        start.wait()
        return float(f(tf.constant(v)))

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(call, [1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(made, [np.sin(v) + v for v in (1, 2, 3, 4)], rtol=1e-6)
    assert len(seen) == 1


def test_functions_that_call_each_other_do_not_wait_for_each_other():
    start = threading.Barrier(2, timeout=30)

    @tf.function
    def f(x, first):
        if first:
            start.wait()
            return g(x, False) + 1.0
        return x * 2.0

    @tf.function
    def g(x, first):
        if first:
            start.wait()
            return f(x, False) + 10.0
        return x * 3.0

    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(h, tf.constant(1.0), True) for h in (f, g)]
        assert [float(m.result(timeout=60)) for m in made] == [4.0, 12.0]
