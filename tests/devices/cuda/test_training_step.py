"""Whole training steps through the GPU's code path, kernels and all, give the CPU's losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.devices.cuda.runtime.executor import Executor

_STEPS = 3


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel was loaded, by the name of its function."""
    loaded: Counter[str] = Counter()
    function = Executor.function

    def counting(self: Executor, kernel: Any) -> Any:
        loaded[kernel.entry.partition("<")[0]] += 1
        return function(self, kernel)

    monkeypatch.setattr(Executor, "function", counting)
    return loaded


def _dense() -> Any:
    return tf.keras.Sequential([
        tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.LayerNormalization(),
        tf.keras.layers.Dropout(0.25, seed=3), tf.keras.layers.Dense(5)])


def _convolutional() -> Any:
    return tf.keras.Sequential([
        tf.keras.layers.Reshape((4, 4, 2)), tf.keras.layers.Conv2D(3, 3, padding="same"),
        tf.keras.layers.BatchNormalization(), tf.keras.layers.Activation("relu"),
        tf.keras.layers.MaxPooling2D(2), tf.keras.layers.Flatten(), tf.keras.layers.Dense(5)])


def _train(build: Callable[[], Any], optimizer: Callable[[], Any],
           kind: Callable[[Any], Any] = lambda step: step) -> list[float]:
    """The losses of a few steps; weights and data are the same each time."""
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(8, 32)).astype(np.float32))
    labels = tf.constant(rng.integers(0, 5, 8))
    model, update = build(), optimizer()
    model(x)
    model.set_weights([rng.normal(size=w.shape).astype(np.float32) * 0.3 + (w.ndim == 1)
                       for w in model.get_weights()])

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        update.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    run = kind(step)
    return [float(run()) for _ in range(_STEPS)]


@pytest.mark.parametrize("build", [_dense, _convolutional])
@pytest.mark.parametrize("optimizer", [
    lambda: tf.keras.optimizers.Adam(0.01, global_clipnorm=1.0),
    lambda: tf.keras.optimizers.AdamW(0.01, weight_decay=0.1),
    lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)],
    ids=["adam", "adamw", "sgd"])
@pytest.mark.parametrize("kind", [lambda step: step, tf.function], ids=["eager", "compiled"])
def test_losses_are_those_of_the_cpu(gpus: Any, build: Any, optimizer: Any, kind: Any) -> None:
    found = _train(build, optimizer, kind)
    with tf.device("CPU:0"):
        wanted = _train(build, optimizer)
    np.testing.assert_allclose(found, wanted, rtol=2e-4)
    assert found[-1] != found[0]


@pytest.mark.parametrize("gpus", ["kernels"], indirect=True)
def test_a_step_is_a_few_launches(gpus: Any, launches: Counter[str]) -> None:
    _train(_dense, lambda: tf.keras.optimizers.Adam(0.01, global_clipnorm=1.0), tf.function)
    for name in ("layer_norm", "cross_entropy", "bernoulli", "joined_map"):
        assert any(name in kernel for kernel in launches), (name, sorted(launches))


@pytest.mark.parametrize("gpus", ["kernels"], indirect=True)
def test_convolution_norm_and_pooling_are_kernels(gpus: Any, launches: Counter[str]) -> None:
    _train(_convolutional, lambda: tf.keras.optimizers.SGD(0.01))
    for name in ("convolve", "batch_norm_moments", "pool"):
        assert any(name in kernel for kernel in launches), (name, sorted(launches))


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "float64"])
@pytest.mark.parametrize("layer", [
    lambda **kw: tf.keras.layers.LayerNormalization(**kw),
    lambda **kw: tf.keras.layers.LayerNormalization(axis=[1, 2], **kw),
    lambda **kw: tf.keras.layers.LayerNormalization(center=False, **kw),
    lambda **kw: tf.keras.layers.RMSNormalization(**kw),
    lambda **kw: tf.keras.layers.BatchNormalization(**kw),
    lambda **kw: tf.keras.layers.BatchNormalization(axis=1, momentum=0.5, **kw),
    lambda **kw: tf.keras.layers.BatchNormalization(scale=False, **kw)],
    ids=["last axis", "two axes", "no center", "rms", "batch", "channels first", "no scale"])
def test_normalisations_are_those_of_the_cpu(gpus: Any, layer: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, gain = rng.normal(size=(3, 4, 6)), rng.normal(size=(4, 6))

    def results() -> list[Any]:
        made = layer(dtype=dtype)
        inputs = tf.constant(x, made.compute_dtype)
        made.build(inputs.shape)
        for i, weight in enumerate(made.weights):
            weight.assign(gain.reshape(-1)[: math.prod(weight.shape)].reshape(weight.shape) + i)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = made(inputs, training=True) if made._call_has_training_arg else made(inputs)
            loss = tf.reduce_sum(tf.square(tf.cast(y, "float64")) * x)
        assert y.dtype == made.compute_dtype
        return [y, *tape.gradient(loss, [inputs, *made.trainable_variables]), *made.weights]

    found = results()
    with tf.device("CPU:0"):
        wanted = results()
    tolerance = {"float32": 2e-5, "float64": 1e-9}.get(dtype, 2e-2)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float),
                                   tolerance, tolerance * 20)
