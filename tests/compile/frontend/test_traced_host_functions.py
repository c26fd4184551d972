"""print, py_function, numpy_function and assertions inside traced functions."""

import io

import numpy as np
import pytest

import gtape as tf
from tests.compile.frontend.graph_calls import as_graph, trace_of


@pytest.fixture(params=["graph", "function"])
def wrap(request):
    return as_graph if request.param == "graph" else tf.function


def test_print_at_every_call(wrap):
    stream, v = io.StringIO(), tf.Variable(1)

    def fn(x):
        v.assign_add(1)
        tf.print("x", x, {"v": v, "l": [x, (1.5, None)]}, tf.constant(3), output_stream=stream,
                 sep="|", end=".")
        return x

    call = wrap(fn)
    for i in range(2):
        call(tf.constant(float(i)))
    lines = stream.getvalue().split(".x")[-2:]
    assert stream.getvalue().endswith("x|1|{'v': 3, 'l': [1, (1.5, None)]}|3.")
    assert len(lines) == 2


def test_print_in_a_branch_and_not_again_for_the_gradient(wrap):
    stream = io.StringIO()

    def fn(x):
        def yes():
            tf.print("yes", output_stream=stream)
            return x * x

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(x > 0, yes, lambda: x)
        return tape.gradient(y, x)

    call = wrap(fn)
    assert [float(call(tf.constant(v))) for v in (2.0, -1.0, 3.0)] == [4, 1, 6]
    assert stream.getvalue() == "yes\nyes\n"


def test_py_function(wrap):
    seen, w = [], tf.Variable(2.0)

    def host(x, w):
        seen.append(x.numpy())
        return x * x * w

    def fn(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(host, [x, w], tf.TensorSpec([], tf.float32))
        return y, tape.gradient(y, [x, w])

    call = wrap(fn)
    for v in (3.0, 4.0):
        y, (gx, gw) = call(tf.constant(v))
        assert (float(y), float(gx), float(gw)) == (2 * v * v, 4 * v, v * v)
    assert seen[0] == 3 and seen[-1] == 4


def test_py_function_without_results_runs_at_every_call(wrap):
    seen = []
    call = wrap(lambda x: (tf.py_function(lambda v: seen.append(float(v)), [x], []), x)[1])
    call(tf.constant(1.0))
    call(tf.constant(2.0))
    assert seen == [1, 2]


def test_numpy_function(wrap):
    def fn(x):
        pair = tf.numpy_function(lambda a: (a * 2, np.int32(len(a))), [x],
                                 [tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32)])
        return pair[0] + tf.cast(pair[1], tf.float32)

    np.testing.assert_array_equal(wrap(fn)(tf.constant([1.0, 2.0])), [4, 6])


def test_shapes_of_results_must_be_given_and_are_checked():
    with pytest.raises(NotImplementedError, match="TensorSpec"):
        as_graph(lambda x: tf.py_function(lambda v: v, [x], tf.float32))(1.0)
    call = as_graph(lambda x: tf.py_function(lambda v: v[None], [x],
                                             tf.TensorSpec([], tf.float32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tout"):
        call(1.0)


def test_a_stateless_numpy_function_that_nobody_needs_is_left_out():
    def fn(x):
        tf.numpy_function(lambda a: a, [x], tf.TensorSpec([], tf.float32), stateful=False)
        return x

    assert not trace_of(fn, 1.0).graph.nodes


ASSERTIONS = {
    "equal": (lambda x: tf.debugging.assert_equal(x, 2.0), 2.0, 3.0),
    "less": (lambda x: tf.debugging.assert_less(x, 5.0, message="too much"), 4.0, 6.0),
    "near": (lambda x: tf.debugging.assert_near(x, 1.0), 1.0, 1.1),
    "positive": (lambda x: tf.debugging.assert_positive(x), 1.0, -1.0),
    "finite": (lambda x: tf.debugging.assert_all_finite(x, "x"), 1.0, np.inf),
    "Assert": (lambda x: tf.debugging.Assert(x > 0, [x, "text"]), 1.0, -1.0),
    "check_numerics": (lambda x: tf.debugging.check_numerics(x, "x"), 1.0, np.nan),
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_assertions_at_every_call(name, wrap):
    check, good, bad = ASSERTIONS[name]

    def fn(x):
        check(x)
        return x * 2

    call = wrap(fn)
    assert float(call(tf.constant(good))) == 2 * good
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant(bad))
    assert float(call(tf.constant(good))) == 2 * good


def test_assertions_that_hold_while_tracing_cost_nothing():
    def fn(x):
        tf.debugging.assert_equal(x.shape[0], 2)
        tf.debugging.assert_rank(x, 1)
        tf.debugging.assert_shapes([(x, ("N",))])
        tf.debugging.Assert(tf.constant(True), [x])
        return x

    assert not trace_of(fn, [1.0, 2.0]).graph.nodes


def test_an_assertion_in_a_branch_not_taken():
    def bad():
        tf.debugging.Assert(tf.constant(False), ["bad"])
        return 0.0

    call = as_graph(lambda x: tf.cond(x > 0, lambda: x, bad))
    assert float(call(1.0)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
        call(-1.0)


def test_wrong_dtypes_are_found_while_tracing():
    with pytest.raises(tf.errors.InvalidArgumentError):
        trace_of(lambda x: tf.debugging.assert_equal(x, tf.constant(1)), 1.0)
    with pytest.raises(TypeError):
        trace_of(lambda x: tf.debugging.assert_integer(x), 1.0)
