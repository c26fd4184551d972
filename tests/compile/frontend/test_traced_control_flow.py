"""cond, case, switch_case, while_loop and the loops over elements, inside traced functions."""

import numpy as np
import pytest

import gtape as tf
from tests.compile.frontend.graph_calls import as_graph, trace_of


@pytest.fixture(params=["graph", "function"])
def wrap(request):
    return as_graph if request.param == "graph" else tf.function


def orders(fn):
    """Value, gradient and second derivative of a function of a scalar."""
    def all_three(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = fn(x)
            g = tape.gradient(y, x)
        return y, g, outer.gradient(g, x, unconnected_gradients="zero")

    return all_three


def assert_alike(fn, wrap, points, rtol=1e-5):
    """Eager equals traced: with the tapes inside the trace, around it, and one each."""
    def half(x):
        call = inner
        with tf.GradientTape() as tape:
            tape.watch(x)
            g = call(x)
        return tape.gradient(g, x, unconnected_gradients="zero")

    inner = wrap(lambda x: orders(fn)(x)[1])
    calls = [wrap(orders(fn)), orders(wrap(fn))]
    for point in points:
        x = tf.constant(point)
        wanted = [float(v) for v in orders(fn)(x)]
        for call in calls:
            np.testing.assert_allclose([float(v) for v in call(x)], wanted, rtol=rtol)
        np.testing.assert_allclose(float(half(x)), wanted[2], rtol=rtol)


# ---------------------------------------------------------------- cond
def test_cond(wrap):
    w = tf.Variable(2.0)
    assert_alike(lambda x: tf.cond(x > 0, lambda: w * x**3, lambda: tf.sin(x)), wrap, [2.0, -1.0])


def test_nested_cond(wrap):
    def fn(x):
        return tf.cond(x > 0, lambda: tf.cond(x > 2, lambda: x**3, lambda: x**2 * 2),
                       lambda: tf.exp(x))

    assert_alike(fn, wrap, [3.0, 1.0, -1.0])


def test_gradients_of_variables_and_captures(wrap):
    w, x = tf.Variable(3.0), tf.constant(2.0)
    call = wrap(lambda p: tf.cond(p, lambda: w * w * x, lambda: -w))
    for p, wanted in ((True, [12.0, 9.0]), (False, [-1.0, 0.0])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(tf.constant(p))
        found = tape.gradient(y, [w, x], unconnected_gradients="zero")
        assert [float(g) for g in found] == wanted


def test_variables_written_in_a_branch(wrap):
    v, u = tf.Variable(1.0), tf.Variable(10.0)

    def fn(x):
        def yes():
            v.assign_add(x)
            return v * 2.0

        y = tf.cond(x > 0, yes, lambda: u.assign(x) + 0.0)
        return y, v + u

    call = wrap(fn)
    assert [float(a) for a in call(tf.constant(2.0))] == [6.0, 13.0]
    assert (float(v), float(u)) == (3.0, 10.0)
    assert [float(a) for a in call(tf.constant(-1.0))] == [-1.0, 2.0]
    assert (float(v), float(u)) == (3.0, -1.0)


def test_structures_and_none(wrap):
    call = wrap(lambda p, x: tf.cond(p, lambda: {"a": (x, None), "b": 1}, lambda: {
        "a": (x * 2, None), "b": 2}))
    made = call(tf.constant(False), tf.constant([1.0, 2.0]))
    assert made["a"][1] is None and int(made["b"]) == 2
    np.testing.assert_array_equal(made["a"][0], [2, 4])


def test_a_condition_that_is_known_takes_its_branch_while_tracing():
    def fail():
        raise AssertionError("not taken")

    assert float(as_graph(lambda x: tf.cond(tf.constant(True), lambda: x, fail))(1.0)) == 1


@pytest.mark.parametrize(("other", "error", "words"), [
    (lambda x: 1, TypeError, "float32.*int32"),
    (lambda x: None, ValueError, "None"),
    (lambda x: tf.ones(3), ValueError, "shape"),
    (lambda x: (x, x), ValueError, "structure"),
    (lambda x: [x], (ValueError, TypeError), "structure"),
    (lambda x: object(), TypeError, "object"),
])
def test_branches_that_do_not_fit(other, error, words):
    with pytest.raises(error, match=words):
        as_graph(lambda x: tf.cond(x > 0, lambda: x, lambda: other(x)))(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        as_graph(lambda x: tf.cond(x > 0, lambda: x, lambda: x))(np.ones(2, "f"))


def test_case(wrap):
    def fn(x):
        return tf.case([(x < 0, lambda: x**2), (x < 5, lambda: x**3)], default=lambda: x)

    assert_alike(fn, wrap, [-2.0, 2.0, 7.0])


def test_case_without_default_and_exclusive(wrap):
    pairs = [(lambda x: x < 0), (lambda x: x > 5)]
    call = wrap(lambda x: tf.case([(p(x), lambda i=i: x * i) for i, p in enumerate(pairs)]))
    assert float(call(tf.constant(7.0))) == 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="default"):
        call(tf.constant(1.0))
    call = wrap(lambda x: tf.case([(x > 0, lambda: x), (x > 1, lambda: -x)], exclusive=True))
    assert float(call(tf.constant(0.5))) == 0.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclu"):
        call(tf.constant(2.0))


def test_switch_case(wrap):
    call = wrap(lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2], default=lambda: x * 5))
    assert [float(call(tf.constant(i), tf.constant(3.0))) for i in (0, 1, 2, -1)] == [3, 6, 15, 15]
    call = wrap(lambda i, x: tf.switch_case(i, {1: lambda: x * 2, 0: lambda: x}))
    assert [float(call(tf.constant(i), tf.constant(3.0))) for i in (0, 1, 9)] == [3, 6, 6]


