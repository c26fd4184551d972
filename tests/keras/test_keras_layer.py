"""Layers: building, naming, weights, training flag, losses, errors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gtape as tf

layers = tf.keras.layers


def test_dense_values_and_gradients():
    layer = layers.Dense(2, activation="relu", kernel_initializer="ones")
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layer(x) ** 2)
    kernel, bias = tape.gradient(loss, layer.trainable_variables)
    np.testing.assert_allclose(kernel, [[6, 6], [12, 12], [18, 18]])
    np.testing.assert_allclose(bias, [6, 6])
    assert [v.name for v in layer.trainable_variables] == ["kernel", "bias"]


def test_variables_have_paths_and_tapes_list_them():
    layer = layers.Dense(2, name="head")
    with tf.GradientTape() as tape:
        layer(tf.ones((1, 3)))
    assert [v.path for v in layer.weights] == ["head/kernel", "head/bias"]
    assert [v.name for v in tape.watched_variables()] == ["head/kernel:0", "head/bias:0"]


def test_names_count_up():
    tf.keras.utils.clear_session()
    assert [layers.Dense(1).name for _ in range(3)] == ["dense", "dense_1", "dense_2"]
    assert layers.Conv2D(1, 1).name == "conv2d"
    assert layers.BatchNormalization().name == "batch_normalization"


@pytest.mark.parametrize("call", [
    lambda: layers.Dense(0),
    lambda: layers.Dense(2.5),
    lambda: layers.Dense(2, wrong=1),
    lambda: layers.Dense(2, name="a/b"),
    lambda: layers.Dense(2, activation="nope"),
    lambda: layers.Dense(2)(tf.ones(3)),
    lambda: layers.Dense(2)([[1.0, 2.0]]),
    lambda: layers.Dropout(1.5),
    lambda: layers.Conv2D(3, 3, padding="full"),
    lambda: layers.Conv2D(3, 3)(tf.ones((2, 8, 3))),
    lambda: layers.Permute((1, 3)),
    lambda: layers.GroupNormalization(3)(tf.ones((2, 4))),
    lambda: layers.Subtract()([tf.ones((1, 2))]),
    lambda: layers.LSTM(3)(tf.ones((2, 3))),
    lambda: layers.Bidirectional(layers.Dense(2)),
    lambda: layers.Input(),
])
def test_wrong_arguments_are_value_errors(call):
    with pytest.raises(ValueError):
        call()


def test_a_built_layer_refuses_another_length():
    layer = layers.Dense(2)
    layer(tf.ones((1, 3)))
    with pytest.raises(ValueError, match="length 3"):
        layer(tf.ones((1, 4)))


def test_floats_are_cast_and_integers_too():
    layer = layers.Dense(2)
    for x in (np.ones((1, 3)), tf.ones((1, 3), tf.float64), tf.ones((1, 3), tf.int32)):
        assert layer(x).dtype == tf.float32
    assert layers.Dense(2, dtype="float64")(np.ones((1, 3))).dtype == tf.float64


class Scale(layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight((input_shape[-1],), "ones", regularizer="l2", name="factor")
        self.seen = self.add_weight((), "zeros", trainable=False, name="seen")

    def call(self, inputs, training=False):
        return inputs * self.factor * (2.0 if training else 1.0)


class Outer(layers.Layer):
    def __init__(self):
        super().__init__()
        self.parts = [Scale(), Scale()]

    def call(self, x):
        for part in self.parts:
            x = part(x)
        return x


def test_layers_in_lists_are_found():
    outer = Outer()
    assert outer.trainable_variables == []
    outer(tf.ones((1, 2)))
    assert [v.name for v in outer.weights] == ["factor", "seen", "factor", "seen"]
    outer.parts.append(layers.Dense(1))
    outer.parts[-1](tf.ones((1, 2)))
    assert len(outer.trainable_variables) == 4
    assert outer.weights[0].path.startswith(f"{outer.name}/")


def test_training_reaches_inner_layers():
    outer = Outer()
    x = tf.ones((1, 2))
    np.testing.assert_allclose(outer(x), np.ones((1, 2)))
    np.testing.assert_allclose(outer(x, training=True), 4 * np.ones((1, 2)))
    np.testing.assert_allclose(outer(x), np.ones((1, 2)))


def test_losses_of_regularizers_and_calls():
    outer = Outer()
    outer(tf.ones((1, 2)))
    assert [float(loss) for loss in outer.losses] == pytest.approx([0.02, 0.02])
    dense = layers.Dense(1, activity_regularizer="l2", kernel_initializer="ones")
    for _ in range(2):
        dense(tf.ones((4, 3)))
        assert [float(loss) for loss in dense.losses] == pytest.approx([0.01 * 9])


def test_freezing_a_layer():
    layer = layers.Dense(2)
    layer(tf.ones((1, 3)))
    layer.trainable = False
    assert layer.trainable_variables == []
    assert len(layer.non_trainable_variables) == 2
    with tf.GradientTape() as tape:
        layer(tf.ones((1, 3)))
    assert tape.watched_variables() == ()
    layer.trainable = True
    assert len(layer.trainable_variables) == 2


def test_moving_averages_stay_untrainable():
    layer = layers.BatchNormalization()
    layer(tf.ones((2, 3)))
    layer.trainable = False
    layer.trainable = True
    assert [v.name for v in layer.trainable_variables] == ["gamma", "beta"]
    assert [v.name for v in layer.weights] == ["gamma", "beta", "moving_mean", "moving_variance"]


def test_weights_in_and_out():
    layer = layers.Dense(2)
    layer(tf.ones((1, 3)))
    values = [np.arange(6.0).reshape(3, 2), np.ones(2)]
    layer.set_weights(values)
    np.testing.assert_allclose(layer(tf.ones((1, 3))), [[7, 10]])
    with pytest.raises(ValueError):
        layer.set_weights(values[:1])
    with pytest.raises(ValueError):
        layer.set_weights([values[1], values[0]])
    assert layer.count_params() == 8


def test_tf_variables_as_attributes_are_weights():
    class Plain(layers.Layer):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

        def call(self, x):
            return x * self.w

    assert len(Plain().trainable_variables) == 1


def test_forgetting_super_init():
    class Wrong(layers.Layer):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="super"):
        Wrong()(tf.ones(2))


def test_a_deep_copy_is_independent():
    layer = layers.Dense(2)
    layer(tf.ones((1, 3)))
    other = copy.deepcopy(layer)
    other.kernel.assign(tf.zeros((3, 2)))
    assert float(tf.reduce_sum(tf.abs(layer.kernel))) > 0
    assert other.trainable_variables[0] is other.kernel


def test_a_layer_is_a_module():
    assert isinstance(layers.Dense(1), tf.Module)


def test_embedding_gradient_is_sparse():
    layer = layers.Embedding(5, 3)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(tf.constant([1, 1, 2])))
    gradient = tape.gradient(y, layer.trainable_variables)[0]
    assert isinstance(gradient, tf.IndexedSlices)
    np.testing.assert_allclose(gradient.numpy()[:, 0], [0, 2, 1, 0, 0])
