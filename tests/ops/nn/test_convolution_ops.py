"""Convolution: layouts, strides, paddings, groups, transposes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(2, 5, 6, 4))
_F = _RNG.normal(size=(3, 2, 4, 3))


def _by_definition(x, f, stride, pads, dilation=1):
    x = np.pad(x, ((0, 0), *pads, (0, 0)))
    h = (x.shape[1] - (f.shape[0] - 1) * dilation - 1) // stride + 1
    w = (x.shape[2] - (f.shape[1] - 1) * dilation - 1) // stride + 1
    y = np.zeros((x.shape[0], h, w, f.shape[3]))
    for i in range(h):
        for j in range(w):
            rows = slice(i * stride, i * stride + (f.shape[0] - 1) * dilation + 1, dilation)
            columns = slice(j * stride, j * stride + (f.shape[1] - 1) * dilation + 1, dilation)
            y[:, i, j] = np.einsum("nabc,abcf->nf", x[:, rows, columns], f)
    return y


@pytest.mark.parametrize("stride", [2, [2, 2], [1, 2, 2, 1]])
def test_conv2d_by_definition(stride):
    wanted = _by_definition(_X, _F, 2, ((1, 1), (0, 0)))
    np.testing.assert_allclose(tf.nn.conv2d(_X, _F, stride, "SAME"), wanted)


def test_explicit_padding_and_dilation():
    wanted = _by_definition(_X, _F, 1, ((1, 2), (0, 3)), 2)
    got = tf.nn.conv2d(_X, _F, 1, [[0, 0], [1, 2], [0, 3], [0, 0]], dilations=2)
    np.testing.assert_allclose(got, wanted)


def test_channels_first():
    x = np.ascontiguousarray(_X.transpose(0, 3, 1, 2))
    wanted = tf.nn.conv2d(_X, _F, [1, 2, 1, 1], [[0, 0], [1, 0], [0, 1], [0, 0]]).numpy()
    got = tf.nn.conv2d(x, _F, [1, 1, 2, 1], [[0, 0], [0, 0], [1, 0], [0, 1]], "NCHW")
    np.testing.assert_allclose(got, wanted.transpose(0, 3, 1, 2))


def test_groups_follow_from_the_shapes():
    f = _RNG.normal(size=(2, 2, 2, 6))
    got = tf.nn.conv2d(_X, f, 1, "VALID")
    parts = [tf.nn.conv2d(_X[..., 2 * i:2 * i + 2], f[..., 3 * i:3 * i + 3], 1, "VALID").numpy()
             for i in range(2)]
    np.testing.assert_allclose(got, np.concatenate(parts, -1))


def test_transposes_are_adjoint():
    f = _RNG.normal(size=(3, 2, 5, 4))
    for padding, shape in (("SAME", (2, 10, 12, 5)), ("VALID", (2, 11, 12, 5))):
        y = _RNG.normal(size=shape)
        up = tf.nn.conv2d_transpose(_X, f, shape, 2, padding).numpy()
        down = tf.nn.conv2d(y, f, 2, padding).numpy()
        np.testing.assert_allclose(np.vdot(up, y), np.vdot(_X, down))


def test_one_and_three_dimensions_agree_with_two():
    x, f = _X[:, :, 0], _F[:, 0]
    one = tf.nn.conv1d(x, f, 2, "SAME")
    two = tf.nn.conv2d(x[:, :, None], f[:, None], [2, 1], "SAME")
    np.testing.assert_allclose(one, two[:, :, 0])
    three = tf.nn.conv3d(_X[:, None], _F[None], 1, "SAME")
    np.testing.assert_allclose(three[:, 0], tf.nn.conv2d(_X, _F, 1, "SAME"))
    np.testing.assert_allclose(tf.nn.convolution(_X, _F, 1, "SAME"), three[:, 0])
    np.testing.assert_allclose(tf.conv(_X, _F, [1, 1, 1, 1], "SAME"), three[:, 0])


def test_the_named_gradients_are_the_gradients():
    x, f = tf.Variable(_X), tf.Variable(_F)
    with tf.GradientTape() as tape:
        y = tf.nn.conv2d(x, f, 2, "SAME")
    g = tf.constant(_RNG.normal(size=y.shape.as_list()))
    d_x, d_f = tape.gradient(y, [x, f], g)
    np.testing.assert_allclose(tf.conv2d_backprop_input_v2(x, f, g, [1, 2, 2, 1], "SAME"), d_x)
    np.testing.assert_allclose(tf.conv2d_backprop_filter_v2(x, f, g, [1, 2, 2, 1], "SAME"), d_f)
    for wrong in (2**31, 1j):
        with pytest.raises(tf.errors.InvalidArgumentError, match="filter must have the shape"):
            tf.conv2d_backprop_filter_v2(x, wrong, g, [1, 2, 2, 1], "SAME")


def test_atrous():
    wanted = tf.nn.conv2d(_X, _F, 1, "SAME", dilations=2)
    np.testing.assert_array_equal(tf.nn.atrous_conv2d(_X, _F, 2, "SAME"), wanted)
    up = tf.nn.atrous_conv2d_transpose(wanted, _F, [2, 5, 6, 4], 2, "SAME")
    assert up.shape == (2, 5, 6, 4)


def test_depthwise_is_a_convolution_of_each_channel():
    f = _RNG.normal(size=(2, 2, 4, 2))
    got = tf.nn.depthwise_conv2d(_X, f, [1, 1, 1, 1], "SAME").numpy()
    for c in range(4):
        part = tf.nn.conv2d(_X[..., c:c + 1], f[:, :, c:c + 1], 1, "SAME")
        np.testing.assert_allclose(got[..., 2 * c:2 * c + 2], part)


def test_separable_and_depthwise_gradients():
    f, point = tf.Variable(_RNG.normal(size=(2, 2, 4, 2))), _RNG.normal(size=(1, 1, 8, 3))
    x = tf.Variable(_X)
    got = tf.nn.separable_conv2d(x, f, point, [1, 1, 1, 1], "SAME")
    depthwise = tf.nn.depthwise_conv2d(x, f, 1, "SAME")
    np.testing.assert_allclose(got, tf.nn.conv2d(depthwise, point, 1, "SAME"))
    with tf.GradientTape() as tape:
        y = tf.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "VALID")
    g = np.ones(y.shape.as_list())
    d_x, d_f = tape.gradient(y, [x, f])
    np.testing.assert_allclose(d_x, tf.nn.depthwise_conv2d_backprop_input(
        [2, 5, 6, 4], f, g, [1, 2, 2, 1], "VALID"))
    np.testing.assert_allclose(d_f, tf.nn.depthwise_conv2d_backprop_filter(
        x, [2, 2, 4, 2], g, [1, 2, 2, 1], "VALID"))


def test_dilation_and_erosion():
    x = np.array([[1.0, 5, 2], [0, 3, 1], [4, 2, 2]])[None, :, :, None]
    f = np.zeros((2, 2, 1))
    top = tf.nn.dilation2d(x, f, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    np.testing.assert_array_equal(top[0, :, :, 0], [[5, 5], [4, 3]])
    low = tf.nn.erosion2d(x, f, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    np.testing.assert_array_equal(low[0, :, :, 0], [[0, 1], [0, 1]])


@pytest.mark.parametrize("x, f, strides, padding, message", [
    (_X[0], _F, 1, "SAME", "rank 4"), (_X[..., :3], _F, 1, "SAME", "channels"),
    (_X, _F, 1, "HALF", "padding"), (_X, _F, [1, 2, 3], "SAME", "strides"),
    (_X, _F, 0, "SAME", "1 or more"), (_X, _F, [2, 1, 1, 1], "SAME", "batch"),
    (_X, np.ones((9, 9, 4, 1)), 1, "VALID", "fit"),
    (_X.astype(int), _F.astype(int), 1, "SAME", "floating")])
def test_errors(x, f, strides, padding, message):
    with pytest.raises(ValueError, match=message):
        tf.nn.conv2d(x, f, strides, padding)


def test_more_errors():
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.conv2d(_X, _F, 1, "SAME", "NHCW")
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have"):
        tf.nn.conv2d_transpose(_X, np.ones((2, 2, 3, 4)), [2, 5, 5, 3], 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels"):
        tf.nn.depthwise_conv2d(_X, np.ones((2, 2, 3, 1)), 1, "SAME")


def test_gradients_without_features():
    x, f = tf.Variable(_X), tf.Variable(_F[..., :0])
    with tf.GradientTape() as tape:
        y = tf.nn.conv2d(x, f, 1, "VALID")
    d_x, d_f = tape.gradient(y, [x, f])
    np.testing.assert_array_equal(d_x, np.zeros_like(_X))
    assert d_f.shape == (3, 2, 4, 0)


def test_empty_batches_and_results():
    assert tf.nn.conv2d(_X[:0], _F, 1, "SAME").shape == (0, 5, 6, 3)
    assert tf.nn.conv2d(_X, np.ones((6, 2, 4, 3)), 1, "VALID").shape == (2, 0, 5, 3)
