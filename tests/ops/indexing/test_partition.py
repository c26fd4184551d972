"""dynamic_partition and dynamic_stitch."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_M = [[1.0, 2.0], [3.0, 4.0]]


def _lists(tensors: Any) -> list[Any]:
    return [t.numpy().tolist() for t in tensors]


def test_partition() -> None:
    assert _lists(tf.dynamic_partition(_M, [1, 0], 2)) == [[[3, 4]], [[1, 2]]]
    assert _lists(tf.dynamic_partition(_M, [[1, 0], [0, 0]], 3)) == [[2, 3, 4], [1], []]
    assert [t.shape.as_list() for t in tf.dynamic_partition(_M, 1, 2)] == [[0, 2, 2], [1, 2, 2]]


@pytest.mark.parametrize("partitions, count", [([1, 2], 2), ([1], 2), ([0, 1], 0), ([0.0, 1.0], 2),
                                               ([-1, 0], 2)])
def test_partitions_that_do_not_fit(partitions: Any, count: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.dynamic_partition(_M, partitions, count)


def test_the_gradient_of_one_part() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.dynamic_partition(x, [0, 1, 0], 2)[0] ** 2
    assert tape.gradient(y, x).numpy().tolist() == [2, 0, 6]


def test_stitch() -> None:
    rows = tf.dynamic_stitch([[2, 0], [1]], [[[1], [2]], [[3]]])
    assert rows.numpy().tolist() == [[2], [3], [1]]
    assert tf.dynamic_stitch([0, [1, 3]], [5, [6, 7]]).numpy().tolist() == [5, 6, 0, 7]
    assert tf.dynamic_stitch([[0, 0], [0]], [[1, 2], [3]]).numpy().tolist() == [3]
    assert tf.dynamic_stitch([tf.zeros([0], tf.int32)], [tf.zeros([0, 2])]).shape == [0, 2]


def test_partition_and_stitch_undo_each_other() -> None:
    x, numbers = tf.constant([5.0, 6.0, 7.0, 8.0]), [1, 0, 1, 1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        places = tf.dynamic_partition([0, 1, 2, 3], numbers, 2)
        y = tf.dynamic_stitch(places, tf.dynamic_partition(x, numbers, 2))
        z = y * y
    assert y.numpy().tolist() == [5, 6, 7, 8]
    assert tape.gradient(z, x).numpy().tolist() == [10, 12, 14, 16]


def test_of_equal_indices_the_last_gets_the_gradient() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.dynamic_stitch([[0, 1], [0]], [x, y])
    assert _lists(tape.gradient(z, [x, y])) == [[0, 1], [1]]


@pytest.mark.parametrize("indices, data", [
    ([[0, -1]], [[1, 2]]), ([[0], [1]], [[1, 2], [3]]), ([[0], [1]], [[1]]), ([], [])])
def test_stitches_that_do_not_fit(indices: Any, data: Any) -> None:
    with pytest.raises(ValueError):
        tf.dynamic_stitch(indices, data)
