"""Sums over many float16 or bfloat16 values: accumulated in float32, on every way to a sum."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gtape as tf

COUNT = 4096


def _dtypes() -> list[tf.DType]:
    names = ["float16"]
    try:
        import ml_dtypes  # noqa: F401

        names.append("bfloat16")
    except ImportError:
        pass
    return [tf.as_dtype(name) for name in names]


@pytest.mark.parametrize("dtype", _dtypes(), ids=lambda d: d.name)
def test_the_gradient_of_a_broadcast_input_counts_every_row(dtype: tf.DType) -> None:
    bias = tf.Variable(tf.zeros([2], dtype))
    x = tf.ones([COUNT, 2], dtype)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as tape:
            y = x * bias * bias + bias
        slope = tape.gradient(y, bias)
    assert slope.numpy().astype(float).tolist() == [COUNT, COUNT]
    assert outer.gradient(slope, bias).numpy().astype(float).tolist() == [2 * COUNT, 2 * COUNT]


@pytest.mark.parametrize("dtype", _dtypes(), ids=lambda d: d.name)
@pytest.mark.parametrize("axis", [0, None])
def test_reductions(dtype: tf.DType, axis: int | None) -> None:
    x = tf.ones([COUNT, 1], dtype)

    def value(y: tf.Tensor) -> float:
        return float(y.numpy().astype(float).reshape(()))

    assert value(tf.reduce_sum(x, axis)) == COUNT
    assert value(tf.reduce_mean(x, axis)) == 1
    assert value(tf.math.reduce_std(x, axis)) == 0
    assert value(tf.reduce_logsumexp(x, axis)) == pytest.approx(1 + np.log(COUNT), rel=4e-3)
    assert value(tf.math.cumsum(x, 0)[-1, 0]) == COUNT


@pytest.mark.parametrize("dtype", _dtypes(), ids=lambda d: d.name)
def test_range_and_pickle(dtype: tf.DType) -> None:
    assert float(dtype.max) == -float(dtype.min) > 6e4
    x = tf.constant([1.0, 2.0], dtype)
    assert pickle.loads(pickle.dumps(x)).dtype is dtype


@pytest.mark.parametrize("dtype", [tf.bool, tf.complex64, tf.string])
def test_dtypes_without_order_have_no_range(dtype: tf.DType) -> None:
    with pytest.raises(TypeError, match="real numbers"):
        dtype.max
