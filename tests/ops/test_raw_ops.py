"""tf.raw_ops: ops that are called by keywords alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_ROWS = [[1, 0, 0], [1, 0, 0], [2, 0, 0]]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_bucketize_counts_the_boundaries_below(dtype: str) -> None:
    values = tf.cast([[-5, 10000], [150, 10], [5, 100]], dtype)
    found = tf.raw_ops.Bucketize(input=values, boundaries=[0, 10, 100])
    assert found.dtype == tf.int32
    assert found.numpy().tolist() == [[0, 3], [3, 2], [1, 3]]


def test_bucketize_of_no_boundaries_and_of_nan() -> None:
    assert tf.raw_ops.Bucketize(input=[0.0, 1.5], boundaries=[]).numpy().tolist() == [0, 0]
    assert tf.raw_ops.Bucketize(input=[0.0, 1.5], boundaries=[1, 1]).numpy().tolist() == [0, 2]


def test_bucketize_refuses() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="sorted"):
        tf.raw_ops.Bucketize(input=[1.0], boundaries=[2.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.cast"):
        tf.raw_ops.Bucketize(input=tf.constant([1.0], tf.float16), boundaries=[1.0])
    with pytest.raises(TypeError, match="a list"):
        tf.raw_ops.Bucketize(input=[1.0], boundaries=tf.constant([2.0]))
    with pytest.raises(TypeError):
        tf.raw_ops.Bucketize([1.0], [2.0])


def test_unique_slices_along_an_axis() -> None:
    found = tf.raw_ops.UniqueWithCountsV2(x=tf.constant(_ROWS), axis=[0])
    assert [v.numpy().tolist() for v in found] == [[[1, 0, 0], [2, 0, 0]], [0, 0, 1], [2, 1]]
    columns = tf.raw_ops.UniqueV2(x=tf.constant(_ROWS), axis=[-1], out_idx=tf.int64)
    assert columns.idx.dtype == tf.int64
    assert [v.numpy().tolist() for v in columns] == [[[1, 0], [1, 0], [2, 0]], [0, 1, 1]]


def test_unique_elements_in_the_order_of_their_first_occurrence() -> None:
    found = tf.raw_ops.UniqueV2(x=tf.constant(["b", "a", "b"]), axis=[])
    assert [v.numpy().tolist() for v in found] == [[b"b", b"a"], [0, 1, 0]]
    nans = tf.unique(tf.constant([np.nan, 1.0, np.nan, 0.0, -0.0]))
    assert nans.idx.numpy().tolist() == [0, 1, 2, 3, 3]


def test_unique_of_nothing() -> None:
    found = tf.raw_ops.UniqueWithCountsV2(x=tf.zeros((0, 3)), axis=[0])
    assert [v.shape.as_list() for v in found] == [[0, 3], [0], [0]]
    alike = tf.raw_ops.UniqueWithCountsV2(x=tf.zeros((3, 0)), axis=[0])
    assert alike.y.shape == (1, 0)
    assert [v.numpy().tolist() for v in alike[1:]] == [[0, 0, 0], [3]]


def test_unique_refuses_an_axis_that_is_not_there() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
        tf.raw_ops.UniqueV2(x=tf.constant([1]), axis=[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="vector"):
        tf.raw_ops.UniqueV2(x=tf.constant(_ROWS), axis=[])


@pytest.mark.parametrize("begin, wanted", [
    ([0, 1], [[0, 7, 8, 0], [0, 0, 0, 0]]), ([1, 9], [[0, 0, 0, 0], [0, 0, 7, 8]]),
    ([-3, -1], [[7, 8, 0, 0], [0, 0, 0, 0]])])
def test_a_block_is_replaced_inside_the_tensor(begin: list[int], wanted: list[list[int]]) -> None:
    def replaced(at: Any) -> Any:
        return tf.raw_ops.XlaDynamicUpdateSlice(
            input=tf.zeros([2, 4]), update=[[7.0, 8.0]], indices=at)

    assert replaced(begin).numpy().tolist() == wanted
    assert tf.function(replaced)(tf.constant(begin)).numpy().tolist() == wanted


def test_gradients_of_a_block_and_of_what_is_left() -> None:
    x, block = tf.ones([3]), tf.constant([5.0])
    with tf.GradientTape() as tape:
        tape.watch([x, block])
        y = tf.raw_ops.XlaDynamicUpdateSlice(input=x, update=block, indices=[1]) * [1.0, 2.0, 3.0]
    assert [g.numpy().tolist() for g in tape.gradient(y, [x, block])] == [[1, 0, 3], [2]]
    scalar = tf.raw_ops.XlaDynamicUpdateSlice(input=1.0, update=2.0, indices=tf.zeros([0]))
    assert scalar.numpy() == 2.0


@pytest.mark.parametrize("update, indices", [
    (tf.zeros([4]), [0]), (tf.zeros([1, 1]), [0]), (tf.zeros([1]), [0, 0]), ([1], [0])])
def test_a_block_that_does_not_fit(update: Any, indices: list[int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="must fit into input"):
        tf.raw_ops.XlaDynamicUpdateSlice(input=tf.ones([3]), update=update, indices=indices)


def test_others_are_named_as_absent() -> None:
    with pytest.raises(AttributeError, match="public function"):
        tf.raw_ops.AddV2
