"""A custom training loop: a model of layers, a loss, an optimizer, clipped gradients."""

from __future__ import annotations

import numpy as np

import gtape as tf

BATCH = 32
EPOCHS = 30


def make_data(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten inputs, and a smooth function of three of them with a little noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, 10)).astype(np.float32)
    y = np.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
    noise = 0.05 * rng.normal(size=y.shape)
    return x, (y + noise).astype(np.float32)


def make_model() -> tf.keras.Sequential:
    return tf.keras.Sequential([
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1)])


def train(model: tf.keras.Sequential, x: np.ndarray, y: np.ndarray) -> list[float]:
    """The mean loss of every epoch."""
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.005)
    loss_function = tf.keras.losses.MeanSquaredError()
    history = []
    for _ in range(EPOCHS):
        losses = []
        for start in range(0, len(x), BATCH):
            with tf.GradientTape() as tape:
                predicted = model(x[start:start + BATCH], training=True)
                loss = loss_function(y[start:start + BATCH], predicted)
            gradients = tape.gradient(loss, model.trainable_variables)
            gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            losses.append(float(loss))
        history.append(float(np.mean(losses)))
    return history


def fraction_unexplained(predicted: np.ndarray, y: np.ndarray) -> float:
    """1 - R^2: the mean squared error over the variance."""
    return float(np.mean((predicted - y) ** 2) / np.var(y))


def a_linear_model_by_hand() -> None:
    """The same without layers: two variables, and steps of gradient descent by assign_sub."""
    x = tf.linspace(-1.0, 1.0, 50)
    y = 3.0 * x + 2.0
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    for _ in range(200):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + offset - y) ** 2)
        by_slope, by_offset = tape.gradient(loss, [slope, offset])
        slope.assign_sub(0.2 * by_slope)
        offset.assign_sub(0.2 * by_offset)
    print("line:", slope.numpy(), offset.numpy())
    np.testing.assert_allclose([slope.numpy(), offset.numpy()], [3.0, 2.0], atol=1e-3)


def a_network() -> None:
    x, y = make_data(1200)
    tf.keras.utils.set_random_seed(0)
    model = make_model()
    history = train(model, x[:1000], y[:1000])
    unexplained = fraction_unexplained(model(x[1000:]).numpy(), y[1000:])
    print(f"loss {history[0]:.3f} -> {history[-1]:.3f}, unexplained on new data {unexplained:.1%}")
    assert history[-1] < 0.25 * history[0]
    assert unexplained < 0.25


if __name__ == "__main__":
    a_linear_model_by_hand()
    a_network()
