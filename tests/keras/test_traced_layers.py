"""Layers inside a traced function equal layers outside: results, gradients, state."""

import numpy as np
import pytest
from graph_calls import as_graph

import gtape as tf

L = tf.keras.layers
_R = np.random.default_rng(5)


def _x(*shape):
    return _R.standard_normal(shape).astype("f")


LAYERS = {
    "Dense": (lambda: L.Dense(3, activation="tanh"), _x(4, 5)),
    "Conv1D": (lambda: L.Conv1D(3, 2), _x(2, 5, 3)),
    "Conv2D": (lambda: L.Conv2D(3, 2, padding="same"), _x(2, 5, 5, 2)),
    "Conv2DTranspose": (lambda: L.Conv2DTranspose(2, 2, strides=2), _x(1, 3, 3, 2)),
    "DepthwiseConv2D": (lambda: L.DepthwiseConv2D(2), _x(1, 4, 4, 3)),
    "SeparableConv2D": (lambda: L.SeparableConv2D(2, 2), _x(1, 4, 4, 3)),
    "BatchNormalization": (lambda: L.BatchNormalization(), _x(6, 3)),
    "LayerNormalization": (lambda: L.LayerNormalization(), _x(4, 5)),
    "GroupNormalization": (lambda: L.GroupNormalization(2), _x(2, 3, 4)),
    "UnitNormalization": (lambda: L.UnitNormalization(), _x(4, 5)),
    "MaxPooling2D": (lambda: L.MaxPooling2D(), _x(2, 4, 4, 3)),
    "AveragePooling2D": (lambda: L.AveragePooling2D(), _x(2, 4, 4, 3)),
    "GlobalAveragePooling2D": (lambda: L.GlobalAveragePooling2D(), _x(2, 4, 4, 3)),
    "GlobalMaxPooling1D": (lambda: L.GlobalMaxPooling1D(), _x(2, 4, 3)),
    "Flatten": (lambda: L.Flatten(), _x(2, 3, 4)),
    "Reshape": (lambda: L.Reshape((4, 3)), _x(2, 12)),
    "Permute": (lambda: L.Permute((2, 1)), _x(2, 3, 4)),
    "RepeatVector": (lambda: L.RepeatVector(3), _x(2, 3)),
    "ZeroPadding2D": (lambda: L.ZeroPadding2D(), _x(1, 3, 3, 2)),
    "UpSampling2D": (lambda: L.UpSampling2D(), _x(1, 2, 2, 2)),
    "Activation": (lambda: L.Activation("gelu"), _x(3, 4)),
    "ReLU": (lambda: L.ReLU(), _x(3, 4)),
    "PReLU": (lambda: L.PReLU(), _x(3, 4)),
    "Softmax": (lambda: L.Softmax(), _x(3, 4)),
    "Embedding": (lambda: L.Embedding(7, 3), np.array([[1, 2, 6], [0, 1, 1]], "i4")),
    "SimpleRNN": (lambda: L.SimpleRNN(3), _x(2, 4, 3)),
    "LSTM": (lambda: L.LSTM(3, return_sequences=True), _x(2, 4, 3)),
    "GRU": (lambda: L.GRU(3), _x(2, 4, 3)),
    "Bidirectional": (lambda: L.Bidirectional(L.LSTM(2)), _x(2, 4, 3)),
    "TimeDistributed": (lambda: L.TimeDistributed(L.Dense(2)), _x(2, 4, 3)),
    "Dropout": (lambda: L.Dropout(0.5, seed=3), _x(4, 5)),
    "SpatialDropout1D": (lambda: L.SpatialDropout1D(0.5, seed=3), _x(2, 4, 3)),
    "SpatialDropout2D": (lambda: L.SpatialDropout2D(0.5, seed=3), _x(2, 4, 4, 3)),
    "RMSNormalization": (lambda: L.RMSNormalization(), _x(2, 4)),
    "Rescaling": (lambda: L.Rescaling(2.0, 1.0), _x(2, 4)),
    "LeakyReLU": (lambda: L.LeakyReLU(), _x(2, 4)),
    "ELU": (lambda: L.ELU(), _x(2, 4)),
    "Lambda": (lambda: L.Lambda(lambda x: x * x), _x(2, 4)),
    "Conv1DTranspose": (lambda: L.Conv1DTranspose(2, 2), _x(1, 3, 2)),
    "RNN": (lambda: L.RNN(L.GRUCell(3)), _x(2, 4, 3)),
    "GaussianNoise": (lambda: L.GaussianNoise(0.5, seed=3), _x(4, 5)),
}


def run(name, wrap):
    tf.keras.utils.set_random_seed(7)
    make, given = LAYERS[name]
    layer, x = make(), tf.constant(given)

    def step(x):
        with tf.GradientTape() as tape:
            sources = [x] if x.dtype.is_floating else []
            tape.watch(sources)
            y = layer(x, training=True)
            loss = tf.reduce_sum(tf.sin(y))
        return y, tape.gradient(loss, [*sources, *layer.trainable_variables])

    call = wrap(step)
    made = [call(x) for _ in range(2)]
    return made, [np.asarray(w) for w in layer.weights]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_built_in_a_trace(name):
    eager, weights = run(name, lambda f: f)
    graph, others = run(name, as_graph)
    for a, b in zip(tf.nest.flatten(eager), tf.nest.flatten(graph)):
        assert (a is None) == (b is None)
        if a is not None:
            a, b = (v.to_dense() if hasattr(v, "to_dense") else v for v in (a, b))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for a, b in zip(weights, others):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_attention():
    def once(wrap):
        tf.keras.utils.set_random_seed(7)
        layer, x = L.MultiHeadAttention(2, 3), tf.constant(_X)

        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, x, use_causal_mask=True)
            return y, tape.gradient(y, x)

        return wrap(step)(x)

    for a, b in zip(once(lambda f: f), once(as_graph)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


_X = _x(2, 5, 4)


def test_a_model_built_in_a_trace_is_trained_in_it():
    def train(wrap):
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential([L.Dense(8, activation="relu"), L.BatchNormalization(),
                                     L.Dropout(0.3), L.Dense(3)])
        optimizer = tf.keras.optimizers.Adam(0.01)
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        def step(x, y):
            with tf.GradientTape() as tape:
                logits = model(x, training=True)
                loss = loss_of(y, logits)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            accuracy.update_state(y, logits)
            return loss

        call = wrap(step)
        rng = np.random.default_rng(0)
        losses = [float(call(rng.standard_normal((16, 4)).astype("f"),
                             rng.integers(0, 3, 16).astype("i4"))) for _ in range(6)]
        return losses, float(accuracy.result()), [np.asarray(w) for w in model.weights]

    eager, graph = train(lambda f: f), train(as_graph)
    np.testing.assert_allclose(graph[0], eager[0], rtol=1e-5)
    assert graph[1] == eager[1]
    for a, b in zip(graph[2], eager[2]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
