"""Dtype policies and loss scaling: eager, in a compiled custom step, and in fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.compile.cpp.program import NativeProgram
from gtape.compile.frontend.signature import Arguments
from tests.compile.native_calls import hosted

keras = tf.keras
layers, optimizers = keras.layers, keras.optimizers

_POLICIES = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}


@pytest.fixture(params=list(_POLICIES))
def policy(request: Any) -> Any:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    keras.utils.set_random_seed(0)
    yield request.param
    keras.config.set_dtype_policy(before)


def _model() -> Any:
    return keras.Sequential([keras.Input((8,)), layers.Dense(16, activation="relu"),
                             layers.BatchNormalization(), layers.Dense(1, dtype="float32")])


def _data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((64, 8)).astype("float32")
    return x, (x[:, :1] - x[:, 1:2]) / 2


def test_variables_have_32_bits_and_layers_compute_in_16(policy: str) -> None:
    layer = layers.Dense(3)
    made = layer(_data()[0])
    assert made.dtype is _POLICIES[policy]
    assert {v.dtype for v in layer.variables} == {"float32"}


@pytest.mark.parametrize("eager", [True, False])
def test_fit_learns(policy: str, eager: bool) -> None:
    model = _model()
    model.compile(optimizers.Adam(0.02), "mse", run_eagerly=eager)
    wrapped = isinstance(model.optimizer, optimizers.LossScaleOptimizer)
    assert wrapped is (policy == "mixed_float16")
    losses = model.fit(*_data(), batch_size=16, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 4
    assert all(np.isfinite(v.numpy()).all() for v in model.variables)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_custom_step_learns(policy: str, compiled: bool) -> None:
    model, optimizer = _model(), optimizers.LossScaleOptimizer(optimizers.Adam(0.02))
    x, y = map(tf.constant, _data())
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            scaled = optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(scaled, model.trainable_variables),
                        model.trainable_variables)
        return loss

    run = tf.function(step) if compiled else step
    losses = [float(run(x, y)) for _ in range(30)]
    assert losses[-1] < losses[0] / 4
    assert float(optimizer.dynamic_scale) <= 2.0 ** 15


@pytest.mark.parametrize("way", ["eager", "node by node", "native", "compiled"])
def test_the_scale_follows_what_is_finite(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients [8, 8] of a scale that starts at 8 and grows after four steps; every sixth has an
    infinity: TensorFlow 2.21 gives these scales."""
    monkeypatch.setattr(gradual, "COMPILED", 1)
    monkeypatch.setattr(gradual, "NATIVE", 2 if way == "native" else 1 << 60)
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(1.0), initial_scale=8.0,
                                              dynamic_growth_steps=4)
    variable = keras.Variable([0.0, 0.0])
    optimizer.build([variable])

    def step(g: Any) -> None:
        optimizer.apply([g], [variable])

    run = tf.function(step) if way == "compiled" else step
    tf.config.run_functions_eagerly(way == "eager")
    scales = []
    try:
        for i in range(12):
            run(tf.constant([8.0, np.inf if i % 6 == 5 else 8.0]))
            scales.append(float(optimizer.dynamic_scale))
    finally:
        tf.config.run_functions_eagerly(False)
    assert scales == [8, 8, 8, 16, 16, 8, 8, 8, 8, 16, 16, 8]
    np.testing.assert_array_equal(variable.numpy(), [-9.0, -9.0])
    assert int(optimizer.inner_optimizer.iterations) == 10


@pytest.mark.native
def test_a_step_with_a_loss_scale_is_one_native_program() -> None:
    """Nothing in it asks Python, so nothing in it waits for anybody."""
    optimizer, variable = optimizers.LossScaleOptimizer(optimizers.Adam(0.1)), keras.Variable([1.0])
    optimizer.build([variable])
    step = tf.function(lambda g: optimizer.apply([g], [variable]))
    step(tf.constant([1.0]))
    assert type(step._cache.find(Arguments((tf.constant([1.0]),), {})).compile()) is NativeProgram
    assert not hosted(step, tf.constant([1.0]))


def test_numbers_of_16_bits_are_those_of_casts(policy: str) -> None:
    layer, x = layers.Dense(3), tf.constant(_data()[0])
    layer.build(x.shape)
    short = _POLICIES[policy]
    by_hand = tf.matmul(tf.cast(x, short), tf.cast(layer.kernel.value, short))
    by_hand += tf.cast(layer.bias.value, short)
    for _ in range(3):
        np.testing.assert_array_equal(tf.cast(layer(x), "float32"), tf.cast(by_hand, "float32"))
