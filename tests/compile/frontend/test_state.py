"""Variables of compiled functions: read, assigned, copied and kept by eager code between calls."""

import copy
import gc
import pickle
import tracemalloc
import weakref

import numpy as np
import pytest

import gtape as tf

pytestmark = pytest.mark.native


def counting(v):
    @tf.function
    def step():
        v.assign_add(tf.ones_like(v))
        return v.read_value()

    return step


def test_tensors_that_were_read_keep_their_numbers():
    v = tf.Variable(tf.zeros(5))
    step, other = counting(v), counting(v)
    kept = [(i, step() if i % 2 else other(), v.read_value(), v.numpy()) for i in range(1, 101)]
    for i, *values in kept:
        for value in values:
            np.testing.assert_array_equal(value, np.full(5, float(i)))


def test_eager_code_between_the_calls():
    v = tf.Variable(tf.zeros(5))
    step = counting(v)

    @tf.function
    def doubled(x):
        v.assign(v * x)
        return tf.reduce_sum(v)

    want = 0.0
    for _ in range(5):
        step()
        total = doubled(tf.constant(2.0))
        want = (want + 1) * 2
        assert float(total) == 5 * want
        mine = v.numpy()
        mine[:] = -7.0
        v.assign_sub(tf.ones(5))
        want -= 1
        np.testing.assert_array_equal(v, np.full(5, want))
    del step, doubled
    gc.collect()
    v.assign_add(tf.ones(5))
    np.testing.assert_array_equal(v, np.full(5, want + 1))


def test_copies_are_variables_of_their_own():
    v = tf.Variable(tf.zeros(5))
    step = counting(v)
    step()
    made = [copy.deepcopy(v), pickle.loads(pickle.dumps(v))]
    step()
    made[0].assign_add(tf.ones(5))
    assert [float(m[0]) for m in (*made, v)] == [2.0, 1.0, 2.0]


@pytest.mark.parametrize("make", [
    lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9), lambda: tf.keras.optimizers.Adam(0.01),
    lambda: tf.keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True)])
def test_optimizers_by_turns(make):
    """Eager and compiled steps on one state, with slots and weights assigned in between."""
    def trained(modes):
        rng = np.random.default_rng(1)
        weights = [tf.Variable(rng.normal(size=s)) for s in ((6, 4), (4,), (4, 3))]
        data, optimizer, losses = rng.normal(size=(12, 16, 6)), make(), []

        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.tanh(x @ weights[0] + weights[1]) @ weights[2] - 1) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        compiled = tf.function(step)
        for i, x in enumerate(data):
            run = compiled if modes[i % len(modes)] else step
            losses.append(float(run(tf.constant(x))))
            if i == 6:
                weights[1].assign(weights[1] * 0.5)
                for slot in optimizer.variables:
                    if slot.shape == (6, 4):
                        slot.assign(slot * 0.5)
        return [losses, *(np.asarray(v) for v in (*weights, *optimizer.variables))]

    want = trained([False])
    for modes in ([True], [True, False, True]):
        for a, b in zip(trained(modes), want):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)


def test_programs_are_freed_though_their_variables_live_on():
    v = tf.Variable(tf.zeros(5))
    programs = []
    for _ in range(3):
        step = counting(v)
        step()
        programs += [weakref.ref(e.program) for t in step._cache.traces
                     for e in t._executables.values()]
        del step
        gc.collect()
    assert len(programs) == 3 and all(p() is None for p in programs)
    np.testing.assert_array_equal(v, np.full(5, 3.0))


@pytest.mark.native(zones=False)
def test_calls_leave_nothing_behind():
    v = tf.Variable(tf.zeros(5))
    step = counting(v)
    for _ in range(50):
        step(), v.numpy()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2000):
            step()
            v.numpy()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
