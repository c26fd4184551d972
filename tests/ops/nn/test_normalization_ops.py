"""Normalization and moments: against their formulas, and what the fused rules return."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.ops.nn.normalization import batch_norm_training, layer_norm, rms_norm

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(5, 4))


def test_moments():
    mean, variance = tf.nn.moments(_X, [0])
    np.testing.assert_allclose(mean, _X.mean(0))
    np.testing.assert_allclose(variance, _X.var(0))
    mean, variance = tf.nn.moments(_X, [0, 1], keepdims=True)
    assert mean.shape == variance.shape == (1, 1)
    half = tf.nn.moments(_X.astype(np.float16), -1)[1]
    assert half.dtype is tf.float16
    np.testing.assert_allclose(half, _X.var(-1), rtol=1e-2)


def test_weighted_moments():
    weights = np.abs(_RNG.normal(size=(5, 1)))
    mean, variance = tf.nn.weighted_moments(_X, [0], weights)
    wanted = (weights * _X).sum(0) / weights.sum()
    np.testing.assert_allclose(mean, wanted)
    np.testing.assert_allclose(variance, (weights * (_X - wanted) ** 2).sum(0) / weights.sum())


@pytest.mark.parametrize("shift", [None, 0.5])
def test_sufficient_statistics_give_the_moments(shift):
    parts = tf.nn.sufficient_statistics(_X, [0], shift)
    mean, variance = tf.nn.normalize_moments(*parts)
    np.testing.assert_allclose(mean, _X.mean(0))
    np.testing.assert_allclose(variance, _X.var(0))


def test_batch_normalization():
    mean, variance = _X.mean(0), _X.var(0)
    wanted = (_X - mean) / np.sqrt(variance + 1e-3)
    np.testing.assert_allclose(
        tf.nn.batch_normalization(_X, mean, variance, None, None, 1e-3), wanted)
    np.testing.assert_allclose(
        tf.nn.batch_normalization(_X, mean, variance, 2.0, 3.0, 1e-3), 3 * wanted + 2)
    np.testing.assert_allclose(tf.nn.batch_norm_with_global_normalization(
        _X, mean, variance, 2.0, 3.0, 1e-3, False), wanted + 2)


def test_fused_forms_equal_their_formulas():
    x, scale, shift = (tf.constant(v) for v in (_X, np.arange(4.0), np.ones(4)))
    trained = batch_norm_training(x, scale, shift, axes=(0,), eps=1e-3)
    wanted = (_X - _X.mean(0)) / np.sqrt(_X.var(0) + 1e-3) * np.arange(4) + 1
    np.testing.assert_allclose(trained, wanted)
    layered = layer_norm(x, scale, shift, axes=(1,), eps=1e-3)
    normal = (_X - _X.mean(1, keepdims=True)) / np.sqrt(_X.var(1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(layered, normal * np.arange(4) + 1)
    scaled = rms_norm(x, scale, axes=(1,), eps=0.0)
    np.testing.assert_allclose(
        scaled, _X / np.sqrt((_X ** 2).mean(1, keepdims=True)) * np.arange(4))


def test_training_gives_the_statistics_too():
    x, one = tf.Variable(_X), tf.ones([4], tf.float64)
    with tf.GradientTape() as tape:
        y, mean, variance = batch_norm_training.run((x._read_(), one, one), ((0,), 1e-3))
        loss = tf.reduce_sum(variance) + 0 * tf.reduce_sum(y)
    np.testing.assert_allclose(mean[0], _X.mean(0))
    np.testing.assert_allclose(variance[0], _X.var(0))
    np.testing.assert_allclose(tape.gradient(loss, x), 2 * (_X - _X.mean(0)) / 5)


def test_a_fused_norm_is_one_record():
    x, one = tf.constant(_X), tf.ones([4], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        layer_norm(x, one, one, axes=(1,), eps=1e-3)
    assert len(tape._records) == 1


def test_local_response_normalization():
    x = _RNG.normal(size=(1, 2, 2, 6))
    got = tf.nn.lrn(x, 1, 2.0, 0.5, 0.75).numpy()
    for c in range(6):
        total = (x[..., max(c - 1, 0):c + 2] ** 2).sum(-1)
        np.testing.assert_allclose(got[..., c], x[..., c] / (2 + 0.5 * total) ** 0.75)
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank 4"):
        tf.nn.lrn(x[0])


def test_bias_add():
    x = np.zeros((2, 3, 4))
    np.testing.assert_array_equal(tf.nn.bias_add(x, np.arange(4.0))[0, 0], np.arange(4))
    np.testing.assert_array_equal(tf.nn.bias_add(x, np.arange(3.0), "NCW")[0, :, 0], np.arange(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[4\]"):
        tf.nn.bias_add(x, np.ones(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank 2"):
        tf.nn.bias_add(np.ones(3), np.ones(3))


def test_no_such_axis():
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
        tf.nn.moments(_X, [2])
