"""boolean_mask and sequence_mask."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_M = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("mask, axis, wanted", [
    ([True, False], None, [[1, 2]]), ([[True, False], [True, True]], None, [1, 3, 4]),
    ([True, False], 1, [[1], [3]]), ([True, False], -1, [[1], [3]]), ([1, 0], None, [[1, 2]]),
    ([False, False], None, [])])
def test_boolean_mask(mask: Any, axis: Any, wanted: Any) -> None:
    assert tf.boolean_mask(_M, mask, axis).numpy().tolist() == wanted


def test_the_gradient_is_zero_where_the_mask_is_false() -> None:
    x = tf.constant(_M)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.boolean_mask(x, x > 1.5) ** 2
    assert tape.gradient(y, x).numpy().tolist() == [[0, 4], [6, 8]]


def test_an_empty_mask_of_many_axes() -> None:
    made = tf.boolean_mask(tf.zeros([0, 2, 3]), tf.zeros([0, 2], tf.bool))
    assert made.shape == [0, 3]


@pytest.mark.parametrize("mask, axis", [
    (True, None), ([True, False, True], None), ([1.0, 0.0], None), ([True, False], 2),
    ([[True, False], [True, True]], 1)])
def test_masks_that_do_not_fit(mask: Any, axis: Any) -> None:
    with pytest.raises(ValueError):
        tf.boolean_mask(_M, mask, axis)


def test_sequence_mask() -> None:
    assert tf.sequence_mask([1, 3]).numpy().tolist() == [[True, False, False], [True] * 3]
    assert tf.sequence_mask([1, 3], 2, tf.float32).numpy().tolist() == [[1, 0], [1, 1]]
    assert tf.sequence_mask(2).numpy().tolist() == [True, True]
    assert tf.sequence_mask([-1, 1]).numpy().tolist() == [[False], [True]]
    assert tf.sequence_mask([[1], [2]]).shape == [2, 1, 2]
    assert tf.sequence_mask(tf.constant([], tf.int32)).shape == [0, 0]
    assert tf.sequence_mask([1], tf.constant(2)).shape == [1, 2]


def test_sequence_mask_errors() -> None:
    with pytest.raises(ValueError, match="scalar"):
        tf.sequence_mask([1], [2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sequence_mask([True])


def test_sequence_mask_of_fractions_counts_whole_steps():
    assert tf.sequence_mask([1.5], 3).numpy().tolist() == [[True, False, False]]
