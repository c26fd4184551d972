"""Space to batch and back, and patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf


def test_space_to_batch() -> None:
    x = tf.reshape(tf.range(4), [1, 2, 2, 1])
    assert tf.reshape(tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), [-1]).shape == [4]
    made = tf.space_to_batch_nd(tf.reshape(tf.range(4), [1, 4]), [2], [[1, 1]])
    assert made.numpy().tolist() == [[0, 1, 3], [0, 2, 0]]


def test_batch_to_space() -> None:
    x = tf.reshape(tf.range(8), [4, 1, 2, 1])
    made = tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]])
    assert made.numpy().tolist() == [[[[2], [1], [3]]]]
    y = tf.reshape(tf.range(4), [4, 1, 1, 1])
    assert tf.batch_to_space(y, 2, [[0, 0], [0, 0]]).shape == [1, 2, 2, 1]


def test_they_undo_each_other() -> None:
    x = np.arange(2 * 5 * 4 * 3.0).reshape(2, 5, 4, 3)
    there = tf.space_to_batch(x, [3, 2], [[1, 0], [0, 2]])
    back = tf.batch_to_space(there, [3, 2], [[1, 0], [0, 2]])
    np.testing.assert_array_equal(back.numpy(), x)


@pytest.mark.parametrize("shape, block, pads", [
    ([1, 3, 1], [2], [[0, 0]]), ([1, 2, 2, 1], [0, 2], [[0, 0], [0, 0]]), ([4], [2], [[0, 0]]),
    ([1, 2], [2], [[0, 0], [0, 0]])])
def test_blocks_that_do_not_fit(shape: Any, block: Any, pads: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.space_to_batch(tf.zeros(shape), block, pads)


@pytest.mark.parametrize("shape, block, crops", [
    ([3, 1, 1], [2], [[0, 0]]), ([2, 1, 1], [2], [[2, 1]]), ([2, 1], [2], [[-1, 0]])])
def test_batches_that_do_not_fit(shape: Any, block: Any, crops: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.batch_to_space(tf.zeros(shape), block, crops)


def test_volume_patches() -> None:
    x = tf.reshape(tf.range(8.0), [1, 2, 2, 2, 1])
    across = tf.extract_volume_patches(x, [1, 1, 2, 1, 1], [1] * 5, "VALID")
    assert across.numpy().reshape(-1, 2).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    deep = tf.extract_volume_patches(x, [1, 2, 1, 1, 1], [1, 1, 2, 1, 1], "SAME")
    assert deep.numpy().reshape(-1, 2).tolist() == [[0, 4], [1, 5], [4, 0], [5, 0]]


def test_patch_errors() -> None:
    x = tf.zeros([1, 2, 2, 2, 1])
    with pytest.raises(ValueError, match="padding"):
        tf.extract_volume_patches(x, [1] * 5, [1] * 5, "FULL")
    for sizes in ([1, 2, 2], [2, 1, 1, 1, 1], [1, 0, 1, 1, 1]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.extract_volume_patches(x, sizes, [1] * 5, "SAME")
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank 5"):
        tf.extract_volume_patches(x[0], [1] * 5, [1] * 5, "SAME")
