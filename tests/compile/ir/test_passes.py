"""Passes: each keeps the module sound and its meaning; what may fail comes before any write."""

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import compile_closed
from gtape.compile.ir.lower import lower
from gtape.compile.ir.nodes import Hosted, LibraryCall, Reduce
from gtape.compile.ir.sparse_updates import sparse_reads, sparse_updates
from gtape.compile.schedule.plan import MemoryPlan
from gtape.core.errors import InternalError
from tests.compile.agreement import agree, trace_of

pytestmark = pytest.mark.native


def drawn(*shape):
    return np.random.default_rng(shape).normal(size=shape)


def planned(fn, *args):
    module = sparse_updates(sparse_reads(lower(trace_of(fn, *args))))
    module.check()
    return MemoryPlan(module)


# ---------------------------------------------------------------- kernels


def test_columns_of_moved_axes():
    """A sum over the outer axes of a kernel whose other axes its result has in another order."""
    def fn(x):
        made = []
        for how in (tf.reduce_sum, tf.reduce_max, tf.reduce_prod):
            for axes in ((2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)):
                y = tf.tanh(x) * float(len(made) + 1)
                moved = tf.transpose(y, axes)
                made += [y, how(moved, axes.index(0)), how(moved, axes.index(2)), how(moved)]
        return made

    agree(fn, drawn(3, 4, 5), tolerance=1e-9)


def test_columns_of_moved_axes_are_in_one_kernel():
    plan = planned(lambda x: [y := tf.tanh(x), tf.reduce_sum(tf.transpose(y, (2, 1, 0)), 2)],
                   drawn(3, 4, 5))
    (group,) = plan.groups
    (node,) = (n for n in group.nodes if isinstance(n, Reduce))
    assert group.kind(node) == "column" and group.place[node.outputs[0].number] == (2, 1)


