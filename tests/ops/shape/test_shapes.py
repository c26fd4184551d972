"""shape, size, rank, broadcast shapes and unravel_index."""

from __future__ import annotations

import pytest

import gtape as tf


def test_shape_size_and_rank() -> None:
    x = tf.zeros([2, 0, 3])
    assert tf.shape(x).numpy().tolist() == [2, 0, 3] and tf.shape(x).dtype == tf.int32
    assert tf.shape([[1, 2]], tf.int64).dtype == tf.int64
    assert tf.size(x).numpy() == 0 and tf.size(3.0).numpy() == 1
    assert tf.rank(x).numpy() == 3 and tf.rank(1).numpy() == 0
    assert [s.numpy().tolist() for s in tf.shape_n([x, [1.0]])] == [[2, 0, 3], [1]]


def test_the_shape_of_a_variable_does_not_read_it() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        assert tf.shape(v).numpy().tolist() == [2]
    assert tape.watched_variables() == ()


def test_sparse_gradients_have_the_shape_of_the_whole() -> None:
    assert tf.shape(tf.IndexedSlices([[1.0]], [0], [4, 1])).numpy().tolist() == [4, 1]


def test_shapes_as_arguments() -> None:
    x = tf.zeros([2, 3])
    assert tf.reshape(x, [tf.shape(x)[1], -1]).shape == [3, 2]
    assert tf.zeros(tf.shape(x)).shape == [2, 3]
    assert (tf.reduce_sum(x + 1.0) / tf.cast(tf.size(x), tf.float32)).numpy() == 1


def test_wrong_out_type() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="out_type"):
        tf.shape([1], tf.float32)


def test_static_broadcast() -> None:
    assert tf.broadcast_static_shape([2, 1], [3]) == tf.TensorShape([2, 3])
    assert tf.broadcast_static_shape([None, 3], [1, 1]).as_list() == [None, 3]
    assert tf.broadcast_static_shape([], [4]) == tf.TensorShape([4])
    with pytest.raises(ValueError, match="equal or 1"):
        tf.broadcast_static_shape([2], [3])


def test_dynamic_broadcast() -> None:
    assert tf.broadcast_dynamic_shape([2, 1], [3]).numpy().tolist() == [2, 3]
    wide = tf.broadcast_dynamic_shape(tf.constant([2, 1], tf.int64), tf.constant([3], tf.int64))
    assert wide.dtype == tf.int64
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.broadcast_dynamic_shape([2], [3])


def test_unravel_index() -> None:
    assert tf.unravel_index([2, 5, 7], [3, 3]).numpy().tolist() == [[0, 1, 2], [2, 2, 1]]
    assert tf.unravel_index(4, [3, 3]).numpy().tolist() == [1, 1]
    for bad in ([9], [-1], [0.5]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.unravel_index(bad, [3, 3])


def test_stack_takes_python_numbers_as_constant_does():
    assert tf.stack([1, 2.5]).numpy().tolist() == [1, 2.5]
    assert tf.stack([]).shape == (0,)
    with pytest.raises(TypeError, match="concat takes a list of tensors; got None"):
        tf.concat(None, 0)


def test_nothing_and_less_than_nothing():
    assert tf.linspace(0.0, 1.0, 0).shape == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative; got -1"):
        tf.one_hot([0], -1)


@pytest.mark.parametrize("have, asked, wanted", [
    ([0, 6], [0, -1, 3], [0, 2, 3]), ([0, 6], [-1, 0], [6, 0]), ([2, 0], [-1, 0], [2, 0]),
    ([6, 0, 2], [0, -1, 2], [0, 6, 2]), ([0], [0, -1], [0, 1]), ([0, 5], [-1, 0, 3], [1, 0, 3]),
    ([6, 0], [-1, 4, 0], [1, 4, 0]), ([0, 2], [-1, 3], [0, 3]), ([0, 2], [-1, 0, 3], [0, 0, 3])])
def test_an_open_length_of_nothing_follows_from_the_lengths_that_are_not_zero(
        have: list[int], asked: list[int], wanted: list[int]) -> None:
    x = tf.zeros(have)
    assert tf.reshape(x, asked).shape == wanted
    assert tf.function(lambda x: tf.reshape(x, asked))(x).shape == wanted
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reshape(x, asked)
    assert tape.gradient(y, x).shape == have


def test_elements_are_not_lost_in_an_empty_shape() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="must stay 6"):
        tf.reshape(tf.zeros([6]), [0, -1])
