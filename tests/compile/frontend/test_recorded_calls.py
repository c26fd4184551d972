"""How tapes record a traced function: programs and records, state, several tapes, questions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gtape as tf
from gtape.autodiff import explain
from gtape.compile.gradient import partition
from tests.compile.programs_under_tapes import (
    TABLE,
    cross_entropy,
    mlp,
    numbers,
    same,
)

# ---------------------------------------------------------------------- how it is done


@pytest.fixture
def runs(monkeypatch):
    """Of each program that ran how many tensors it read."""
    seen: list[int] = []
    entry = partition._entry

    def counted(traced):
        run = entry(traced)

        def call(*tensors):
            seen.append(len(tensors))
            return run(*tensors)

        return call

    monkeypatch.setattr(partition, "_entry", counted)
    return seen


def test_a_call_and_its_gradient_are_two_programs_and_one_record(runs):
    f, args, sources = mlp()
    f = tf.function(f)
    for _ in range(3):
        runs.clear()
        with tf.GradientTape() as tape:
            y = f(*args)
        assert len(tape._records) == 1
        tape.gradient(y, sources)
        assert len(runs) == 2


def test_a_persistent_tape_runs_the_forward_program_once(runs):
    f, args, sources = cross_entropy()
    with tf.GradientTape(persistent=True) as tape:
        made = tf.function(f)(*args)
    for target in (made["loss"], made["loss"], made["logits"], [made["loss"], made["logits"]]):
        tape.gradient(target, sources)
    assert len(runs) == 5
    assert tape.gradient(made["hits"], sources) == [None, None]
    assert len(runs) == 5


def test_what_is_costly_is_saved_and_nothing_else():
    x, w = tf.Variable(numbers(64, 32)), tf.Variable(numbers(32, 16))

    @tf.function
    def f():
        h = tf.tanh(x @ w)
        return tf.reduce_sum(tf.reshape(tf.nn.relu(tf.square(h) * 3.0 - 1.0), [-1]) ** 2)

    with tf.GradientTape() as tape:
        f()
    assert tape.memory().total == x.numpy().nbytes + w.numpy().nbytes + 64 * 16 * 4
    assert [row.op for row in tape.memory()] == ["f"]


def test_recomputed_blocks_save_nothing_of_the_inside():
    w = tf.Variable(numbers(8, 512))

    @tf.recompute_grad
    def block(x):
        return tf.reduce_sum(tf.exp(tf.tanh(x @ w)), 1, keepdims=True) * x

    f = tf.function(lambda x: block(block(x)))
    x = tf.constant(numbers(64, 8))
    with tf.GradientTape() as tape:
        tape.watch(x)
        f(x)
    assert tape.memory().total <= w.numpy().nbytes + 6 * x.numpy().nbytes


def test_values_are_those_of_the_call():
    v = tf.Variable(2.0)
    f = tf.function(lambda x: x * v * v)
    bump = tf.function(lambda: v.assign_add(10.0))
    x = tf.constant(3.0)
    bump()
    v.assign(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    bump()
    assert [float(g) for g in tape.gradient(y, [x, v])] == [4.0, 12.0]
    v.assign(5.0)
    assert [float(g) for g in tape.gradient(y, [x, v])] == [4.0, 12.0]


def test_state_is_written_once_whatever_is_asked():
    count = tf.Variable(0)
    total = tf.Variable(0.0, trainable=False)

    @tf.function
    def f(x):
        count.assign_add(1)
        total.assign_add(tf.reduce_sum(x))
        tf.debugging.assert_greater(x, 0.0)
        return x * total

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
    tape.gradient(y, x)
    np.testing.assert_allclose(g, [3.0, 3.0])  # no gradient flows through an assignment
    assert outer.gradient(g, x) is None
    assert (int(count), float(total)) == (1, 3.0)
    with pytest.raises(tf.errors.InvalidArgumentError), tf.GradientTape() as tape:
        tape.watch(x)
        f(-x)
    assert (int(count), float(total)) == (1, 3.0)


def test_dropout_pulls_back_through_the_mask_that_it_drew():
    f = tf.function(lambda x: tf.nn.dropout(x, 0.5))
    x = tf.constant(np.full((64,), 3.0, np.float32))
    drawn = []
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        drawn.append(y.numpy())
        for _ in range(2):
            np.testing.assert_allclose(tape.gradient(y, x), y.numpy() / 3.0)
    assert set(drawn[0]) == {0.0, 6.0}
    assert (drawn[0] != drawn[1]).any()


# ---------------------------------------------------------------------- several tapes


def test_every_tape_records_what_it_knows():
    f = tf.function(lambda x, y: (x * y, y * 3.0))
    x, y = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as a, tf.GradientTape() as b, tf.GradientTape() as c:
        a.watch([x, y])
        b.watch(x)
        made = f(x, y)
        after = made[1] * 2.0
    assert [float(g) for g in a.gradient(made, [x, y])] == [5.0, 5.0]
    assert [float(g) for g in b.gradient([*made, after], [x])] == [5.0]
    assert len(b._records) == len(c._records) == 0
    assert float(a.gradient(after, y)) == 6.0
    assert a.gradient(after, x) is None


def test_a_tape_that_is_asked_inside_its_block():
    f = tf.function(lambda x: x ** 3)
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        with pytest.warns(tf.errors.TapeUseWarning):
            g = tape.gradient(y, x)
    assert (float(g), float(tape.gradient(g, x))) == (12.0, 12.0)


def test_an_argument_given_twice():
    f = tf.function(lambda x, y: tf.sin(x) * y)
    x = tf.constant(0.3)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = f(x, x)
        g = tape.gradient(z, x)
    s, c = np.sin(0.3), np.cos(0.3)
    np.testing.assert_allclose([g, outer.gradient(g, x)], [c * 0.3 + s, 2 * c - s * 0.3], 1e-6)


def test_sparse_cotangents_and_chains_of_functions():
    table = tf.constant(TABLE)
    double, last = tf.function(lambda t: t * 2.0), tf.function(lambda r: tf.reduce_sum(r ** 2))
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = last(tf.gather(double(table), [1, 1]))
    want = np.zeros_like(TABLE)
    want[1] = 16.0 * TABLE[1]
    np.testing.assert_allclose(tape.gradient(y, table), want, rtol=1e-5)


# ---------------------------------------------------------------------- questions and refusals


def test_nothing_is_watched(runs):
    v, count = (tf.Variable(n, trainable=False) for n in (2.0, 1))
    f = tf.function(lambda x: (x * v, count.assign_add(1)))
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y, _ = f(x)
        z = f(y)[0]
    assert tape.gradient(z, [x, v]) == [None, None]
    assert (float(z), int(count), tape.watched_variables(), runs) == (8.0, 3, (), [])
    assert tape.explain(z, x, show=False).cause == explain.NOT_WATCHED
    assert tape.explain(z, v, show=False).cause == explain.NOT_TRAINABLE


def test_explanations_name_the_function():
    def named(x):
        return tf.stop_gradient(x) * 2.0, x * 3.0, x * 0.0

    f = tf.function(named)
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        cut, through, zero = f(x)
    assert tape.gradient(cut, x) is None
    found = tape.explain(cut, x, show=False)
    assert found.cause == explain.NON_DIFFERENTIABLE_OP
    assert "named is not differentiable" in found.text
    assert found.site.file == __file__
    found = tape.explain(through, x, show=False)
    assert (found.cause, [s.op for s in found.steps]) == (explain.CONNECTED, ["named"])
    assert tape.explain(zero, x, show=False).cause == explain.CONNECTED_BUT_ZERO


def test_an_op_without_gradient_is_refused_in_the_call():
    image = tf.ones((1, 1, 3))
    f = tf.function(lambda im, x: tf.image.adjust_contrast(im, 0.5) * x)
    x = tf.constant(2.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(image)
            with pytest.raises(LookupError, match="stop_gradient"):
                f(image, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(image, x)
    assert float(tape.gradient(y, x)) == 3.0


def test_a_gradient_that_fails_fails_where_it_is_asked_for():
    @tf.custom_gradient
    def broken(x):
        def pull(g):
            raise KeyError("mine")

        return x * 1.0, pull

    f, x = tf.function(lambda x: broken(x) + 1.0), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(y) == 2.0
    with pytest.raises(KeyError, match="mine"):
        tape.gradient(y, x)


def test_integer_arguments_and_results():
    f = tf.function(lambda n, x: (n + 1, x * tf.cast(n, tf.float32), tf.cast(x, tf.int32)))
    n, x = tf.constant(3), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        made = f(n, x)
    assert [int(v) for v in made] == [4, 6, 2]
    assert float(tape.gradient(made[1], x)) == 3.0
    with pytest.warns(tf.errors.NonFloatWarning):
        assert tape.gradient(made[2], x) is None


def test_threads_that_make_the_programs_at_once():
    f, (x, y), sources = mlp()
    with tf.GradientTape() as tape:
        loss = f(x, y)
    want = tape.gradient(loss, sources)
    traced, gate = tf.function(f), threading.Barrier(4)

    def work(_):
        gate.wait()
        made = []
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = traced(x, y)
            made.append(tape.gradient(loss, sources))
        return made

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            for gradients in found:
                same(gradients, want)
