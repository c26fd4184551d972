"""tf.function on GPUs: traced there, and run launch by launch with formulas joined."""

from __future__ import annotations

from typing import Any

import numpy as np

import gtape as tf


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _step(kind: Any) -> tuple[Any, list[tf.Variable]]:
    weights = [tf.Variable(_numbers(6, 8, seed=1)), tf.Variable(_numbers(8, seed=2)),
               tf.Variable(_numbers(8, 1, seed=3))]
    optimizer = tf.keras.optimizers.Adam(0.05)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.gelu(tf.matmul(x, weights[0]) + weights[1], approximate=True)
            loss = tf.reduce_mean(tf.square(tf.matmul(hidden, weights[2]) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    return kind(step), weights


def test_a_traced_step_equals_the_eager_one(gpus: Any) -> None:
    x, y = tf.constant(_numbers(4, 6, seed=4)), tf.constant(_numbers(4, 1, seed=5))
    results = []
    for kind in (lambda f: f, tf.function):
        step, weights = _step(kind)
        losses = [step(x, y).numpy() for _ in range(4)]
        assert weights[0].device == "GPU:0"
        results.append((losses, [w.numpy() for w in weights]))
    for a, b in zip(tf.nest.flatten(results[0]), tf.nest.flatten(results[1])):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_results_stay_on_the_device_of_the_arguments(gpus: Any) -> None:
    double = tf.function(lambda x: tf.tanh(x * 2.0) + 1.0)
    with tf.device("GPU:1"):
        there = double(tf.ones([3]))
    assert there.device == "GPU:1"
    assert double(tf.ones([3])).device == "GPU:0"
    with tf.device("CPU:0"):
        here = double(tf.ones([3]))
    assert here.device == "CPU:0"
    np.testing.assert_allclose(here.numpy(), there.numpy(), rtol=1e-6)
