"""slice and strided_slice."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_M = [[1.0, 2.0], [3.0, 4.0]]


def test_slice() -> None:
    assert tf.slice(_M, [0, 1], [-1, 1]).numpy().tolist() == [[2], [4]]
    assert tf.slice(_M, [0, 2], [1, 0]).shape == [1, 0]
    assert tf.slice(tf.constant(_M), tf.constant([1, 0]), tf.constant([1, 2])).shape == [1, 2]


@pytest.mark.parametrize("begin, size", [
    ([0, 1], [1, 2]), ([0], [1]), ([0, -1], [1, 1]), ([0, 0], [1, -2]), ([3, 0], [-1, 1])])
def test_slices_that_do_not_fit(begin: Any, size: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.slice(_M, begin, size)


@pytest.mark.parametrize("args, masks, wanted", [
    (([0, 0], [2, 1]), {}, [[1], [3]]),
    (([-1, 0], [0, 2], [-1, 1]), {}, [[3, 4]]),
    (([-1, 0], [0, 2], [-1, 1]), {"end_mask": 1}, [[3, 4], [1, 2]]),
    (([0], [1]), {"shrink_axis_mask": 1}, [1, 2]),
    (([0, 0], [0, 1]), {"new_axis_mask": 1}, [[[1, 2]]]),
    (([0, 0], [0, 1]), {"ellipsis_mask": 1}, [[1], [3]]),
    (([1, 1], [2, 2]), {"begin_mask": 1, "end_mask": 2}, [[2], [4]])])
def test_strided_slice(args: Any, masks: Any, wanted: Any) -> None:
    assert tf.strided_slice(_M, *args, **masks).numpy().tolist() == wanted


@pytest.mark.parametrize("args, masks", [
    (([0, 0], [0, 1]), {"ellipsis_mask": 3}), (([0, 5], [1, 6]), {"shrink_axis_mask": 2}),
    (([0], [1], [0]), {}), (([0, 0], [1]), {}), (([0, 0, 0], [1, 1, 1]), {})])
def test_strided_slices_that_do_not_fit(args: Any, masks: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.strided_slice(_M, *args, **masks)


def test_gradient() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.strided_slice(x, [0], [3], [2]) ** 2
    assert tape.gradient(y, x).numpy().tolist() == [2, 0, 6]
