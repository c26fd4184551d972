"""Losses: conventions of the cross entropies, stability, errors, averages."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def _gradients(function, *values):
    tensors = [tf.constant(v, tf.float32) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return y.numpy(), tape.gradient(y, tensors)


def _xent(labels, logits):
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def test_labels_get_minus_log_softmax():
    loss, (d_labels, d_logits) = _gradients(_xent, [[0.3, 0.7]], [[1.0, 2.0]])
    np.testing.assert_allclose(loss, [0.6132617], rtol=1e-6)
    np.testing.assert_allclose(d_logits, [[-0.03105858, 0.03105861]], rtol=1e-5)
    np.testing.assert_allclose(d_labels, [[1.3132616, 0.31326166]], rtol=1e-6)


def test_logits_get_softmax_minus_labels_whatever_the_labels():
    _, (_, d_logits) = _gradients(_xent, [[1.0, 1.0]], [[1.0, 2.0]])
    np.testing.assert_allclose(d_logits, [[-0.7310586, -0.2689414]], rtol=1e-6)


def test_cross_entropy_is_stable():
    loss, (d_labels, d_logits) = _gradients(_xent, [[1.0, 0.0]], [[1000.0, 0.0]])
    assert loss == 0
    np.testing.assert_array_equal(d_logits, [[0, 0]])
    np.testing.assert_array_equal(d_labels, [[0, 1000]])


def test_axis_broadcasting_and_label_dtypes():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    labels = np.eye(4)[[1, 2, 0]]
    rows = tf.nn.softmax_cross_entropy_with_logits(labels, x)
    columns = tf.nn.softmax_cross_entropy_with_logits(labels.T, x.T, axis=0)
    np.testing.assert_allclose(rows, columns, rtol=1e-6)
    integers = tf.nn.softmax_cross_entropy_with_logits(labels.astype(np.int32), x)
    np.testing.assert_array_equal(rows, integers)
    one = tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[1.0, 0.0], [2.0, 3.0]])
    np.testing.assert_allclose(one, [1.3132616, 0.31326166], rtol=1e-6)


def test_sparse_equals_one_hot():
    x = tf.Variable(np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32))
    labels = np.array([[0, 3, 1], [2, 2, 0]])
    with tf.GradientTape(persistent=True) as tape:
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        dense = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), x)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(sparse, x), tape.gradient(dense, x), atol=1e-6)


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_out_of_range_is_an_error(label):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[0, 2\)"):
        tf.nn.sparse_softmax_cross_entropy_with_logits([label], [[1.0, 2.0]])


@pytest.mark.parametrize("labels, logits, message", [
    ([[1]], [[1.0, 2.0]], "shape"), ([1, 0], [[1.0, 2.0]], "shape"), (1, 1.0, "scalar"),
    ([1.0], [[1.0, 2.0]], "integers"), ([1], [[1, 2]], "floating")])
def test_sparse_errors(labels, logits, message):
    with pytest.raises(ValueError, match=message):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def test_empty_batches():
    empty = np.zeros((0, 3), np.float32)
    assert _xent(empty, empty).shape == (0,)
    labels = np.zeros(0, np.int32)
    assert tf.nn.sparse_softmax_cross_entropy_with_logits(labels, empty).shape == (0,)


def test_sigmoid_cross_entropy():
    loss, (d_labels, d_logits) = _gradients(
        lambda z, x: tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        [1.0, 0.0, 1.0], [0.0, 100.0, -100.0])
    np.testing.assert_allclose(loss, [0.6931472, 100, 100])
    np.testing.assert_allclose(d_logits, [-0.5, 1, -1])
    np.testing.assert_allclose(d_labels, [0, -100, 100])


@pytest.mark.parametrize("function", [
    tf.nn.sigmoid_cross_entropy_with_logits,
    lambda labels, logits: tf.nn.weighted_cross_entropy_with_logits(labels, logits, 2.0),
    tf.nn.log_poisson_loss])
def test_integers_beside_floats_are_refused_where_both_are_lists(function):
    # As in TensorFlow, which converts each by itself; beside a tensor they take its dtype.
    with pytest.raises(tf.errors.InvalidArgumentError):
        function([0, 1], [0.5, -0.5])
    expected = function([0.0, 1.0], [0.5, -0.5])
    np.testing.assert_allclose(function([0, 1], tf.constant([0.5, -0.5])), expected)


def test_weighted_cross_entropy():
    loss, (d_labels, d_logits) = _gradients(
        lambda z, x: tf.nn.weighted_cross_entropy_with_logits(z, x, pos_weight=2.0), [1.0], [0.0])
    np.testing.assert_allclose(loss, [1.3862944])
    np.testing.assert_allclose(d_logits, [0])
    np.testing.assert_allclose(d_labels, [0.6931472])


@pytest.mark.parametrize("function", [
    tf.nn.sigmoid_cross_entropy_with_logits,
    lambda z, x: tf.nn.weighted_cross_entropy_with_logits(z, x, 1.0), tf.nn.log_poisson_loss])
def test_shapes_must_be_equal(function):
    with pytest.raises(ValueError, match="same shape"):
        function([1.0], [[1.0, 2.0]])


def test_poisson_loss():
    loss = tf.nn.log_poisson_loss([1.0, 2.0, 0.5], [0.1, 0.2, 0.3], True)
    np.testing.assert_allclose(loss, [1.005171, 1.4732093, 1.1998589], rtol=1e-6)


def test_averages():
    assert tf.nn.compute_average_loss([1.0, 2.0]).numpy() == 1.5
    weighted = tf.nn.compute_average_loss([1.0, 2.0], [1.0, 3.0], global_batch_size=8)
    assert weighted.numpy() == 0.875
    assert tf.nn.scale_regularization_loss([1.0, 2.0]).numpy() == 3
    assert tf.nn.compute_average_loss(tf.zeros([0])).numpy() == 0
    with pytest.raises(ValueError, match="rank 1"):
        tf.nn.compute_average_loss(1.0)


def test_l2_loss():
    loss, (d,) = _gradients(tf.nn.l2_loss, [3.0, 4.0])
    assert loss == 12.5
    np.testing.assert_array_equal(d, [3, 4])