# ---------------------------------------------------------------- while_loop
def newton(x):
    return tf.while_loop(lambda i, y: tf.abs(y * y - x) > 1e-5 * x,
                         lambda i, y: (i + 1, 0.5 * (y + x / y)), (0, x))[1]


def test_a_loop_of_unknown_length(wrap):
    assert_alike(newton, wrap, [2.0, 9.0, 50.0], rtol=1e-4)
    assert len(trace_of(newton, 2.0).graph.nodes) == 1


def test_a_loop_of_known_length_is_unrolled():
    fn = as_graph(lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x)))
    assert [int(v) for v in fn(2)] == [3, 16]


def test_a_loop_that_becomes_symbolic_on_the_way(wrap):
    def fn(x):
        return tf.while_loop(lambda i, y: i < 10.0, lambda i, y: (i + x, y + 1.0), (0.0, x))[1]

    assert float(wrap(fn)(tf.constant(4.0))) == float(fn(tf.constant(4.0)))


def test_state_in_a_loop(wrap):
    v = tf.Variable(1.0)

    def fn(n):
        def body(i):
            v.assign(v * 2.0)
            return (i + 1,)

        tf.while_loop(lambda i: i < n, body, (tf.constant(0),))
        return v + 0.0

    call = wrap(fn)
    assert float(call(tf.constant(3))) == 8
    assert float(call(tf.constant(0))) == 8
    assert float(v) == 8


def test_limits_on_iterations(wrap):
    def fn(x, limit):
        return tf.while_loop(lambda y: y < 1000.0, lambda y: (y * x,), (x,),
                             maximum_iterations=limit)[0]

    assert float(wrap(lambda x: fn(x, 3))(tf.constant(2.0))) == 16
    assert float(wrap(fn)(tf.constant(2.0), tf.constant(2))) == 8


def test_loops_in_loops_and_branches(wrap):
    def fn(x):
        def outer(i, y):
            inner = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 1.1), (0, y))[1]
            return i + 1, tf.cond(inner > 3.0, lambda: inner - x, lambda: inner + tf.sin(x))

        n = tf.cast(x, tf.int32) + 2
        return tf.while_loop(lambda i, y: i < n, outer, (0, x))[1]

    assert_alike(fn, wrap, [1.3, 2.7])


