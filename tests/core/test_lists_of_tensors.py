"""Lists that hold tensors, and shapes, where a tensor is wanted: as TensorFlow 2.21 has them."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_they_are_cast_to_the_dtype_asked_for() -> None:
    i, f = tf.constant(3), tf.constant(3.5)
    for value, dtype, expected in (
            ([i, i], tf.float32, [3, 3]), ([i, 2.5], tf.float32, [3, 2.5]),
            ([f, i], tf.int32, [3, 3]), ([f, 2], tf.float16, [3.5, 2]),
            ([[i, 2], [3, 4]], tf.float32, [[3, 2], [3, 4]]),
            ([tf.constant([1, 2]), tf.constant([3, 4])], tf.float32, [[1, 2], [3, 4]]),
            ([tf.Variable(3)], tf.float32, [3])):
        made = tf.convert_to_tensor(value, dtype)
        assert made.dtype == dtype and made.numpy().tolist() == expected


def test_gradients_go_through_them() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.convert_to_tensor([x, 3.0], tf.float64)
    assert tape.gradient(y, x).numpy() == 1


def test_without_a_dtype_they_must_agree() -> None:
    for value in ([tf.constant(3), 2.5], [tf.constant(3.5), tf.constant(3)]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="stack"):
            tf.convert_to_tensor(value)


def test_one_tensor_is_not_cast() -> None:
    with pytest.raises(ValueError, match="never cast in silence"):
        tf.convert_to_tensor(tf.constant(3), tf.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_floating_length_in_a_list_is_cut_off_if_it_is_a_tensor(dtype: str) -> None:
    three = tf.constant(3.0, dtype)
    assert tf.reshape(tf.range(3), [1, three]).shape == (1, 3)
    assert tf.zeros([three, 2]).shape == (3, 2)
    assert tf.tile([1], [three]).shape == 3


def test_other_floating_lengths_are_refused() -> None:
    for wrong in ([np.float32(3)], tf.constant([3.0]), [3.0], [tf.constant(np.inf)]):
        with pytest.raises(TypeError, match="integer"):
            tf.reshape(tf.range(3), wrong)


def test_a_shape_is_a_tensor_of_its_lengths() -> None:
    shape = tf.TensorShape([2, 3])
    assert tf.constant(shape).dtype == tf.int32
    assert tf.convert_to_tensor(shape, tf.int64).dtype == tf.int64
    assert tf.concat([shape, [1]], 0).numpy().tolist() == [2, 3, 1]
    assert tf.reduce_prod(shape).numpy() == 6
    assert tf.convert_to_tensor(tf.TensorShape([2 ** 33])).dtype == tf.int64
    with pytest.raises(ValueError, match=r"tf\.shape"):
        tf.constant(tf.TensorShape([None, 3]))


class _Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __tf_tensor__(self, dtype: tf.DType | None = None, name: str | None = None) -> tf.Tensor:
        if dtype is tf.int32:
            raise ValueError("degrees are no integers")
        return tf.constant(self.degrees, dtype)


def test_an_object_says_itself_what_tensor_it_is() -> None:
    assert tf.convert_to_tensor(_Celsius(1.5)).numpy() == 1.5
    assert tf.convert_to_tensor(_Celsius(1.5), tf.float64).dtype == tf.float64
    assert (tf.constant(1.0) + _Celsius(1.5)).numpy() == 2.5
    assert tf.exp(_Celsius(0.0)).numpy() == 1
    with pytest.raises(ValueError, match="no integers"):
        tf.convert_to_tensor(_Celsius(1.5), tf.int32)
