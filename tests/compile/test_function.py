"""tf.function: what a call gives, what runs again, what is refused."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gtape as tf
from gtape.core.errors import EagerFunctionWarning, NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.symbols import SymbolicTensor


@pytest.fixture(autouse=True)
def _applied(monkeypatch):
    monkeypatch.setenv("GTAPE_NATIVE", "0")


def _reads_values(x):
    """An operation that cannot be traced."""
    if isinstance(x, SymbolicTensor):
        raise NotTraceableError("program.py:7: this operation reads numbers")
    return x * 2


# ---------------------------------------------------------------------- calls


def test_python_runs_once_and_the_graph_every_time():
    seen = []

    @tf.function
    def f(x):
        seen.append(x)
        return x + 1.0

    assert [float(f(tf.constant(v))) for v in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0]
    assert len(seen) == 1
    assert not tf.is_tensor(f)
    assert isinstance(seen[0], SymbolicTensor)


def test_it_wears_the_face_of_the_python_function():
    def g(x, k=2):
        """Doubles."""
        return x * k

    f = tf.function(g)
    assert (f.__name__, f.name, f.__doc__, f.__wrapped__) == ("g", "g", "Doubles.", g)
    assert f.python_function is g
    assert "g" in repr(f)


def test_decorator_with_options_and_without():
    assert int(tf.function(lambda x: x + 1)(tf.constant(1))) == 2
    assert int(tf.function(func=lambda x: x + 1)(tf.constant(1))) == 2
    assert int(tf.function(autograph=False, jit_compile=True)(lambda x: x + 1)(tf.constant(1))) == 2
    with pytest.raises(TypeError, match="takes a function"):
        tf.function(3)


Pair = namedtuple("Pair", "a b")


def test_structures_go_in_and_come_out():
    @tf.function
    def f(batch, scale):
        pair = Pair(batch["x"] * scale, [batch["y"][0], None])
        return {"pair": pair, "number": 3, "array": np.ones(2)}

    made = f({"x": tf.constant(2.0), "y": (tf.constant(5), "unused")}, 4.0)
    assert float(made["pair"].a) == 8.0
    assert int(made["pair"].b[0]) == 5
    assert made["pair"].b[1] is None
    assert made["number"].dtype == tf.int32
    assert made["array"].dtype == tf.float64


def test_slices_go_in_and_come_out():
    @tf.function
    def f(slices):
        return slices * 2.0, slices.values

    given = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]), tf.constant([3, 1]))
    made, values = f(given)
    np.testing.assert_array_equal(made.to_dense(), [[2.0], [0.0], [4.0]])
    np.testing.assert_array_equal(values, [[1.0], [2.0]])


def test_a_result_is_a_tensor_of_its_own():
    constant = tf.constant(5.0)

    @tf.function
    def f(x):
        y = x * 2.0
        return x, constant, y

    x = tf.constant(1.0)
    for recording in (False, True):
        with tf.GradientTape() if recording else tf.device("CPU:0"):
            made = f(x)
        assert len({id(t) for t in (*made, x, constant)}) == 5
        assert [float(t) for t in made] == [1.0, 5.0, 2.0]


def test_keyword_arguments_and_defaults_find_one_trace():
    @tf.function
    def f(x, y=2.0, *rest, flag=True, **named):
        return x * y if flag else x

    x = tf.constant(3.0)
    assert float(f(x)) == float(f(x=x)) == float(f(x, 2.0)) == float(f(x, flag=True)) == 6.0
    assert f.experimental_get_tracing_count() == 1
    assert float(f(x, flag=False)) == 3.0
    assert float(f(x, flag=True)) == 6.0
    assert float(f(x, 2.0, 7, z=1)) == 6.0
    assert f.experimental_get_tracing_count() == 3


def test_wrong_arguments_name_the_function_and_its_parameters():
    f = tf.function(lambda x, y: x)
    with pytest.raises(TypeError, match=r"<lambda>\(x, y\): missing a required argument: 'y'"):
        f(1)
    with pytest.raises(TypeError, match="too many"):
        f(1, 2, 3)


def test_an_exception_of_the_body_passes_and_leaves_nothing():
    fail = [True]

    @tf.function
    def f(x):
        if fail[0]:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        f(tf.constant(1.0))
    assert f.experimental_get_tracing_count() == 0
    fail[0] = False
    assert float(f(tf.constant(1.0))) == 1.0


def test_only_tensors_can_be_returned():
    with pytest.raises(TypeError, match="f returned <object"):
        tf.function(_named("f", lambda: object()))()


def _named(name, fn):
    fn.__name__ = name
    return fn


def test_a_traced_value_is_no_python_number():
    for bad in (lambda x: 1 if x > 0 else 2, float, lambda x: [0, 1][x]):
        with pytest.raises((OperatorNotAllowedInGraphError, TypeError)):
            tf.function(bad, autograph=False)(tf.constant(1))


def test_a_leaked_symbol_says_so():
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x * 2.0)
        return x

    f(tf.constant(1.0))
    with pytest.raises(TypeError, match="out of scope"):
        leaked[0] + 1.0
    with pytest.raises(TypeError, match="out of scope"):
        tf.function(lambda: leaked[0] * 1.0)()
    with pytest.raises(TypeError, match="out of scope"):
        tf.function(lambda: leaked[0])()


def test_functions_can_be_run_eagerly():
    seen = []

    @tf.function
    def f(x):
        seen.append(tf.executing_eagerly())
        return x * 2

    f(tf.constant(1))
    assert not tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        assert [int(f(tf.constant(1))), int(f(3))] == [2, 6]
    finally:
        tf.config.run_functions_eagerly(False)
    f(tf.constant(1))
    assert seen == [False, True, True]


def test_what_cannot_be_traced_runs_eagerly_and_says_so_once():
    runs = []

    @tf.function
    def f(x):
        runs.append(1)
        return _reads_values(x)

    with pytest.warns(EagerFunctionWarning, match=r"f runs eagerly: program.py:7"):
        assert float(f(tf.constant(1.0))) == 2.0
    x = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = f(x.value())
    assert float(tape.gradient(y, x)) == 2.0
    outer = tf.function(lambda x: f(x) + 1.0)
    with pytest.warns(EagerFunctionWarning, match="<lambda> runs eagerly"):
        assert float(outer(tf.constant(1.0))) == 3.0
    assert len(runs) == 5  # trace, call; call under the tape; trace of outer, call of outer
    with pytest.raises(ValueError, match="runs eagerly"):
        f.inspect(tf.constant(1.0))


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


# ---------------------------------------------------------------------- input_signature


def test_arguments_are_brought_to_the_signature():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32),
                                  {"a": [tf.TensorSpec([], tf.int64)] * 2}])
    def f(x, d, k=3):
        return tf.reduce_sum(x) * k, d["a"][0] + d["a"][1]

    for x in ([1, 2], np.array([1.0, 2.0]), (1.0, 2.0), tf.Variable([1.0, 2.0])):
        total, two = f(x, {"a": (1, np.int64(1))})
        assert (float(total), int(two), two.dtype) == (9.0, 2, tf.int64)
    assert f.experimental_get_tracing_count() == 1
    for bad, text in (
            ((tf.constant([[1.0]]), {"a": [1, 1]}), r"argument 'x' must be float32 \[None\]; got"),
            ((tf.constant([1]), {"a": [1, 1]}), r"write tf.cast\(value, tf.float32\)"),
            ((["a"], {"a": [1, 1]}), "argument 'x' must be"),
            (([1.0], {"b": [1, 1]}), r"keys \['a'\]"),
            (([1.0], {"a": [1]}), r"argument 'd\['a'\]' must have 2 items"),
            (([1.0], 3), "argument 'd' must be a dict"),
            (([1.0],), "missing"), (([1.0], {"a": [1, 1]}, 5), "got 'k' as well")):
        with pytest.raises(TypeError, match=text):
            f(*bad)


def test_a_signature_must_fit_the_parameters():
    spec = tf.TensorSpec([])
    for fn, signature, text in (
            (lambda x: x, [spec, spec], "describes 2"), (lambda x, y: x, [spec], "nothing of y"),
            (lambda x, *, k: x, [spec], "nothing of k"), (lambda x: x, spec, "must be a list")):
        with pytest.raises(TypeError, match=text):
            tf.function(fn, input_signature=signature)


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


# ---------------------------------------------------------------------- gradients


def test_an_op_without_gradient_is_refused_in_the_call_under_a_tape():
    f = tf.function(lambda im: tf.image.adjust_contrast(im, 0.5))
    image = tf.ones((1, 1, 3))
    with tf.GradientTape() as tape:
        tape.watch(image)
        with pytest.raises(LookupError, match="AdjustContrastv2"):
            f(image)
    with tf.GradientTape():
        assert f(image).shape == (1, 1, 3)


def test_threads_of_compiled_loops_can_be_set():
    before = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        tf.config.threading.set_intra_op_parallelism_threads(3)
        assert tf.config.threading.get_intra_op_parallelism_threads() == 3
        with pytest.raises(tf.errors.InvalidArgumentError, match="0"):
            tf.config.threading.set_intra_op_parallelism_threads(-1)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert tf.config.threading.get_intra_op_parallelism_threads() == before


def test_the_fast_way_gives_what_the_general_way_gives(monkeypatch):
    @tf.function
    def f(x, flag, y=None):
        return {"r": x * 2.0 if flag else x} if y is None else (x, y)

    x, z = tf.constant([1.0, 2.0]), tf.constant(3)
    calls = [lambda: f(x, True), lambda: f(x, False), lambda: f(x, 1), lambda: f(x, flag=True),
             lambda: f(x, True, z), lambda: f(z, True, x), lambda: f(x, True, None)]
    first = [tf.nest.map_structure(np.asarray, c()) for c in calls]
    count = f.experimental_get_tracing_count()
    monkeypatch.setattr(type(f), "_called", None)  # from now on only the fast way works
    for made, call in zip(first, calls):
        tf.nest.map_structure(np.testing.assert_array_equal, made,
                              tf.nest.map_structure(np.asarray, call()))
    assert f.experimental_get_tracing_count() == count
