"""What stays alive because of a tape, and for how long. The collector is off: no cycles allowed."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import gtape as tf


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_without_a_tape_nothing_is_kept() -> None:
    x = tf.constant(np.ones(8, np.float32))
    y = tf.exp(x)
    kept = weakref.ref(y)
    z = y * 2.0
    del y
    assert kept() is None
    assert z is not None


def test_a_tape_keeps_what_its_rules_read() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as tape:
        a = x * 2.0
        b = tf.exp(a)
        c = b + 1.0
        d = tf.reduce_sum(c)
    alive = [weakref.ref(t) for t in (a, b, c)]
    del a, b, c
    # The rule of exp reads its own result; those of * 2 and + 1 read nothing.
    assert [r() is not None for r in alive] == [False, True, False]
    np.testing.assert_allclose(tape.gradient(d, x), np.full(8, 2 * np.exp(2.0)), rtol=1e-6)


def test_records_are_dropped_with_a_gradient_of_a_plain_tape() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as tape:
        b = tf.exp(x)
        y = tf.reduce_sum(b)
    kept = weakref.ref(b)
    del b
    assert kept() is not None
    tape.gradient(y, x)
    assert kept() is None


def test_records_of_a_persistent_tape_stay_until_it_goes() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape(persistent=True) as tape:
        b = tf.exp(x)
        y = tf.reduce_sum(b)
    kept = weakref.ref(b)
    del b
    tape.gradient(y, x)
    assert kept() is not None
    del tape
    assert kept() is None


def test_a_tape_that_is_never_asked_dies_with_what_it_holds() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as tape:
        b = tf.exp(x)
        b * 2.0
    kept, itself = weakref.ref(b), weakref.ref(tape)
    del b, tape
    assert kept() is None
    assert itself() is None


def test_variables_and_sources_are_not_kept_by_their_gradients() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x)
    g = tape.gradient(y, x)
    kept = weakref.ref(x)
    del x, tape, y
    assert kept() is None
    assert g is not None


def test_reset_frees() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as tape:
        b = tf.exp(x)
        kept = weakref.ref(b)
        del b
        assert kept() is not None
        tape.reset()
        assert kept() is None


def test_second_order_leaves_nothing_behind() -> None:
    x = tf.Variable(np.ones(8, np.float32))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            b = tf.tanh(x)
            y = tf.reduce_sum(b)
        g = inner.gradient(y, x)
    outer.gradient(g, x)
    alive = [weakref.ref(t) for t in (b, y, g)]
    del b, y, g, outer, inner
    assert [r() for r in alive] == [None] * 3


def test_a_training_loop_does_not_grow() -> None:
    w = tf.Variable(np.full((64, 64), 0.01, np.float32))
    x = tf.constant(np.ones((64, 64), np.float32))

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
        w.assign_sub(0.1 * tape.gradient(loss, w))

    tracemalloc.start()
    for _ in range(5):
        step()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        step()
    cycles = gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert cycles == 0, "the steps made reference cycles"
    assert grown < 10_000, f"{grown} bytes more after 50 steps"


def test_memory_is_freed_as_the_walk_goes_back() -> None:
    count, size = 40, 100_000
    x = tf.Variable(np.full(size, 0.5))
    tracemalloc.start()
    with tf.GradientTape() as tape:
        y = x
        for _ in range(count):
            y = tf.tanh(y)
    held = tracemalloc.get_traced_memory()[0]
    assert held >= count * size * 8
    tracemalloc.reset_peak()
    g = tape.gradient(y, x)
    peak = tracemalloc.get_traced_memory()[1]
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert g.shape == (size,)
    assert peak < held + 6 * size * 8, "the walk needs a few arrays, not one for each op"
    assert left < 6 * size * 8


def test_the_bill_counts_each_array_once() -> None:
    x = tf.Variable(np.ones(1000, np.float64))
    with tf.GradientTape() as tape:
        y = tf.exp(x)
        z = y * y + tf.reshape(y, [10, 100])[0, 0]
    bill = tape.memory()
    assert bill.total == 8000
    assert bill.rows[0].op == "exp"
    assert bill.rows[0].site.file == __file__
    assert "exp" in str(bill) and "8,000 B" in str(bill)
    assert bill.by_line()[0][1] == 8000
    assert len(bill) == len(tape._records) == len(list(bill))
    assert z is not None


def test_a_chain_of_a_hundred_thousand_ops_needs_no_recursion() -> None:
    x = tf.Variable(1.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(100_000):
            y = y * 1.00001
    assert float(tape.gradient(y, x)) == pytest.approx(1.00001 ** 100_000)
    del y


def test_a_long_chain_at_second_order() -> None:
    x = tf.Variable(1.0, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x
            for _ in range(3_000):
                y = tf.sin(y)
        g = inner.gradient(y, x)
    assert np.isfinite(float(outer.gradient(g, x)))
