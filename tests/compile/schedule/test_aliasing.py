"""What lies in the same memory: states and their new values, arguments, results, views."""

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import compile_closed
from tests.compile.agreement import agree, trace_of

pytestmark = pytest.mark.native(zones=False)  # values share places in memory


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


# ---------------------------------------------------------------- new values in place of old ones


def _read_after_writing(b, v, w, u):
    old = v.read_value()
    v.assign(b * 2.0)
    return old + b


def _swapped(b, v, w, u):
    old = v.read_value()
    v.assign(w * b)
    w.assign(old * b)
    return old


def _turned_round(b, v, w, u):
    old = [v.read_value(), w.read_value(), u.read_value()]
    v.assign(old[1] + b)
    w.assign(old[2] + b)
    u.assign(old[0] + b)
    return old


def _exchanged_without_a_formula(b, v, w, u):
    old = v.read_value()
    v.assign(w)
    w.assign(old)
    return v.read_value(), w.read_value()


def _one_value_for_three(b, v, w, u):
    made = b * 2.0
    for variable in (v, w, u):
        variable.assign(made)
    return made, made, u.read_value()


def _written_twice(b, v, w, u):
    v.assign_add(b)
    first = v * 2.0
    v.assign_add(first)
    second = v + 1.0
    v.assign(tf.sin(second))
    return first, second, v.read_value()


def _centred(b, v, w, u):
    v.assign(v - tf.reduce_mean(v))
    w.assign(tf.nn.softmax(w) * b)
    return v + w


_FORMULAS = [_read_after_writing, _swapped, _turned_round, _exchanged_without_a_formula,
             _one_value_for_three, _written_twice]


@pytest.mark.parametrize(("length", "steps"), [(5, _FORMULAS), (3000, _FORMULAS),
                                               (3000, [*_FORMULAS, _centred])])
def test_new_values_of_variables_do_not_change_what_the_same_kernel_reads(length, steps):
    b = drawn(length)
    states = [[tf.Variable(drawn(length, seed=i + j)) for j in range(3)] for i in range(len(steps))]

    def every(b):
        return [step(b, *state) for step, state in zip(steps, states)]

    agree(every, b, variables=[v for state in states for v in state], calls=3, tolerance=1e-12)


def test_matrices_turned_and_reversed_in_place():
    states = [tf.Variable(drawn(4, 4, seed=i)) for i in range(5)]

    def every(b):
        first, second, third, fourth, row = states
        first.assign(tf.transpose(first))
        second.assign(tf.transpose(second) + b)
        third.assign(third[::-1] + third)
        fourth.assign(fourth - tf.reduce_mean(fourth, 0))
        row.assign(row[0] * tf.ones_like(row) + first)
        return row[:, 1]

    agree(every, drawn(4, 4), variables=states, calls=2, tolerance=1e-12)


# ---------------------------------------------------------------- sparse updates


def test_rows_are_added_to_dense_values_only():
    table = tf.Variable(drawn(4, 6))
    rows = np.array([1, 3, 3, 5], "i4")

    def turned(x):
        with tf.GradientTape() as tape:
            base = tf.transpose(table)
            tape.watch(base)
            loss = tf.reduce_sum(tf.gather(base, rows) ** 2)
        slope = tf.convert_to_tensor(tape.gradient(loss, base))
        return base - 0.1 * slope, loss + x

    agree(turned, np.float64(1.0), variables=[table])


def test_rows_of_a_variable_are_not_added_to_itself_while_they_are_read():
    table, places = tf.Variable(drawn(6, 4)), np.array([1, 3, 3, 5, 0, 2], "i4")

    def step(x):
        table.assign(table + tf.math.unsorted_segment_sum(table, places, 6))
        return x

    agree(step, 1.0, variables=[table], calls=2)


def test_whole_numbers_scale_rows_exactly():
    table = tf.Variable(np.arange(24).reshape(6, 4) << 55)
    places = np.array([1, 3, 3, 5, 0, 2], "i4")

    def step(x):
        table.assign(table - tf.math.unsorted_segment_sum(x, places, 6) * ((1 << 53) + 1))

    agree(step, np.arange(24).reshape(6, 4) + 7, variables=[table], calls=2)


# ---------------------------------------------------------------- arrays from elsewhere


def test_arguments_in_any_layout():
    whole = np.arange(12.0, dtype="f").reshape(3, 4)
    apart = np.arange(48.0, dtype="f").reshape(6, 8)
    shifted = np.frombuffer(b"x" + whole.tobytes(), "f", offset=1).reshape(3, 4)
    fixed = whole.copy()
    fixed.flags.writeable = False

    @tf.function
    def f(x):
        return x * 2.0 + tf.reduce_sum(x, 0), tf.identity(x), x, tf.transpose(x)

    given = [np.asfortranarray(whole), shifted, whole[::-1], apart[::2, ::2], fixed,
             whole.astype(">f4"), tf.transpose(tf.constant(whole.reshape(4, 3))),
             tf.broadcast_to(tf.constant(whole[0]), (3, 4)), tf.constant(apart)[::-2, 1:5]]
    for x in given:
        n = np.array(x, "f")
        for got, want in zip(f(tf.constant(x)), (n * 2.0 + n.sum(0), n, n, n.T)):
            np.testing.assert_array_equal(got, want)
    assert f.experimental_get_tracing_count() == 1


def test_variables_made_of_views():
    whole = tf.constant(np.arange(12.0, dtype="f").reshape(3, 4))
    assigned = tf.Variable(tf.zeros((4, 3)))
    assigned.assign(tf.transpose(whole))
    variables = [assigned, tf.Variable(tf.transpose(whole)), tf.Variable(whole[::-1]),
                 tf.Variable(tf.broadcast_to(whole[0], (3, 4)))]
    steps = [np.arange(12.0, dtype="f").reshape(v.shape) for v in variables]
    want = [v.numpy() + 2 * step for v, step in zip(variables, steps)]

    @tf.function
    def f():
        for v, step in zip(variables, steps):
            v.assign_add(step)

    f()
    f()
    for v, n in zip(variables, want):
        np.testing.assert_array_equal(v, n)


def test_results_lie_alone():
    v = tf.Variable(drawn(3, 4))
    x = tf.constant(drawn(3, 4))

    def fn(x):
        v.assign(x * v)
        y = x + 1.0
        return x, x, v, tf.reshape(y, (4, 3)), y, tf.reshape(y, (12,)), v.read_value()

    program = compile_closed(trace_of(fn, x))
    first, second = (program.entry(x) for _ in range(2))
    arrays = [t._a for t in (*first, *second, x)] + [v._resource_()._shared.array]
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[:i] if a is not b)
    np.testing.assert_array_equal(first[3], np.reshape(first[4], (4, 3)))
    np.testing.assert_array_equal(first[5], np.reshape(first[4], -1))


def test_reshaped_results_of_copies_that_are_results():
    def fn(x):
        turned = tf.transpose(tf.tanh(x))
        once, again = tf.reshape(turned, (2, 6)), tf.reshape(turned, (12,))
        return once, turned, again, tf.transpose(x), tf.reshape(tf.transpose(x), (12,)), once

    agree(fn, drawn(3, 4), tolerance=1e-12)
    agree(lambda x: fn(x)[::-1], drawn(3, 4), tolerance=1e-12)
