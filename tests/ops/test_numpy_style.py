"""tf.experimental.numpy, stateless dropout, bitcast and products of bytes, by TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_WHERE = [tf.constant([True, False, False]), tf.constant([True, True, False])]
_INTEGERS = [tf.constant([1, 2, 3]), tf.constant([4, 5, 6])]
_FLOATS = [tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])]


@pytest.mark.parametrize(("choices", "default", "expected", "dtype"), [
    (_FLOATS, 0, [1, 5, 0], tf.float32), (_INTEGERS, 0, [1, 5, 0], tf.int32),
    (_INTEGERS, 1.5, [1, 5, 1.5], tf.float64), (_FLOATS, tf.constant(0.0), [1, 5, 0], tf.float32),
    ([_INTEGERS[0], _FLOATS[1]], 0, [1, 5, 0], tf.float64), ([1, 2], 3, [1, 2, 3], tf.int64)])
def test_select(choices: Any, default: Any, expected: Any, dtype: tf.DType) -> None:
    made = tf.experimental.numpy.select(_WHERE, choices, default)
    assert made.numpy().tolist() == expected
    assert made.dtype == dtype


def test_select_is_differentiable_in_the_choices() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.experimental.numpy.select(_WHERE, [x, 2 * x], 0)
    assert tape.gradient(y, x).numpy().tolist() == [1, 2, 0]


def test_select_refuses_lists_that_do_not_fit() -> None:
    for conditions, choices in ((_WHERE, [1]), ([], [])):
        with pytest.raises(ValueError, match="condlist"):
            tf.experimental.numpy.select(conditions, choices)


def test_limits() -> None:
    numpy = tf.experimental.numpy
    assert numpy.finfo(tf.float32).eps == np.finfo(np.float32).eps
    assert float(numpy.finfo("bfloat16").eps) == 2.0 ** -7
    assert numpy.iinfo(tf.int8).max == 127
    for wrong in (lambda: numpy.finfo(tf.int32), lambda: numpy.iinfo(tf.float32)):
        with pytest.raises(ValueError, match="info"):
            wrong()


def test_stateless_dropout() -> None:
    x = tf.ones((100, 50))
    drop = tf.nn.experimental.stateless_dropout
    once = drop(x, 0.25, [1, 2]).numpy()
    assert set(np.unique(once).tolist()) == {0, np.float32(4 / 3).item()}
    assert abs((once == 0).mean() - 0.25) < 0.03
    assert once.tolist() == drop(x, rate=0.25, seed=tf.constant([1, 2])).numpy().tolist()
    assert once.tolist() != drop(x, 0.25, [1, 3]).numpy().tolist()
    rows = drop(x, 0.5, [1, 2], noise_shape=[None, 1]).numpy()
    assert ((rows == 0).all(1) | (rows == 2).all(1)).all()
    assert drop(x, 0.0, [1, 2]) is x
    traced = tf.function(lambda seed: drop(x, 0.25, seed))(tf.constant([1, 2]))
    assert traced.numpy().tolist() == once.tolist()


def test_stateless_dropout_refuses() -> None:
    drop = tf.nn.experimental.stateless_dropout
    with pytest.raises(ValueError, match="rate"):
        drop(tf.ones(3), 1.0, [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="seed"):
        drop(tf.ones(3), 0.5, 1)


def test_bitcast_to_smaller_and_larger_elements() -> None:
    x = tf.constant([1.5, -2.0])
    assert tf.bitcast(x, tf.int8).numpy().tolist() == [[0, 0, -64, 63], [0, 0, 0, -64]]
    assert tf.bitcast(x, tf.float64).numpy() == x.numpy().view(np.float64)
    assert tf.bitcast(x, tf.complex64).numpy() == 1.5 - 2j
    assert tf.bitcast(tf.zeros((0, 3)), tf.int8).shape == (0, 3, 4)
    traced = tf.function(lambda x: tf.bitcast(2 * x, tf.int16))(x)
    assert traced.numpy().tolist() == tf.bitcast(2 * x, tf.int16).numpy().tolist()


def test_bytes_that_make_no_element_are_refused() -> None:
    for value, dtype in ((1.0, tf.int64), ([True], tf.int8), (["a"], tf.int8)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="bitcast"):
            tf.bitcast(tf.constant(value), dtype)


def test_products_of_bytes_add_up_in_the_output_type() -> None:
    x = tf.constant([[100, 100], [50, -100]], tf.int8)
    assert tf.matmul(x, x, output_type=tf.int32).numpy().tolist() == [[15000, 0], [0, 15000]]
    unsigned = tf.cast(x, tf.uint8)
    assert tf.matmul(unsigned, x, output_type=tf.int32).numpy().tolist() == [
        [15000, 0], [12800, -10600]]
    long = tf.fill((1, 100_000), tf.constant(127, tf.int8))
    exact = tf.matmul(long, long, transpose_b=True, output_type=tf.int32)
    assert exact.numpy().tolist() == [[127 * 127 * 100_000]]
    half = tf.matmul(*[tf.constant([[300.0]], tf.float16)] * 2, output_type=tf.float32)
    assert half.numpy() == 90000
