"""Random tensors and dropout on a device: the numbers of the CPU, and with kernels one launch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gtape as tf
from gtape.devices.cuda.runtime.executor import Executor

EXACT = {
    "uniform": lambda: tf.random.uniform([5, 7], -1.5, 2.0, seed=3),
    "uniform float64": lambda: tf.random.uniform([33], dtype=tf.float64, seed=3),
    "uniform float16": lambda: tf.random.uniform([33], 0.0, 3.0, dtype=tf.float16, seed=3),
    "integers": lambda: tf.random.uniform([33], -5, 100, dtype=tf.int32, seed=3),
    "generator": lambda: tf.random.Generator.from_seed(5).uniform([9]),
    "all integers": lambda: tf.random.Generator.from_seed(5).uniform_full_int([9], tf.uint64),
    "stateless": lambda: tf.random.stateless_uniform([9], seed=[1, 2]),
    "no values": lambda: tf.random.uniform([0, 3], seed=3),
    "classes": lambda: tf.random.categorical(
        tf.constant([[0.0, 1.0, 2.0], [0.0, -np.inf, 0.5]]), 50, seed=3),
    "dropout": lambda: tf.nn.dropout(tf.ones([5, 7]), 0.4, seed=3),
    "dropout of rows": lambda: tf.nn.dropout(tf.ones([5, 7]), 0.4, noise_shape=[5, 1], seed=3),
    "dropout float64": lambda: tf.nn.dropout(tf.ones([5, 7], tf.float64), 0.4, seed=3),
    "all dropped": lambda: tf.keras.layers.Dropout(1.0, seed=3)(tf.ones([9]), training=True),
    "layer": lambda: tf.keras.layers.Dropout(0.5, seed=3)(tf.ones([4, 9]), training=True)}
NEAR = {
    "normal": lambda: tf.random.normal([5, 7], 1.0, 2.0, seed=3),
    "normal float64": lambda: tf.random.normal([33], dtype=tf.float64, seed=3),
    "truncated normal": lambda: tf.random.truncated_normal([33], seed=3),
    "gamma": lambda: tf.random.gamma([33], 2.0, seed=3)}


def both(draw):
    tf.random.set_seed(7)
    got = [draw() for _ in range(2)]
    tf.random.set_seed(7)
    with tf.device("CPU:0"):
        wanted = [draw() for _ in range(2)]
    return list(zip(got, wanted))


@pytest.mark.parametrize("name", EXACT)
def test_numbers_are_those_of_the_cpu(gpus, name):
    for got, wanted in both(EXACT[name]):
        assert "GPU:0" in got.device
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", NEAR)
def test_numbers_are_those_of_the_cpu_but_for_rounding(gpus, name):
    for got, wanted in both(NEAR[name]):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), 2e-6, 2e-6)


def test_samples_are_differentiable_in_their_parameters(gpus):
    mean, stddev = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.random.normal([100], mean, stddev, seed=3))
    noise = tf.random.stateless_normal([3], seed=[1, 2])
    assert noise.shape == (3,)
    d_mean, d_stddev = tape.gradient(y, [mean, stddev])
    np.testing.assert_allclose(d_mean.numpy(), 100.0)
    np.testing.assert_allclose(100 * 1.0 + 2.0 * d_stddev.numpy(), y.numpy(), 1e-4)


def test_the_gradient_of_dropout_has_the_same_mask(gpus):
    x = tf.Variable(np.arange(1, 36, dtype=np.float32).reshape(5, 7))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.nn.dropout(x * x, 0.4, seed=3)
        g = tape.gradient(y, x)
        total = tf.reduce_sum(g)
    kept = y.numpy() != 0
    assert 5 < kept.sum() < 30
    np.testing.assert_allclose(g.numpy(), np.where(kept, 2 * x.numpy() / 0.6, 0), 1e-6)
    np.testing.assert_allclose(outer.gradient(total, x).numpy(), np.where(kept, 2 / 0.6, 0), 1e-6)


@pytest.mark.parametrize("gpus", ["kernels"], indirect=True)
def test_dropout_is_one_launch_each_way_and_keeps_no_mask(gpus, monkeypatch):
    counted: Counter[str] = Counter()
    launch = Executor.launch

    def counting(self, kernel, *args, **kwargs):
        counted[kernel.entry.partition("<")[0]] += 1
        return launch(self, kernel, *args, **kwargs)

    monkeypatch.setattr(Executor, "launch", counting)
    x = tf.Variable(np.ones((64, 64), np.float32))
    with tf.GradientTape() as tape:
        y = tf.nn.dropout(x, 0.4, seed=3)
    assert counted == {"dropout": 1}
    tape.gradient(y, x, tf.ones_like(y))
    assert counted["dropout"] == 2
    assert not counted["bernoulli"]


def test_initial_values_are_those_of_the_cpu(gpus):
    make = tf.keras.initializers.GlorotUniform(seed=3)
    with tf.device("CPU:0"):
        wanted = make([4, 5])
    got = make([4, 5])
    assert "GPU:0" in got.device
    np.testing.assert_array_equal(got.numpy(), wanted.numpy())