def test_arrays_without_elements():
    def fn(x):
        turned = tf.transpose(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (tf.reduce_sum(tf.nn.softmax(tf.concat([x, x * 2.0], 0)) ** 2)
                 + tf.reduce_sum(tf.sin(x)[:, ::2]) + tf.reduce_sum(tf.transpose(x) @ x))
        return [turned, tf.reshape(turned, (0,)), tf.reshape(turned[1:], (0, 2, 1)),
                tf.reshape(x[:, ::-1], (3, 0)), x + turned[0][:, None], turned @ x, x @ turned,
                tf.reduce_sum(x, 0), tf.concat([x, tf.ones((2, 3), x.dtype)], 0),
                tf.pad(x, [[1, 1], [0, 0]]), tf.broadcast_to(x, (2, 0, 3)), tf.cumsum(x[::-1], 1),
                tf.reduce_sum(tf.broadcast_to(x[:, :1], (0, 5)), 1), tape.gradient(y, x)]

    agree(fn, drawn(0, 3))


# ---------------------------------------------------------------- rows of tables
_TABLE, _ROWS = (400, 6), np.array([3, 0, 3, 399, 7], "i4")


def _scaled_rows(table, scale, bias, rows):
    """Rows of a formula of formulas, with one number and one row of others in it."""
    y = tf.sqrt(tf.abs(table) * scale + bias)
    return tf.gather(y * 2.0, rows) * tf.gather(y, rows)


def _rows_and_their_sum(table, scale, bias, rows):
    y = tf.exp(table * scale)
    return tf.gather(y, rows), tf.reduce_sum(y), tf.reduce_any(tf.equal(y, 0.0), 1)


@pytest.mark.parametrize("fn", [_scaled_rows, _rows_and_their_sum])
def test_rows_of_a_formula_are_the_formula_of_rows(fn):
    args = drawn(*_TABLE), drawn(), drawn(6), _ROWS
    plan = planned(fn, *args)
    assert not any(plan.places[n].role == "arena" and v.shape == _TABLE for n, v in (
        (o.number, o) for g in plan.groups for node in g.nodes for o in node.outputs)
        if n in plan.stored)
    agree(fn, *args, tolerance=1e-9)


@pytest.mark.parametrize("fn", [
    lambda table, rows: [y := tf.exp(table), tf.gather(y, rows)],
    lambda table, rows: tf.gather(tf.exp(table), rows) @ tf.transpose(tf.exp(table)),
    lambda table, rows: tf.gather(tf.exp(table), tf.tile(rows, [200])),
    lambda table, rows: tf.gather(tf.exp(table), rows[:, None] % 5, axis=1),
    lambda table, rows: tf.gather(tf.exp(table)[::-1], rows),
    lambda table, rows: tf.gather(tf.exp(tf.transpose(table)), rows % 6),
    lambda table, rows: tf.gather(table + tf.reduce_sum(table, 1, keepdims=True), rows)])
def test_rows_of_what_is_needed_as_a_whole_or_lies_elsewhere(fn):
    agree(fn, drawn(*_TABLE), _ROWS, tolerance=1e-9)


def test_rows_of_a_table_that_is_written_are_the_new_ones():
    v = tf.Variable(drawn(*_TABLE))

    def fn(x, rows):
        v.scatter_add(tf.IndexedSlices(x, rows))
        before = tf.gather(tf.exp(v * 2.0), rows)
        v.assign(v * 0.5)
        return before, tf.gather(tf.exp(v), rows)

    agree(fn, drawn(5, 6), _ROWS, variables=[v], calls=2, tolerance=1e-9)


@pytest.mark.native(zones=False)
def test_rows_are_added_where_the_table_lies_that_nothing_reads_any_more():
    def fn(table, x, rows):
        y = tf.exp(table)
        for turn in range(3):
            y = tf.tensor_scatter_nd_max(y, rows[:, None], x + float(turn))
        return tf.reduce_sum(y, 0), x

    args = drawn(*_TABLE), drawn(5, 6), _ROWS
    assert planned(fn, *args).arena < 1.3 * 8 * 400 * 6
    agree(fn, *args, tolerance=1e-9)


def test_a_table_that_is_read_again_is_not_written_over():
    def fn(table, x, rows):
        y = tf.exp(table)
        z = tf.tensor_scatter_nd_max(y, rows[:, None], x)
        w = tf.tensor_scatter_nd_max(z, rows[:, None], tf.gather(z, rows[::-1]))
        return tf.reduce_sum(z, 0), tf.reduce_max(y, 0), tf.reduce_sum(w * y, 0)

    agree(fn, drawn(*_TABLE), drawn(5, 6), _ROWS, tolerance=1e-9)


# ---------------------------------------------------------------- order


def test_steps_in_python_keep_their_order():
    seen = []

    @tf.function
    def fn(x, y):
        wave = tf.exp(x)
        tf.py_function(lambda _: seen.append("first"), [wave], [])
        joined = wave * tf.reduce_sum(y, 0)[0]
        tf.py_function(lambda: seen.append("second"), [], [])
        return joined

    fn(tf.ones(5), tf.ones((40, 3)))
    assert seen == ["first", "second"]


def test_what_may_fail_comes_before_any_cell_is_written():
    count, table = tf.Variable(0), tf.Variable(drawn(6, 2))

    def fn(i):
        first = i + count
        count.assign_add(1)
        second = i + count
        table.assign_add(tf.ones_like(table))
        tf.debugging.assert_non_negative(second)
        return tf.gather(table, first) + tf.gather(table, second)

    plan = planned(fn, np.array([1, 2], "i4"))
    ends = [i for i, g in enumerate(plan.groups) for n in g.nodes
            if isinstance(n, Hosted) or (isinstance(n, LibraryCall) and n.checks)]
    written = [i for i, g in enumerate(plan.groups) for n in g.nodes for o in n.outputs
               if o.number in plan.places and plan.places[o.number].role == "state"]
    copied = {at for at, _ in plan.copies}
    assert ends and all(i > max(ends) for i in written)
    assert len(written) + len(copied) == 2 and copied
    call = tf.function(fn)
    call(tf.constant([1, 2]))
    before = [count.numpy(), table.numpy()]
    for wrong in ([1, 22], [1, -9]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(tf.constant(wrong))
        assert count.numpy() == before[0]
        np.testing.assert_array_equal(table, before[1])
    np.testing.assert_array_equal(call(tf.constant([1, 2])),
                                  (before[1] + 1)[[2, 3]] + (before[1] + 1)[[3, 4]])


def test_python_code_finds_variables_as_they_were_before_the_call():
    seen, v = [], tf.Variable(0.0)

    @tf.function
    def fn():
        v.assign_add(1.0)
        tf.py_function(lambda: seen.append(float(v)), [], [])

    for _ in range(4):
        fn()
    assert seen == [0.0, 1.0, 2.0, 3.0]
    assert float(v) == 4.0


# ---------------------------------------------------------------- sharing


def test_draws_and_python_code_are_not_shared_and_formulas_are():
    calls = []

    def fn(x):
        first, second = tf.random.uniform((50,)), tf.random.uniform((50,))
        host = [tf.py_function(lambda a: (calls.append(1), a + 1.0)[1], [x],
                               tf.TensorSpec((50,), tf.float32)) for _ in range(2)]
        return first, second, *host, tf.sin(x) * 2.0, tf.sin(x) * 2.0

    x = tf.constant(np.arange(50.0, dtype="f"))
    a, b, _, _, c, d = compile_closed(trace_of(fn, x)).entry(x)
    assert len(calls) == 2 and not np.array_equal(a, b)
    np.testing.assert_array_equal(c, d)
    module = lower(trace_of(lambda x: (tf.sin(x) * 2.0, tf.sin(x) * 2.0), x))
    assert module.results[0] is module.results[1]


@pytest.mark.native(zones=False)
def test_recomputed_blocks_take_less_memory():
    weights = [tf.Variable(drawn(64, 64) * 0.2) for _ in range(8)]

    def block(w, x):
        return tf.tanh(tf.sin(tf.tanh(x @ w)) @ w)

    def gradients(x, wrap):
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = wrap(lambda x, w=w: block(w, x))(y)
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, weights)

    x = drawn(256, 64)
    plain = compile_closed(trace_of(lambda x: gradients(x, lambda f: f), x))
    lean = compile_closed(trace_of(lambda x: gradients(x, tf.recompute_grad), x))
    assert lean.plan.arena < 0.7 * plain.plan.arena
    for a, b in zip(tf.nest.flatten(plain.entry(tf.constant(x))),
                    tf.nest.flatten(lean.entry(tf.constant(x)))):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9)


def test_a_module_that_contradicts_itself_is_found():
    module = lower(trace_of(lambda x: tf.reduce_sum(tf.exp(x), 0), drawn(3, 4)))
    module.check()
    with pytest.raises(InternalError, match="before it is made"):
        module._replace(nodes=module.nodes[::-1]).check()
    module.results[0].shape = (5,)
    with pytest.raises(InternalError, match="cannot make"):
        module.check()
