"""Functions in functions, and tapes outside, inside and across them: all as eager."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


@pytest.fixture(autouse=True)
def _applied(monkeypatch):
    monkeypatch.setenv("GTAPE_NATIVE", "0")


_X = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 4)).astype(np.float32)


# ---------------------------------------------------------------------- nested functions


def test_the_inner_function_is_traced_once_for_all_outer_ones():
    seen = []

    @tf.function
    def inner(x):
        seen.append(x.shape)
        return tf.sin(x)

    @tf.function
    def twice(x):
        return inner(x) + inner(2.0 * x)

    @tf.function
    def once(x):
        return inner(x)

    x = tf.constant(0.5)
    assert float(twice(x)) == pytest.approx(np.sin(0.5) + np.sin(1.0))
    assert float(once(x)) == float(inner(x))
    assert len(seen) == 1


def test_values_of_the_outer_trace_are_captured():
    seen = []

    def outer(x, k):
        scaled = x * k

        @tf.function
        def inner(y):
            return scaled + y

        return inner(x) + inner(x)

    held = []

    @tf.function
    def shared(y):
        seen.append(1)
        return held[0] * y

    @tf.function
    def first(x):
        held[:] = [x * 2.0]
        return shared(x) + shared(x)

    traced = tf.function(outer)
    assert float(traced(tf.constant(3.0), tf.constant(2.0))) == 18.0
    assert float(first(tf.constant(3.0))) == 36.0
    assert float(first(tf.constant(5.0))) == 100.0
    assert len(seen) == 1
    held[:] = [tf.constant(7.0)]
    assert float(shared(tf.constant(2.0))) == 14.0
    assert shared.experimental_get_tracing_count() == 1
    assert float(tf.function(lambda x: shared(x))(tf.constant(2.0))) == 14.0


def test_the_inner_function_reads_what_the_outer_one_wrote():
    v = tf.Variable(1.0)

    @tf.function
    def bump(by):
        v.assign_add(by)
        return v * 10.0

    @tf.function
    def outer(x):
        v.assign(x)
        first = bump(x)
        v.assign(v * 2.0)
        return first, bump(1.0), v

    for _ in range(2):
        made = outer(tf.constant(3.0))
        assert [float(m) for m in made] == [60.0, 130.0, 13.0]
        assert float(v) == 13.0
    assert float(bump(1.0)) == 140.0


def test_an_inner_function_may_create_variables_in_the_first_call():
    class Dense:
        def __init__(self):
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([4, 2]))
            return x @ self.w

    layer, runs = Dense(), []

    @tf.function
    def step(x):
        runs.append(1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x) ** 2)
        g = tape.gradient(loss, layer.w)
        layer.w.assign_sub(0.01 * g)
        return g

    first = step(tf.constant(_X))
    np.testing.assert_allclose(first, 2 * _X.T @ (_X @ np.ones((4, 2))), rtol=1e-5)
    assert len(runs) == 2
    np.testing.assert_allclose(layer.w, 1 - 0.01 * np.asarray(first), rtol=1e-5)
    step(tf.constant(_X))
    assert len(runs) == 2


def test_recursion_ends_by_a_python_number_and_never_hangs():
    @tf.function
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert float(power(tf.constant(2.0), 5)) == 32.0

    @tf.function
    def forever(x):
        return forever(x * 2.0)

    with pytest.raises(RecursionError, match="forever calls itself"):
        forever(tf.constant(1.0))


def test_init_scope_runs_at_once():
    seen = []

    @tf.function
    def f(x):
        with tf.init_scope():
            seen.append(tf.executing_eagerly())
            v = tf.constant(2.0) * 3.0
            seen.append(float(v))
        return x * v

    assert float(f(tf.constant(1.0))) == 6.0
    assert seen == [True, 6.0]


# ---------------------------------------------------------------------- tapes


_w = tf.Variable([[0.5, -1.0], [0.25, 2.0], [1.0, 1.0], [0.0, -0.5]])


@tf.custom_gradient
def _clipped(x):
    def pull(g):
        return tf.clip_by_value(g, -0.25, 0.25) * x

    return x * 1.0, pull


@tf.recompute_grad
def _again(x):
    return tf.tanh(x @ _w)


def _loss(x):
    h = tf.nn.softmax(_again(x) + tf.sin(x @ _w))
    return tf.reduce_mean(tf.square(_clipped(h)) * tf.stop_gradient(h + 1.0))


def _slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = _loss(x)
    return tape.gradient(y, x)


def _assert_close(a, b):
    for p, q in zip(tf.nest.flatten(a), tf.nest.flatten(b)):
        np.testing.assert_allclose(p, q, rtol=2e-5, atol=1e-6)


def test_the_gradient_of_a_function_and_the_function_of_a_gradient():
    x, traced, slope = tf.constant(_X), tf.function(_loss), tf.function(_slope)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        wanted, got = _loss(x), traced(x)
    _assert_close(got, wanted)
    for source in (x, _w):
        _assert_close(tape.gradient(got, source), tape.gradient(wanted, source))
    assert [v.ref() for v in tape.watched_variables()] == [_w.ref()]
    _assert_close(slope(x), _slope(x))


@pytest.mark.parametrize("how", ["function of gradient", "gradient of function", "both"])
def test_second_derivatives(how):
    x = tf.constant(_X)

    def inner(x):
        return _slope(x)

    if how == "gradient of function":
        traced = tf.function(_loss)

        def inner(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = traced(x)
            return tape.gradient(y, x)
    elif how == "function of gradient":
        inner = tf.function(_slope)

    def second(fn, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(fn(x)))
        return tape.gradient(y, [x, _w])

    wanted = second(_slope, x)
    run = tf.function(lambda x: second(inner, x)) if how == "both" else (
        lambda x: second(inner, x))
    _assert_close(run(x), wanted)


def test_jacobians_across_a_function():
    def small(x):
        return tf.sin(x) * tf.reduce_sum(x)

    def rows(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = small(x)
        return tape.jacobian(y, x)

    def batches(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * x[:, ::-1]
        return tape.batch_jacobian(y, x)

    x = tf.constant(_X)
    traced = tf.function(small)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = traced(x)
    _assert_close(tape.jacobian(y, x), rows(x))
    _assert_close(tf.function(rows)(x), rows(x))
    _assert_close(tf.function(batches)(x), batches(x))


def test_forward_accumulators_around_and_inside():
    x, t = tf.constant(_X), tf.constant(np.ones_like(_X))

    def product(x, t):
        with tf.autodiff.ForwardAccumulator(x, t) as acc:
            y = _loss(x)
        return acc.jvp(y)

    wanted = product(x, t)
    _assert_close(tf.function(product)(x, t), wanted)
    with tf.autodiff.ForwardAccumulator(x, t) as acc:
        y = tf.function(_loss)(x)
    _assert_close(acc.jvp(y), wanted)


def test_a_watched_constant_that_the_function_captures_has_a_gradient():
    c = tf.constant(2.0)
    f = tf.function(lambda x: x * c * c)
    f(tf.constant(1.0))
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = f(tf.constant(3.0))
    assert float(tape.gradient(y, c)) == 12.0


def test_custom_gradients_hold_after_the_trace():
    v = tf.Variable(3.0)
    asked = []

    @tf.custom_gradient
    def odd(x):
        def pull(g, variables=None):
            asked.append(1)
            return g * 10.0 * x, [g * 7.0]

        return x * v, pull

    @tf.custom_gradient
    def broken(x):
        def pull(g):
            raise KeyError("mine")

        return x * 1.0, pull

    f = tf.function(lambda x: odd(x) * 2.0)
    x = tf.Variable(4.0)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            y = f(x)
        assert [float(g) for g in tape.gradient(y, [x, v])] == [80.0, 14.0]
    assert len(asked) == 1
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.function(lambda x: f(x))(x)
        g = tape.gradient(y, x)
    assert float(outer.gradient(g, x)) == 20.0
    b = tf.function(lambda x: broken(x))
    assert float(b(tf.constant(2.0))) == 2.0
    with tf.GradientTape() as tape:
        y = b(x)
    with pytest.raises(KeyError, match="mine"):
        tape.gradient(y, x)


def test_a_custom_gradient_that_gives_slices_and_none():
    @tf.custom_gradient
    def rows(table, at, unused):
        def pull(g):
            return tf.IndexedSlices(g * 2.0, at, [4, 2]), None, None

        return tf.gather(table, at), pull

    table = tf.Variable(tf.ones([4, 2]))
    f = tf.function(lambda at, s: rows(table, at, s))
    with tf.GradientTape() as tape:
        s = tf.constant(1.0)
        tape.watch(s)
        y = f(tf.constant([1, 1]), s)
    made, none = tape.gradient(y, [table, s])
    np.testing.assert_array_equal(tf.convert_to_tensor(made)[:, 0], [0.0, 4.0, 0.0, 0.0])
    assert none is None
