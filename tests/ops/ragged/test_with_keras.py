"""Keras models of ragged and sparse inputs, trained."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gtape as tf


def test_a_model_of_ragged_inputs_trains() -> None:
    keras = tf.keras
    keras.utils.set_random_seed(0)

    class Mean(keras.layers.Layer):
        def call(self, x: object) -> object:
            return tf.reduce_mean(x, 1)

        def compute_output_shape(self, shape: tuple) -> tuple:
            return shape[0], shape[2]

    inputs = keras.Input((None,), dtype="int64", ragged=True)
    embedded = keras.layers.Embedding(20, 4)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(Mean()(embedded)))
    model.compile("adam", "mse")
    rows = tf.RaggedTensor.from_row_lengths(np.arange(35) % 20, [3, 4] * 5)
    targets = np.linspace(-1, 1, 10, dtype=np.float32)[:, None]
    losses = model.fit(rows, targets, batch_size=4, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(rows, verbose=0).shape == (10, 1)


def test_a_model_of_sparse_inputs_trains_and_predicts_as_of_dense_ones() -> None:
    keras = tf.keras
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,), sparse=True), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    dense = np.where(np.arange(48).reshape(8, 6) % 5 == 0, 1.0, 0.0).astype(np.float32)
    targets = dense.sum(1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = model.fit(tf.sparse.from_dense(dense), targets, batch_size=4, epochs=5,
                           verbose=0).history["loss"]
        found = model.predict(tf.sparse.from_dense(dense), verbose=0)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(found, model.predict(dense, verbose=0), rtol=1e-5)


def test_ops_of_keras_take_ragged_and_sparse_tensors() -> None:
    ops = tf.keras.ops
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert ops.convert_to_tensor(x) is x
    assert ops.convert_to_numpy(x).tolist() == [[1, 2], [3, 0]]
    assert ops.shape(x) == (2, None)
    y = tf.sparse.from_dense([[0.0, 2.0], [3.0, 0.0]])
    assert isinstance(ops.multiply(y, y), tf.SparseTensor)
    assert ops.convert_to_numpy(ops.matmul(y, y)).tolist() == [[6, 0], [0, 6]]
    assert ops.convert_to_numpy(ops.exp(y)).tolist()[0][0] == 1
    with pytest.raises(ValueError, match="to_dense"):
        tf.exp(y)
