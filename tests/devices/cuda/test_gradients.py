"""Programs on a device: every value and gradient stays there and agrees with the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(8, 3)).astype(np.float32)
_LABELS = np.array([0, 1, 1, 0, 2, 2, 1, 0])
_IMAGES = _RNG.normal(size=(4, 6, 6, 2)).astype(np.float32)


def dense(value):
    return tf.convert_to_tensor(value) if isinstance(value, tf.IndexedSlices) else value


def mlp():
    x = tf.constant(_X)
    w, b = tf.Variable(_X[:3] * 0.5), tf.Variable([0.1, 0.2, 0.3])
    with tf.GradientTape() as tape:
        logits = tf.nn.gelu(x @ w + b) @ w
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(_LABELS, logits))
    return [loss, *tape.gradient(loss, [w, b])]


def convolution():
    x, kernel = tf.constant(_IMAGES), tf.Variable(_IMAGES[0, :3, :3, :, None] * 0.1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.max_pool2d(tf.nn.conv2d(x, kernel, 1, "SAME"), 2, 2, "VALID")
        loss = tf.reduce_sum(tf.square(y))
    return [loss, *tape.gradient(loss, [x, kernel])]


def second_order():
    x = tf.Variable(_X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) / (1.0 + x * x))
        g = inner.gradient(y, x)
        penalty = tf.reduce_sum(g * g)
    return [g, outer.gradient(penalty, x)]


def hessian():
    x = tf.Variable([0.3, 0.5, -0.2])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_prod(tf.cosh(x)) + tf.reduce_max(x)
        g = inner.gradient(y, x)
    return [g, outer.jacobian(g, x)]


def batched_jacobian():
    x = tf.constant(_X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x * tf.reduce_sum(x, 1, keepdims=True))
    return [tape.batch_jacobian(y, x)]


def embedding():
    table = tf.Variable(_X)
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.nn.embedding_lookup(table, [1, 2, 1, 7])
        loss = tf.reduce_sum(rows * rows) + tf.reduce_sum(table[2:4])
    return [tape.gradient(rows, table), tape.gradient(loss, table)]


def custom():
    @tf.custom_gradient
    def clipped(x):
        return x * 1.0, lambda g: tf.clip_by_value(g, -0.5, 0.5)

    x = tf.Variable(_X)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(clipped(x) ** 2) + tf.reduce_sum(tf.stop_gradient(x) * x)
    return [tape.gradient(y, x)]


def recurrence():
    w, h = tf.Variable(_X[:3]), tf.zeros((1, 3))
    with tf.GradientTape() as tape:
        for _ in range(5):
            h = tf.tanh(h @ w + 0.1)
        y = tf.reduce_logsumexp(h)
    return [tape.gradient(y, w, output_gradients=2.0)]


def forward_mode():
    x = tf.constant(_X)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc:
        y = tf.reduce_mean(tf.math.softplus(x), 0)
    return [y, acc.jvp(y)]


def linear_algebra():
    x = tf.Variable(_X.T @ _X + np.eye(3, dtype=np.float32))
    with tf.GradientTape() as tape:
        low = tf.linalg.cholesky(x)
        y = tf.linalg.logdet(x) + tf.linalg.trace(tf.linalg.inv(x)) + tf.reduce_sum(low)
    return [y, tape.gradient(y, x)]


def many_parts():
    x = tf.Variable(_X)
    with tf.GradientTape() as tape:
        a, b = tf.split(x, 2)
        y = tf.concat([tf.reverse(a, [0]), tf.cumsum(b)], 1)[:, 1:5]
        z = tf.reduce_sum(tf.where(y > 0, y, y * y) * tf.stack([y[0]] * 4))
        z += tf.reduce_sum(tf.sort(x, 0) * tf.transpose(tf.reshape(tf.range(24.0), [3, 8])))
    return [z, tape.gradient(z, x)]


def training():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(4, activation="tanh", kernel_initializer="ones"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(3, kernel_initializer="ones")])
    optimizer = tf.keras.optimizers.Adam(0.05)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            logits = model(_X, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(_LABELS, logits))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        losses.append(loss)
    return [*losses, *map(tf.convert_to_tensor, model.trainable_variables)]


PROGRAMS = [mlp, convolution, second_order, hessian, batched_jacobian, embedding, custom,
             recurrence, forward_mode, linear_algebra, many_parts, training]


#: Each of the stand-ins' two GPUs, and the first of a machine that has some.
_DEVICES = [pytest.param(place, name, id=f"{place}-{name}")
            for place in ("functions", "kernels") for name in ("GPU:0", "GPU:1")]
_DEVICES.append(pytest.param("card", "GPU:0", id="card-GPU:0", marks=pytest.mark.gpu))


@pytest.mark.parametrize("gpus, device", _DEVICES, indirect=["gpus"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_runs_on_the_device(gpus, program, device):
    with tf.device("CPU:0"):
        expected = [dense(v) for v in program()]
    with tf.device(device):
        results = [dense(v) for v in program()]
    near = {"rtol": 2e-4, "atol": 1e-5} if len(gpus) > 1 else {"rtol": 2e-3, "atol": 1e-4}
    for a, b in zip(expected, results, strict=True):
        assert a.device == "CPU:0" and b.device == device
        assert type(b._a) is gpus[0].xp.ndarray and b._a.device.id == int(device[-1])
        np.testing.assert_allclose(a, b, **near)


def test_random_numbers_are_those_of_the_cpu(gpus):
    def draw():
        tf.random.set_seed(3)
        return [tf.random.normal((5,)), tf.random.uniform((5,), maxval=9, dtype=tf.int32),
                tf.random.stateless_uniform((5,), (1, 2))]

    with tf.device("CPU:0"):
        expected = draw()
    for a, b in zip(expected, draw()):
        assert b.device == "GPU:0"
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_gradients_of_a_tape_on_another_device_than_the_default(gpus):
    with tf.device("GPU:1"):
        x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(x * x * x)
    assert tape.gradient(y, x).device == "GPU:1"
    z = tape.gradient(y, tf.Variable(1.0), unconnected_gradients="zero")
    assert z.numpy() == 0.0
    assert tape.gradient(y, x, output_gradients=2.0).device == "GPU:1"
    assert "CONNECTED" in tape.explain(y, x, show=False).cause
    assert tape.memory().total > 0


def test_what_is_out_of_range_on_a_device(gpus):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.gather(x, [1, 7, -1])
    assert y.numpy().tolist() == [2.0, 0.0, 0.0]
    assert tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == [0.0, 1.0]
    x.scatter_update(tf.IndexedSlices([5.0, 6.0], [0, 2]))
    assert x.numpy().tolist() == [5.0, 2.0]
    logits = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2], logits)
    assert np.isnan(loss).tolist() == [False, True]
    assert np.isnan(tape.gradient(loss, logits)).tolist() == [[False] * 2, [True] * 2]
