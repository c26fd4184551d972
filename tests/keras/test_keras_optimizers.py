"""Optimizers: exact steps, settings, state, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gtape as tf

optimizers = tf.keras.optimizers
schedules = optimizers.schedules


def steps(optimizer, gradients=(0.5, -3.0), start=(1.0, 2.0), count=3):
    v = tf.Variable(list(start))
    for _ in range(count):
        optimizer.apply_gradients([(tf.constant(list(gradients)), v)])
    return v.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adam_bit_for_bit(dtype):
    real = np.dtype(dtype).type
    v = tf.Variable(np.array([1.0, 2.0], dtype))
    g = np.array([0.5, -3.0], dtype)
    optimizer = optimizers.Adam(0.125)
    b1, b2 = real(np.float32(0.9)), real(np.float32(0.999))
    m = s = np.zeros(2, dtype)
    p = np.array([1.0, 2.0], dtype)
    for t in range(1, 6):
        optimizer.apply_gradients([(tf.constant(g), v)])
        m = m + (g - m) * real(1 - 0.9)
        s = s + (g * g - s) * real(1 - 0.999)
        alpha = real(0.125) * np.sqrt(real(1) - b2 ** real(t)) / (real(1) - b1 ** real(t))
        p = p - m * alpha / (np.sqrt(s) + real(1e-7))
        np.testing.assert_array_equal(v.numpy(), p)


@pytest.mark.parametrize(("optimizer", "wanted"), [
    (lambda: optimizers.SGD(0.1), [0.85, 2.9]),
    (lambda: optimizers.SGD(0.1, momentum=0.9), [0.7195, 3.683]),
    (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True), [0.59755, 4.4147]),
    (lambda: optimizers.SGD(0.1, weight_decay=0.5), [0.71475, 2.5705]),
    (lambda: optimizers.Lion(0.1), [0.7, 2.3]),
    (lambda: optimizers.Adamax(0.1), [0.7, 2.3]),
    (lambda: optimizers.Nadam(0.1), [0.74523, 2.25477]),
    (lambda: optimizers.AdamW(0.1), [0.698924, 2.297479]),
    (lambda: optimizers.Adagrad(0.1), [0.796702, 2.227593]),
    (lambda: optimizers.RMSprop(0.1), [0.262262, 2.737738]),
    (lambda: optimizers.Adadelta(0.1), [0.999571, 2.000429]),
    (lambda: optimizers.Ftrl(0.1), [0.26218, 2.017936]),
])
def test_three_steps(optimizer, wanted):
    np.testing.assert_allclose(steps(optimizer()), wanted, rtol=2e-5)


@pytest.mark.parametrize("name", ["Adam", "Lamb", "Adafactor", "Muon", "ScheduleFreeAdamW",
                                  "Adagrad", "RMSprop", "Nadam", "Ftrl", "Lion", "SGD"])
def test_a_bowl_gets_lower(name):
    optimizer = getattr(optimizers, name)(learning_rate=0.05)
    variables = [tf.Variable(tf.ones((3, 4))), tf.Variable([2.0, -1.0]), tf.Variable(3.0)]

    def loss():
        return tf.add_n([tf.reduce_sum(v * v) for v in variables])

    before = float(loss())
    for _ in range(20):
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
    assert float(loss()) < before


def test_tensors_read_before_do_not_change():
    variables = [tf.Variable([1.0, 2.0]), tf.Variable([[3.0]]), tf.Variable(np.ones(70000, "f"))]
    optimizer = optimizers.Adam(0.1)
    seen, copies = [], []
    for _ in range(5):
        seen.append([v.read_value() for v in variables])
        copies.append([v.numpy() for v in variables])
        optimizer.apply([tf.ones_like(v) for v in variables], variables)
    for old, copied in zip(seen, copies):
        for tensor, value in zip(old, copied):
            np.testing.assert_array_equal(tensor, value)


def test_assignments_between_steps_count():
    a, b = tf.Variable([1.0]), tf.Variable([2.0])
    optimizer = optimizers.SGD(0.5)
    gradients = [tf.constant([1.0]), tf.constant([1.0])]
    optimizer.apply(gradients, [a, b])
    a.assign([10.0])
    optimizer.apply(gradients, [a, b])
    assert (a.numpy()[0], b.numpy()[0]) == (9.5, 1.0)


def test_missing_gradients_leave_the_state_alone():
    a, b = tf.Variable([1.0]), tf.Variable([1.0])
    optimizer = optimizers.SGD(1.0, momentum=0.5)
    one = tf.constant([1.0])
    optimizer.apply_gradients([(one, a), (one, b)])
    with pytest.warns(UserWarning, match="no gradient"):
        optimizer.apply_gradients([(one, a), (None, b)])
    optimizer.apply_gradients([(one, a), (one, b)])
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [1 - 1 - 1.5 - 1.75, 1 - 1 - 1.5])


def test_errors():
    v = tf.Variable([1.0, 2.0])
    optimizer = optimizers.SGD()
    with pytest.raises(ValueError):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="no gradient"):
        optimizer.apply_gradients([(None, v)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        optimizer.apply_gradients([(tf.constant(1.0), v)])
    with pytest.raises(ValueError, match="does not know"):
        optimizer.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
    with pytest.raises(ValueError):
        optimizer.apply_gradients([(tf.constant(1.0), tf.constant(1.0))])
    for wrong in ({"clipnorm": 1.0, "clipvalue": 1.0}, {"clipnorm": -1.0}, {"momentum": 2.0},
                  {"gradient_accumulation_steps": 1}, {"nonsense": 1}):
        with pytest.raises(ValueError):
            optimizers.SGD(**wrong)


def test_limits_on_gradients():
    g = (3.0, 4.0)
    np.testing.assert_allclose(steps(optimizers.SGD(1.0, clipnorm=1.0), g, g, 1), [2.4, 3.2])
    np.testing.assert_allclose(steps(optimizers.SGD(1.0, clipvalue=3.5), g, g, 1), [0, 0.5])
    a, b = tf.Variable(3.0), tf.Variable(4.0)
    optimizer = optimizers.SGD(1.0, global_clipnorm=1.0)
    optimizer.apply_gradients([(tf.constant(3.0), a), (tf.constant(4.0), b)])
    np.testing.assert_allclose([float(a), float(b)], [2.4, 3.2], rtol=1e-6)


def test_learning_rate_can_be_set():
    optimizer = optimizers.SGD(0.5)
    v = tf.Variable(1.0)
    optimizer.apply_gradients([(tf.constant(1.0), v)])
    optimizer.learning_rate = 0.25
    optimizer.apply_gradients([(tf.constant(1.0), v)])
    assert float(v) == 0.25
    assert float(optimizer.learning_rate) == 0.25
    assert int(optimizer.iterations) == 2


@pytest.mark.parametrize(("schedule", "wanted"), [
    (schedules.ExponentialDecay(1.0, 2, 0.25), [1, 0.5, 0.25, 0.125]),
    (schedules.ExponentialDecay(1.0, 2, 0.25, staircase=True), [1, 1, 0.25, 0.25]),
    (schedules.InverseTimeDecay(1.0, 1, 1.0), [1, 0.5, 1 / 3, 0.25]),
    (schedules.PolynomialDecay(1.0, 2, 0.0), [1, 0.5, 0, 0]),
    (schedules.PolynomialDecay(1.0, 2, 0.0, cycle=True), [1, 0.5, 0, 0.25]),
    (schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.1]), [1, 1, 0.5, 0.1]),
    (schedules.CosineDecay(1.0, 2), [1, 0.5, 0, 0]),
    (schedules.CosineDecay(0.0, 2, warmup_target=1.0, warmup_steps=2), [0, 0.5, 1, 0.5]),
    (schedules.CosineDecayRestarts(1.0, 2, t_mul=1.0), [1, 0.5, 1, 0.5]),
])
def test_schedules(schedule, wanted):
    np.testing.assert_allclose([float(schedule(i)) for i in range(4)], wanted, atol=1e-6)
    v = tf.Variable(0.0)
    optimizer = optimizers.SGD(schedule)
    optimizer.apply_gradients([(tf.constant(-1.0), v)])
    assert float(v) == pytest.approx(wanted[0])
    with pytest.raises(TypeError):
        optimizer.learning_rate = 0.1


def test_moving_average_and_accumulation():
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    v = tf.Variable(0.0)
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant(-1.0), v)])
    optimizer.finalize_variable_values([v])
    assert float(v) == 1.5
    v = tf.Variable(0.0)
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    seen = []
    for g in (1.0, 3.0, 1.0, 1.0):
        optimizer.apply_gradients([(tf.constant(g), v)])
        seen.append(float(v))
    assert seen == [0, -2, -2, -3]


def test_constraints_are_applied():
    v = tf.Variable([1.0, -1.0], constraint=tf.keras.constraints.NonNeg())
    optimizers.SGD(0.1).apply_gradients([(tf.constant([1.0, 1.0]), v)])
    np.testing.assert_allclose(v, [0.9, 0.0])


def test_weight_decay_exclusion():
    a, b = tf.Variable([1.0], name="kernel"), tf.Variable([1.0], name="bias")
    optimizer = optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.apply([tf.constant([0.0])] * 2, [a, b])
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [0.95, 1.0])


def test_state_can_be_moved_to_another_optimizer():
    v = tf.Variable([1.0, 2.0])
    g = tf.constant([0.5, -3.0])
    first = optimizers.Adam(0.1)
    first.apply_gradients([(g, v)])
    w = tf.Variable(v.numpy())
    second = optimizers.Adam(0.1)
    second.build([w])
    second.set_weights([s.numpy() for s in first.variables])
    first.apply_gradients([(g, v)])
    second.apply_gradients([(g, w)])
    np.testing.assert_array_equal(v, w)
    assert [s.name.split("_")[-1] for s in first.variables[2:]] == ["momentum", "velocity"]


def test_sparse_gradients():
    table = tf.Variable(tf.ones((3, 2)))
    optimizer = optimizers.SGD(1.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [0, 0, 2]))
    optimizer.apply_gradients([(tape.gradient(y, table), table)])
    np.testing.assert_allclose(table[:, 0], [-1, 1, 0])


def test_loss_scale_and_several_optimizers():
    v = tf.Variable(1.0)
    scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.5), initial_scale=4.0)
    scaled.apply_gradients([(scaled.scale_loss(tf.constant(1.0)), v)])
    assert float(v) == 0.5
    scaled.apply_gradients([(tf.constant(np.inf, tf.float32), v)])
    assert (float(v), scaled.dynamic_scale) == (0.5, 2.0)
    a, b = tf.keras.Variable(1.0, name="a"), tf.keras.Variable(1.0, name="b")
    chosen = optimizers.OptimizerMap(optimizers.SGD(0.5), {"b": optimizers.SGD(0.25)})
    optimizers.MultiOptimizer(chosen).apply_gradients([(tf.constant(1.0), a),
                                                       (tf.constant(1.0), b)])
    assert (float(a), float(b)) == (0.5, 0.75)


def test_updates_are_seen_by_tapes_as_assignments():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        optimizers.SGD(0.5).apply_gradients([(tf.constant(1.0), v)])
        y = y + v
    assert float(tape.gradient(y, v)) == 5.0


def test_get():
    assert isinstance(optimizers.get("adam"), optimizers.Adam)
    with pytest.raises(ValueError):
        optimizers.get("nonsense")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizers.get(optimizers.SGD())
