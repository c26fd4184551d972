"""Keras' layers and models on SparseTensors: as on the same numbers, dense."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import gtape as tf

keras = tf.keras
_ROWS = np.array([[1, 0, 2], [0, 0, 3], [0, 0, 0], [4, 5, 0]], np.float32)


def test_dense_takes_a_sparse_tensor_and_its_gradients_are_those_of_the_numbers() -> None:
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    found = []
    for x in (tf.constant(_ROWS), tf.sparse.from_dense(_ROWS)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x) ** 2)
        found.append([tf.convert_to_tensor(g).numpy()
                      for g in tape.gradient(loss, layer.trainable_variables)])
    for dense, sparse in zip(*found, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-6)


def _trained(x: Any, sparse: bool, eager: bool) -> tuple[list[float], np.ndarray]:
    keras.utils.set_random_seed(0)
    given = keras.Input((3,), sparse=sparse)
    model = keras.Model(given, keras.layers.Dense(2, activation="relu")(given))
    model.compile("sgd", "mse", run_eagerly=eager)
    history = model.fit(x, np.ones((4, 2)), batch_size=2, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], model.predict(x, verbose=0)


@pytest.mark.parametrize("eager", [False, True])
def test_a_model_trains_on_sparse_rows_as_on_dense_ones(eager: bool) -> None:
    losses, predicted = _trained(_ROWS, False, eager)
    with nullcontext() if eager else pytest.warns(
            tf.errors.EagerFunctionWarning, match="^train_step runs eagerly: .* while tracing$"):
        found = _trained(tf.sparse.from_dense(_ROWS), True, eager)
    np.testing.assert_allclose(found[0], losses, rtol=1e-6)
    np.testing.assert_allclose(found[1], predicted, rtol=1e-6)