def test_loop_variables_keep_their_types():
    for body, words in ((lambda y: (tf.cast(y, tf.float64),), "dtype"),
                        (lambda y: (y[None],), "shape"),
                        (lambda y: None, "None")):
        with pytest.raises(ValueError, match=words):
            as_graph(lambda x, b=body: tf.while_loop(lambda y: tf.reduce_sum(y) < x, b, (x,)))(1.0)
    with pytest.raises(NotImplementedError, match="shape_invariants"):
        as_graph(lambda x: tf.while_loop(
            lambda y: tf.reduce_sum(y) < x, lambda y: (tf.concat([y, y], 0),), (x[None],),
            shape_invariants=(tf.TensorShape([None]),)))(1.0)


def test_tensor_arrays(wrap):
    def fn(x):
        n = tf.cast(x, tf.int32)
        array = tf.TensorArray(tf.float32, size=4, clear_after_read=False)
        _, array = tf.while_loop(
            lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))),
            (tf.constant(0), array))
        total = tf.while_loop(lambda j, s: j < n, lambda j, s: (j + 1, s + array.read(j) ** 2),
                              (tf.constant(0), 0.0))[1]
        return total + array.stack()[1]

    assert_alike(fn, wrap, [3.0, 2.5])


def test_tensor_arrays_that_grow_are_not_traced():
    def fn(n):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=())
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, 1.0)),
                             (tf.constant(0), array))[1].stack()

    with pytest.raises(NotImplementedError, match="grow"):
        as_graph(fn)(3)


# ---------------------------------------------------------------- loops over elements
ROWS = np.random.default_rng(0).standard_normal((40, 3)).astype("f")
W = tf.Variable(0.7)
OVER_ELEMENTS = {
    "map_fn": lambda x: tf.map_fn(lambda r: tf.reduce_sum(r * r) * W, x),
    "map_fn_pair": lambda x: tf.map_fn(lambda r: (r[0] * r[1], r * W), x,
                                       fn_output_signature=(tf.float32, tf.float32)),
    "vectorized_map": lambda x: tf.vectorized_map(lambda p: tf.nn.softmax(p[0]) * p[1] * W,
                                                  (x, tf.ones((1, 3)))),
    "scan": lambda x: tf.scan(lambda a, r: a * W + tf.tanh(r), x, initializer=tf.zeros(3)),
    "scan_back": lambda x: tf.scan(lambda a, r: a * W + tf.tanh(r), x, initializer=tf.zeros(3),
                                   reverse=True),
    "foldl": lambda x: tf.foldl(lambda a, r: a * W + tf.tanh(r), x, initializer=tf.zeros(3)),
    "foldr": lambda x: tf.foldr(lambda a, r: a * W + tf.tanh(r), x, initializer=tf.ones(3)),
    "foldl_growing": lambda x: tf.foldl(lambda a, r: a * W + tf.tanh(r), x, initializer=0.0),
}


@pytest.mark.parametrize("name", OVER_ELEMENTS)
def test_loops_over_elements(name):
    fn = OVER_ELEMENTS[name]

    def both(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = fn(x)
                total = tf.add_n([tf.reduce_sum(v**3) for v in tf.nest.flatten(y)])
            first = tape.gradient(total, [x, W])
        return y, first, outer.gradient(first[0], x)

    x = tf.constant(ROWS)
    for a, b in zip(tf.nest.flatten(both(x)), tf.nest.flatten(as_graph(both)(x))):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(OVER_ELEMENTS) - {"foldl_growing", "vectorized_map"}))
def test_many_elements_are_one_step(name):
    assert len(trace_of(OVER_ELEMENTS[name], ROWS).graph.nodes) <= 2


def test_random_numbers_in_loops_are_drawn_once(wrap):
    def fn(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.map_fn(lambda r: tf.nn.dropout(r, 0.5) * r, x)
        return y, tape.gradient(y, x)

    made = []
    for call in (fn, wrap(fn)):
        tf.random.set_seed(9)
        made.append([call(tf.constant(ROWS)) for _ in range(2)])
    for a, b in zip(tf.nest.flatten(made[0]), tf.nest.flatten(made[1])):
        np.testing.assert_allclose(a, b, rtol=1e-6)
