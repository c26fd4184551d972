"""Keras on gtape gives the numbers of Keras on TensorFlow 2.21, eager and compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gtape as tf

K = tf.keras
L = K.layers
KINDS = pytest.mark.parametrize("kind", [lambda f: f, tf.function], ids=["eager", "compiled"])


# ---------------------------------------------------------------- losses
@KINDS
@pytest.mark.parametrize(("loss", "label", "activation", "logits", "value", "slope"), [
    (K.losses.SparseCategoricalCrossentropy(), [1], "softmax", [[30.0, 0, 0]], 30.0, [1, -1, 0]),
    (K.losses.CategoricalCrossentropy(), [[0.0, 1, 0]], "softmax", [[30.0, 0, 0]], 30.0,
     [1, -1, 0]),
    (K.losses.BinaryCrossentropy(), [[0.0]], "sigmoid", [[40.0]], 40.0, [1])])
def test_cross_entropies_see_through_the_last_activation(
        kind: Any, loss: Any, label: Any, activation: str, logits: Any, value: float,
        slope: Any) -> None:
    apply = getattr(K.activations, activation)

    def both(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = loss(tf.constant(label), apply(x))
        return made, tape.gradient(made, x)

    made, gradient = kind(both)(tf.constant(logits))
    np.testing.assert_allclose(made, value, rtol=1e-6)
    np.testing.assert_allclose(gradient, [slope], atol=1e-6)


_Y = np.array([[0.0, 1.0], [0.0, 0.0]], np.float32)
_P = np.array([[0.6, 0.4], [0.4, 0.6]], np.float32)


@pytest.mark.parametrize(("name", "wanted"), [
    ("MeanSquaredError", [0.36, 0.26]), ("MeanAbsoluteError", [0.6, 0.5]),
    ("LogCosh", [math.log(math.cosh(0.6)),
                 (math.log(math.cosh(0.4)) + math.log(math.cosh(0.6))) / 2]),
    ("BinaryCrossentropy", [-math.log(0.4), -(math.log(0.6) + math.log(0.4)) / 2]),
    ("Poisson", [(0.6 + 0.4 - math.log(0.4)) / 2, 0.5]),
    ("CategoricalHinge", [1 - 0.4 + 0.6, 1.6])])
def test_losses_reductions_and_weights(name: str, wanted: list[float]) -> None:
    def loss(reduction: Any, **given: Any) -> Any:
        return np.asarray(getattr(K.losses, name)(reduction=reduction)(_Y, _P, **given))

    np.testing.assert_allclose(loss(None), wanted, rtol=1e-5)
    np.testing.assert_allclose(loss("sum"), sum(wanted), rtol=1e-5)
    np.testing.assert_allclose(loss("sum_over_batch_size"), sum(wanted) / 2, rtol=1e-5)
    np.testing.assert_allclose(loss("mean_with_sample_weight", sample_weight=[3.0, 1.0]),
                               (3 * wanted[0] + wanted[1]) / 4, rtol=1e-5)


# ---------------------------------------------------------------- optimizers
@KINDS
@pytest.mark.parametrize(("name", "given", "wanted"), [
    ("SGD", {}, [0.94, -2.12, 3.18]),
    ("SGD", {"momentum": 0.9, "nesterov": True}, [0.85441, -2.29118, 3.43677]),
    ("Adam", {}, [0.707689, -2.292314, 3.292314]),
    ("Adam", {"amsgrad": True}, [0.707689, -2.292314, 3.292314]),
    ("AdamW", {"weight_decay": 0.1}, [0.680943, -2.229957, 3.200256]),
    ("RMSprop", {"momentum": 0.5, "centered": True}, [-0.35031, -3.350339, 4.350344]),
    ("Adagrad", {}, [0.856972, -2.200337, 3.226903]),
    ("Adadelta", {}, [0.999462, -2.000538, 3.000538]),
    ("Adamax", {}, [0.754681, -2.245319, 3.245319]),
    ("Nadam", {}, [0.706768, -2.293232, 3.293232]),
    ("Ftrl", {}, [-0.096491, -0.510028, 1.050474]),
    ("Lion", {}, [0.7, -2.3, 3.3]),
    ("Lamb", {}, [0.30792, -2.69208, 3.69208]),
    ("Adafactor", {}, [0.30792, -2.69208, 3.69208]),
    ("Muon", {}, [0.706608, -2.289796, 3.288597])])
def test_three_updates(kind: Any, name: str, given: dict[str, Any], wanted: list[float]) -> None:
    variable = tf.Variable([1.0, -2.0, 3.0])
    optimizer = getattr(K.optimizers, name)(0.1, **given)
    optimizer.build([variable])
    update = kind(lambda g: optimizer.apply_gradients([(g, variable)]))
    for i in range(1, 4):
        update(tf.constant([0.1, 0.2, -0.3]) * i)
    np.testing.assert_allclose(variable, wanted, atol=2e-6)
    assert int(optimizer.iterations) == 3


# ---------------------------------------------------------------- layers
def _x(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f")


LAYERS: dict[str, tuple[Any, Any]] = {
    "Dense": (lambda: L.Dense(3, activation="tanh"), _x(4, 5)),
    "Conv1D": (lambda: L.Conv1D(3, 2), _x(2, 5, 3)),
    "Conv2D": (lambda: L.Conv2D(3, 2, padding="same"), _x(2, 5, 5, 2)),
    "Conv2DTranspose": (lambda: L.Conv2DTranspose(2, 2, strides=2), _x(1, 3, 3, 2)),
    "DepthwiseConv2D": (lambda: L.DepthwiseConv2D(2), _x(1, 4, 4, 3)),
    "SeparableConv2D": (lambda: L.SeparableConv2D(2, 2), _x(1, 4, 4, 3)),
    "BatchNormalization": (lambda: L.BatchNormalization(), _x(6, 3)),
    "LayerNormalization": (lambda: L.LayerNormalization(), _x(4, 5)),
    "GroupNormalization": (lambda: L.GroupNormalization(2), _x(2, 3, 4)),
    "MaxPooling2D": (lambda: L.MaxPooling2D(), _x(2, 4, 4, 3)),
    "AveragePooling2D": (lambda: L.AveragePooling2D(2), _x(2, 4, 4, 3)),
    "GlobalMaxPooling1D": (lambda: L.GlobalMaxPooling1D(), _x(2, 4, 3)),
    "UpSampling2D": (lambda: L.UpSampling2D(), _x(1, 2, 2, 2)),
    "Activation": (lambda: L.Activation("gelu"), _x(3, 4)),
    "PReLU": (lambda: L.PReLU(), _x(3, 4)),
    "Embedding": (lambda: L.Embedding(7, 3), np.array([[1, 2, 6], [0, 1, 1]], "i4")),
    "SimpleRNN": (lambda: L.SimpleRNN(3), _x(2, 4, 3)),
    "LSTM": (lambda: L.LSTM(3, return_sequences=True), _x(2, 4, 3)),
    "GRU": (lambda: L.GRU(3), _x(2, 4, 3)),
    "Bidirectional": (lambda: L.Bidirectional(L.LSTM(2)), _x(2, 4, 3)),
    "TimeDistributed": (lambda: L.TimeDistributed(L.Dense(2)), _x(2, 4, 3)),
    "Dropout": (lambda: L.Dropout(0.5, seed=3), _x(4, 5)),
    "SpatialDropout2D": (lambda: L.SpatialDropout2D(0.5, seed=3), _x(2, 4, 4, 3)),
    "GaussianNoise": (lambda: L.GaussianNoise(0.5, seed=3), _x(4, 5))}


def _run(name: str, kind: Any) -> tuple[list[Any], list[np.ndarray]]:
    K.utils.set_random_seed(7)
    make, given = LAYERS[name]
    layer, x = make(), tf.constant(given)
    layer.build(given.shape)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            sources = [x] if x.dtype.is_floating else []
            tape.watch(sources)
            y = layer(x, training=True)
            loss = tf.reduce_sum(tf.sin(y))
        return y, tape.gradient(loss, [*sources, *layer.trainable_variables])

    call = kind(step)
    return [call(x) for _ in range(2)], [np.asarray(w) for w in layer.weights]


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_layer_equals_the_eager_one(name: str) -> None:
    (eager, weights), (compiled, others) = _run(name, lambda f: f), _run(name, tf.function)
    for a, b in zip(tf.nest.flatten([eager, weights]), tf.nest.flatten([compiled, others]),
                    strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(a), tf.convert_to_tensor(b), rtol=1e-5,
                                   atol=2e-6)


@KINDS
def test_a_model_is_trained_with_its_metric(kind: Any) -> None:
    K.utils.set_random_seed(1)
    rng = np.random.default_rng(0)
    model = K.Sequential([L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3)])
    optimizer, accuracy = K.optimizers.Adam(0.1), K.metrics.SparseCategoricalAccuracy()
    loss_of = K.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = rng.standard_normal((64, 4)).astype("f"), rng.integers(0, 3, 64).astype("i4")
    model.build(x.shape)
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(y, logits)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        accuracy.update_state(y, logits)
        return loss

    call = kind(step)
    losses = [float(call(x, y)) for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]
    assert 0.4 < float(accuracy.result()) < 1.0
