"""What layers compute, against NumPy or against other layers."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

layers = tf.keras.layers
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_dropout():
    tf.keras.utils.set_random_seed(1)
    layer = layers.Dropout(0.25)
    x = tf.ones((50, 40))
    y = np.asarray(layer(x, training=True))
    np.testing.assert_allclose(np.unique(y), [0, 4 / 3], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 0.05
    assert layer(x) is not None and np.array_equal(layer(x), x)
    assert not np.array_equal(layer(x, training=True), y)


def test_equal_seeds_drop_equally():
    a, b = (layers.Dropout(0.5, seed=3) for _ in range(2))
    x = tf.ones((4, 5))
    np.testing.assert_array_equal(a(x, training=True), b(x, training=True))


def test_spatial_dropout_drops_channels():
    y = np.asarray(layers.SpatialDropout2D(0.5, seed=1)(tf.ones((8, 3, 3, 4)), training=True))
    assert (y == y[:, :1, :1]).all() and (y == 0).any()


def test_batch_normalization_trains_and_follows():
    x = normal(16, 3) * 3 + 2
    layer = layers.BatchNormalization(momentum=0.5)
    y = np.asarray(layer(x, training=True))
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean, 0.5 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance, 0.5 + 0.5 * x.var(0), rtol=1e-5)
    still = np.asarray(layer(x))
    wanted = (x - layer.moving_mean.numpy()) / np.sqrt(layer.moving_variance.numpy() + 1e-3)
    np.testing.assert_allclose(still, wanted, rtol=1e-4)


def test_batch_normalization_updates_are_not_recorded():
    layer = layers.BatchNormalization()
    x = tf.constant(normal(4, 3))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(x, training=True) ** 2)
    gradients = tape.gradient(y, layer.trainable_variables)
    assert [g.shape for g in gradients] == [(3,), (3,)]


@pytest.mark.parametrize("axis", [-1, (1, 2)])
def test_layer_normalization(axis):
    x = normal(2, 5, 4)
    y = layers.LayerNormalization(axis=axis)(x)
    wanted = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_group_normalization_of_one_group_is_layer_normalization():
    x = normal(2, 3, 3, 4)
    one = layers.GroupNormalization(1)(x)
    np.testing.assert_allclose(one, layers.LayerNormalization((1, 2, 3))(x), rtol=1e-4, atol=1e-5)


def test_normalization_adapts():
    x = normal(20, 3) * 2 + 1
    layer = layers.Normalization()
    layer.adapt(x)
    y = np.asarray(layer(x))
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(y.std(0), 1, rtol=1e-4)
    back = layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 4, 4], invert=True)
    np.testing.assert_allclose(back(np.ones((1, 3), np.float32)), [[3, 4, 5]])


def test_convolution_of_ones():
    layer = layers.Conv2D(2, 3, kernel_initializer="ones")
    np.testing.assert_allclose(layer(tf.ones((1, 4, 4, 3))), 27 * np.ones((1, 2, 2, 2)))
    same = layers.Conv1D(1, 3, padding="causal", kernel_initializer="ones")
    np.testing.assert_allclose(same(tf.ones((1, 4, 1)))[0, :, 0], [1, 2, 3, 3])


def test_channels_first_is_channels_last_moved():
    x = normal(2, 5, 6, 3)
    last = layers.Conv2D(4, 3, padding="same", bias_initializer="ones")
    first = layers.Conv2D(4, 3, padding="same", data_format="channels_first")
    y = np.asarray(last(x))
    moved = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    first(moved)
    first.set_weights(last.get_weights())
    np.testing.assert_allclose(np.asarray(first(moved)).transpose(0, 2, 3, 1), y, rtol=1e-4,
                               atol=1e-5)


@pytest.mark.parametrize(("padding", "stride", "extra", "length"), [
    ("same", 2, None, 10), ("valid", 2, None, 11), ("valid", 3, None, 15), ("same", 2, 1, 10),
    ("valid", 2, 1, 12), ("same", 1, None, 5)])
def test_transposed_lengths(padding, stride, extra, length):
    layer = layers.Conv2DTranspose(2, 3, stride, padding, extra)
    assert layer(tf.ones((1, 5, 5, 3))).shape == (1, length, length, 2)


def test_separable_is_depthwise_then_pointwise():
    x = normal(1, 6, 6, 3)
    layer = layers.SeparableConv2D(4, 3, depth_multiplier=2, use_bias=False)
    y = layer(x)
    deep = tf.nn.depthwise_conv2d(x, layer.depthwise_kernel, [1, 1, 1, 1], "VALID")
    np.testing.assert_allclose(y, deep @ layer.pointwise_kernel[0, 0], rtol=1e-4, atol=1e-5)


def test_pooling():
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    np.testing.assert_allclose(layers.MaxPooling2D()(x)[0, :, :, 0], [[5, 7], [13, 15]])
    np.testing.assert_allclose(layers.AveragePooling2D()(x)[0, :, :, 0], [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_allclose(layers.GlobalAveragePooling2D()(x), [[7.5]])
    assert layers.GlobalMaxPooling2D(keepdims=True)(x).shape == (1, 1, 1, 1)


def lstm_by_hand(x, w, u, b):
    units = u.shape[0]
    h = c = np.zeros((len(x), units))
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    return h


def test_lstm():
    x = normal(2, 5, 3)
    layer = layers.LSTM(4)
    y = layer(x)
    np.testing.assert_allclose(layer.cell.bias[4:8], np.ones(4))
    np.testing.assert_allclose(y, lstm_by_hand(x, *layer.get_weights()), rtol=1e-4, atol=1e-5)


def test_recurrent_variants():
    x = normal(2, 5, 3)
    layer = layers.GRU(4, return_sequences=True, return_state=True)
    sequence, state = layer(x)
    np.testing.assert_array_equal(sequence[:, -1], state)
    twice = layer(x, initial_state=state)[0]
    assert not np.allclose(twice, sequence)
    kept = layers.SimpleRNN(4, stateful=True)
    first = np.asarray(kept(x))
    assert not np.allclose(kept(x), first)
    kept.reset_state()
    np.testing.assert_array_equal(kept(x), first)


def test_masked_steps_keep_the_state():
    x = normal(1, 4, 3)
    layer = layers.GRU(2)
    masked = layer(x, mask=tf.constant([[True, True, False, False]]))
    np.testing.assert_allclose(masked, layer(x[:, :2]), rtol=1e-6)


def test_own_cell():
    class Adding(layers.Layer):
        state_size = 3

        def call(self, x, states):
            return states[0] + x, [states[0] + x]

    x = normal(2, 4, 3)
    np.testing.assert_allclose(layers.RNN(Adding())(x), x.sum(1), rtol=1e-5)


def test_bidirectional_reads_both_ways():
    x = normal(2, 5, 3)
    layer = layers.Bidirectional(layers.SimpleRNN(4, return_sequences=True))
    y = np.asarray(layer(x))
    back = layers.SimpleRNN(4, return_sequences=True)
    back(x)
    back.set_weights(layer.backward_layer.get_weights())
    np.testing.assert_allclose(y[:, ::-1, 4:], back(x[:, ::-1].copy()), rtol=1e-5, atol=1e-6)
    assert not np.allclose(layer.forward_layer.get_weights()[0],
                           layer.backward_layer.get_weights()[0])


def test_time_distributed_is_the_layer_for_every_step():
    x = normal(2, 5, 3)
    inner = layers.Dense(2)
    np.testing.assert_allclose(layers.TimeDistributed(inner)(x), inner(x), rtol=1e-6)


def test_causal_attention_does_not_see_later_steps():
    x = normal(1, 4, 6)
    layer = layers.MultiHeadAttention(2, 3)
    y, scores = layer(x, x, use_causal_mask=True, return_attention_scores=True)
    assert np.all(np.triu(np.asarray(scores)[0, 0], 1) == 0)
    np.testing.assert_allclose(np.asarray(scores).sum(-1), 1, rtol=1e-5)
    changed = x.copy()
    changed[:, -1] = 9
    np.testing.assert_allclose(layer(changed, changed, use_causal_mask=True)[:, :-1], y[:, :-1],
                               rtol=1e-5)


def test_embedding_masks_flow_through_sequential():
    model = tf.keras.Sequential([layers.Embedding(6, 3, mask_zero=True), layers.GRU(2)])
    y = model(tf.constant([[1, 2, 0, 0]]))
    np.testing.assert_allclose(y, model(tf.constant([[1, 2]])), rtol=1e-6)


@pytest.mark.parametrize(("layer", "wanted"), [
    (layers.Add(), 5), (layers.Subtract(), -1), (layers.Multiply(), 6), (layers.Average(), 2.5),
    (layers.Maximum(), 3), (layers.Minimum(), 2)])
def test_merging(layer, wanted):
    np.testing.assert_allclose(layer([2 * tf.ones((1, 2)), 3 * tf.ones((1, 2))]),
                               wanted * np.ones((1, 2)))


def test_shaping():
    x = tf.reshape(tf.range(24.0), (2, 3, 4))
    assert layers.Flatten()(x).shape == (2, 12)
    assert layers.Reshape((4, -1))(x).shape == (2, 4, 3)
    np.testing.assert_array_equal(layers.Permute((2, 1))(x), np.asarray(x).transpose(0, 2, 1))
    assert layers.RepeatVector(3)(x[:, 0]).shape == (2, 3, 4)
    padded = layers.ZeroPadding2D(((1, 0), (0, 2)))(tf.ones((1, 2, 2, 1)))
    np.testing.assert_array_equal(padded[0, :, :, 0], [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]])
    assert layers.UpSampling2D((2, 3))(tf.ones((1, 2, 2, 1))).shape == (1, 4, 6, 1)
    assert layers.Dot(1)([x[:, 0], x[:, 1]]).shape == (2, 1)
    assert layers.Concatenate()([x, x]).shape == (2, 3, 8)
