"""tf.function: what a call gives, what runs again, what is refused."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.errors import (
    EagerFunctionWarning,
    NotTraceableError,
    OperatorNotAllowedInGraphError,
)
from gtape.trace.symbolic_tensor import SymbolicTensor


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


def test_an_input_signature_of_a_method_leaves_out_self() -> None:
    class Scale(tf.Module):
        def __init__(self, factor: float) -> None:
            self.factor = tf.Variable(factor)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x: Any, more: float = 1.0) -> Any:
            return x * self.factor * more

        @tf.function(input_signature=[])
        def twice(self) -> Any:
            return self.factor * 2.0

    two, three = Scale(2.0), Scale(3.0)
    for scale, want in ((two, [2.0, 4.0]), (three, [3.0, 6.0])):
        for x in ([1, 2], np.array([1.0, 2.0]), tf.constant([1.0, 2.0])):
            assert scale(x).numpy().tolist() == want
            assert Scale.__call__(scale, x).numpy().tolist() == want
        assert scale.__call__.get_concrete_function()(
            tf.constant([1.0, 2.0])).numpy().tolist() == want
        assert float(scale.twice()) == 2 * want[0]
    with pytest.raises(TypeError, match=r"argument 'x' must be float32 \[None\]"):
        two(tf.ones([2, 2]))
    with pytest.raises(TypeError, match="'more' as well"):
        two([1.0], 2.0)
    with pytest.raises(TypeError, match="describes 2"):
        tf.function(lambda self, x: x, input_signature=[tf.TensorSpec([])] * 2)


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


def test_an_input_signature_describes_star_arguments_too() -> None:
    spec = tf.TensorSpec([None], tf.float32)

    @tf.function(input_signature=[spec, spec])
    def both(*args: Any, **options: Any) -> Any:
        return args[0] * (len(args) + 10 * len(options))

    one = tf.constant([1.0, 2.0])
    assert both(one, one).numpy().tolist() == [2, 4]
    assert both.get_concrete_function()(one, one).numpy().tolist() == [2, 4]
    for args, options in (((one,), {}), ((one, one, one), {}), ((one, one), {"more": one})):
        with pytest.raises(TypeError, match="input_signature describes 2 arguments"):
            both(*args, **options)


def test_what_an_input_signature_does_not_describe_keeps_its_default() -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def scaled(x: Any, factor: float = 3.0, *more: Any) -> Any:
        return x * factor

    assert scaled.get_concrete_function()(tf.constant(2.0)).numpy() == 6
    with pytest.raises(TypeError, match="'factor' as well"):
        scaled(tf.constant(2.0), 4.0)
