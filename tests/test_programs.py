"""Programs as users write them, each trained or solved to a known end."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

#: Sepal length - 5.5 cm and width - 3.1 cm of 24 irises (Fisher 1936), 12 of each of two species.
_IRIS = np.array([
    [-0.4, 0.4], [-0.6, -0.1], [-0.8, 0.1], [-0.9, 0.0], [-0.5, 0.5], [-0.1, 0.8],
    [-0.9, 0.3], [-0.5, 0.3], [-1.1, -0.2], [-0.6, 0.0], [-0.1, 0.6], [-0.7, 0.3],
    [1.5, 0.1], [0.9, 0.1], [1.4, 0.0], [0.0, -0.8], [1.0, -0.3], [0.2, -0.3],
    [0.8, 0.2], [-0.6, -0.7], [1.1, -0.2], [-0.3, -0.4], [-0.5, -1.1], [0.4, -0.1]])
_SPECIES = np.repeat([0.0, 1.0], 12)


def test_linear_regression_finds_the_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200).astype(np.float32)
    y = 3.0 * x + 2.0 + 0.01 * rng.standard_normal(200).astype(np.float32)
    w, b = tf.Variable(5.0), tf.Variable(0.0)
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(w * x + b - y))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * dw)
        b.assign_sub(0.1 * db)
    assert float(w) == pytest.approx(3.0, abs=0.01)
    assert float(b) == pytest.approx(2.0, abs=0.01)


def test_logistic_regression_separates_the_irises() -> None:
    x, y = tf.constant(_IRIS, tf.float32), tf.constant(_SPECIES[:, None], tf.float32)
    w, b = tf.Variable(tf.zeros([2, 1])), tf.Variable(tf.zeros([1]))
    losses = []
    for _ in range(400):
        with tf.GradientTape() as tape:
            logits = x @ w + b
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        for v, g in zip((w, b), tape.gradient(loss, (w, b))):
            v.assign_sub(1.0 * g)
        losses.append(float(loss))
    right = float(tf.reduce_mean(tf.cast((x @ w + b > 0.0) == (y > 0.5), tf.float32)))
    assert right > 0.95
    assert losses[-1] < 0.15 < losses[0]
    assert losses == sorted(losses, reverse=True)


def test_a_small_network_learns_the_exclusive_or() -> None:
    rng = np.random.default_rng(3)
    x = tf.constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tf.constant([[0.0], [1.0], [1.0], [0.0]])
    layers = [(tf.Variable(rng.standard_normal((i, o)).astype(np.float32)),
               tf.Variable(np.zeros(o, np.float32))) for i, o in ((2, 8), (8, 1))]
    variables = [v for layer in layers for v in layer]
    for _ in range(500):
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ layers[0][0] + layers[0][1])
            p = tf.sigmoid(h @ layers[1][0] + layers[1][1])
            loss = -tf.reduce_mean(y * tf.math.log(p) + (1.0 - y) * tf.math.log(1.0 - p))
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.5 * g)
    assert float(loss) < 0.05


class _Model(tf.Module):
    """A convolution, pooling and a dense layer."""

    def __init__(self) -> None:
        super().__init__(name="model")
        rng = np.random.default_rng(1)
        self.kernel = tf.Variable(0.5 * rng.standard_normal((3, 3, 1, 4)).astype(np.float32))
        self.dense = tf.Variable(0.3 * rng.standard_normal((36, 2)).astype(np.float32))
        self.bias = tf.Variable(np.zeros(2, np.float32))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        h = tf.nn.relu(tf.nn.conv2d(x, self.kernel, 1, "SAME"))
        h = tf.nn.max_pool2d(h, 2, 2, "VALID")
        return tf.reshape(h, [x.shape[0], -1]) @ self.dense + self.bias


def test_a_small_convolutional_net_tells_bars_apart() -> None:
    rng = np.random.default_rng(0)
    images = 0.1 * rng.standard_normal((40, 6, 6, 1)).astype(np.float32)
    labels = np.arange(40) % 2
    for i, label in enumerate(labels):
        at = rng.integers(6)
        bar = images[i, :, at] if label else images[i, at]
        bar += 1.0
    model = _Model()
    assert len(model.trainable_variables) == 3
    for _ in range(60):
        with tf.GradientTape() as tape:
            logits = model(tf.constant(images))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=logits))
        grads = tape.gradient(loss, model.trainable_variables)
        for v, g in zip(model.trainable_variables, grads):
            v.assign_sub(0.3 * g)
    assert float(loss) < 0.1
    assert np.mean(np.argmax(model(tf.constant(images)).numpy(), axis=1) == labels) == 1.0


def test_newtons_method_with_a_hessian_by_jacobian() -> None:
    x = tf.Variable([-1.2, 1.0], dtype=tf.float64)
    for _ in range(8):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
            g = inner.gradient(y, x)
        hessian = outer.jacobian(g, x)
        x.assign_sub(np.linalg.solve(hessian.numpy(), g.numpy()))
    np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-9)


def test_a_root_by_newtons_iteration() -> None:
    x = tf.Variable(1.0, dtype=tf.float64)
    for _ in range(6):
        with tf.GradientTape() as tape:
            y = x ** 2 - 2.0
        x.assign_sub(y / tape.gradient(y, x))
    assert float(x) == pytest.approx(np.sqrt(2), rel=1e-14)


def test_a_gradient_penalty_flattens_a_critic() -> None:
    rng = np.random.default_rng(0)
    w1 = tf.Variable(rng.standard_normal((2, 16)).astype(np.float32))
    w2 = tf.Variable(rng.standard_normal((16, 1)).astype(np.float32))
    x = tf.constant(rng.standard_normal((32, 2)).astype(np.float32))
    norms = []
    for _ in range(150):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                score = tf.tanh(x @ w1) @ w2
            slope = inner.gradient(score, x)
            norm = tf.sqrt(tf.reduce_sum(slope ** 2, axis=1) + 1e-12)
            penalty = tf.reduce_mean((norm - 1.0) ** 2)
        for v, g in zip((w1, w2), outer.gradient(penalty, [w1, w2])):
            v.assign_sub(0.05 * g)
        norms.append(float(penalty))
    assert norms[-1] < 0.1 < norms[0]


def test_a_recurrent_net_learns_to_remember_the_first_input() -> None:
    rng = np.random.default_rng(0)
    w = tf.Variable(0.5 * rng.standard_normal((8, 8)).astype(np.float32))
    u = tf.Variable(rng.standard_normal((1, 8)).astype(np.float32))
    out = tf.Variable(0.5 * rng.standard_normal((8, 1)).astype(np.float32))
    x = rng.choice([-1.0, 1.0], (32, 5, 1)).astype(np.float32)
    variables = [w, u, out]
    for _ in range(200):
        with tf.GradientTape() as tape:
            h = tf.zeros([32, 8])
            for t in range(x.shape[1]):
                h = tf.tanh(h @ w + x[:, t] @ u)
            loss = tf.reduce_mean((h @ out - x[:, 0]) ** 2)
        grads, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
        for v, g in zip(variables, grads):
            v.assign_sub(0.2 * g)
    assert float(loss) < 0.05


def test_two_tapes_train_a_generator_and_a_critic() -> None:
    rng = np.random.default_rng(0)
    shift = tf.Variable(0.0)
    a, b = tf.Variable(0.1), tf.Variable(0.0)

    def critic(x: tf.Tensor) -> tf.Tensor:
        return a * x + b

    for _ in range(300):
        noise = tf.constant(rng.standard_normal(64).astype(np.float32))
        real = tf.constant(rng.standard_normal(64).astype(np.float32) + 2.0)
        with tf.GradientTape() as gen_tape, tf.GradientTape() as critic_tape:
            fake = noise + shift
            real_score, fake_score = critic(real), critic(fake)
            gen_loss = tf.reduce_mean(tf.nn.softplus(-fake_score))
            critic_loss = tf.reduce_mean(tf.nn.softplus(fake_score) + tf.nn.softplus(-real_score))
            critic_loss = critic_loss + 0.1 * (a * a + b * b)
        shift.assign_sub(0.1 * gen_tape.gradient(gen_loss, shift))
        for v, g in zip((a, b), critic_tape.gradient(critic_loss, [a, b])):
            v.assign_sub(0.1 * g)
    assert float(shift) == pytest.approx(2.0, abs=0.4)


def test_a_meta_gradient_goes_through_an_inner_step() -> None:
    w, rate = tf.Variable(1.0, dtype=tf.float64), tf.Variable(0.1, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner_loss = (w - 3.0) ** 2
        fast = w - rate * inner.gradient(inner_loss, w)
        meta = (fast - 2.0) ** 2
    d_w, d_rate = outer.gradient(meta, [w, rate])
    # fast = w - 2 r (w - 3); d fast / d w = 1 - 2 r; d fast / d r = -2 (w - 3)
    error = 2 * (1.0 + 0.1 * 4.0 - 2.0)
    assert float(d_w) == pytest.approx(error * 0.8)
    assert float(d_rate) == pytest.approx(error * 4.0)


def test_learning_the_learning_rate_over_ten_steps() -> None:
    rate = tf.Variable(0.01, dtype=tf.float64)
    for _ in range(50):
        with tf.GradientTape() as tape:
            w = tf.constant([4.0, -2.0], tf.float64)
            for _ in range(10):
                w = w - rate * 2.0 * w * tf.constant([1.0, 0.5], tf.float64)
            loss = tf.reduce_sum(w * w)
        rate.assign(tf.clip_by_value(rate - 0.001 * tape.gradient(loss, rate), 0.0, 0.9))
    assert float(loss) < 0.5
    assert 0.1 < float(rate) < 0.9


def test_an_embedding_is_trained_by_its_rows_alone() -> None:
    table = tf.Variable(np.zeros((10, 4), np.float32))
    target = tf.ones([3, 4])
    for _ in range(100):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.embedding_lookup(table, [1, 4, 4]) - target) ** 2)
        g = tape.gradient(loss, table)
        assert isinstance(g, tf.IndexedSlices)
        table.scatter_sub(tf.IndexedSlices(1.0 * g.values, g.indices, g.dense_shape))
    np.testing.assert_allclose(table.numpy()[[1, 4]], np.ones((2, 4)), atol=1e-3)
    np.testing.assert_array_equal(table.numpy()[[0, 2, 3, 5]], np.zeros((4, 4)))


def test_momentum_kept_in_untrainable_variables() -> None:
    w = tf.Variable([5.0, -3.0])
    speed = tf.Variable([0.0, 0.0], trainable=False)
    for _ in range(120):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * [1.0, 10.0])
        speed.assign(0.9 * speed + tape.gradient(loss, w))
        w.assign_sub(0.01 * speed)
    assert [v.ref() for v in tape.watched_variables()] == [w.ref()]
    np.testing.assert_allclose(w, [0.0, 0.0], atol=0.1)


def test_fitting_a_differential_equation() -> None:
    decay = tf.Variable(0.3, dtype=tf.float64)
    wanted = np.exp(-1.5 * np.linspace(0, 1, 11))
    for _ in range(60):
        with tf.GradientTape() as tape:
            y, path = tf.constant(1.0, tf.float64), []
            for _ in range(11):
                path.append(y)
                slope = -decay * y
                middle = y + 0.05 * slope
                y = y + 0.1 * (-decay * middle)
            loss = tf.reduce_sum((tf.stack(path) - wanted) ** 2)
        decay.assign_sub(1.0 * tape.gradient(loss, decay))
    assert float(decay) == pytest.approx(1.5, abs=0.02)


def test_gradient_accumulation_equals_the_full_batch() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 1))
    w = tf.Variable(rng.standard_normal((3, 1)))

    def gradient(rows: slice) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.constant(x[rows]) @ w - y[rows]) ** 2)
        return tape.gradient(loss, w)

    parts = [gradient(slice(i, i + 4)) for i in (0, 4, 8)]
    np.testing.assert_allclose(tf.add_n(parts), gradient(slice(None)), rtol=1e-12)
