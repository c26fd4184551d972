"""tile, repeat, reverse, reverse_sequence, roll and meshgrid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_M = [[1.0, 2.0], [3.0, 4.0]]


def _grad(function: Any, x: Any) -> list[Any]:
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = function(t)
    return tape.gradient(y, t).numpy().tolist()


def test_tile() -> None:
    assert tf.tile([1, 2], [2]).numpy().tolist() == [1, 2, 1, 2]
    assert tf.tile(_M, [1, 2]).shape == [2, 4] and tf.tile(_M, [2, 0]).shape == [4, 0]
    assert tf.tile(1.0, []).numpy() == 1
    for multiples in ([2], [2, -1]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.tile(_M, multiples)


@pytest.mark.parametrize("repeats, axis, wanted", [
    (2, None, [1, 1, 2, 2, 3, 3, 4, 4]), (2, 0, [[1, 2], [1, 2], [3, 4], [3, 4]]),
    ([1, 2], 1, [[1, 2, 2], [3, 4, 4]]), ([2], 0, [[1, 2], [1, 2], [3, 4], [3, 4]]),
    ([0, 2], 0, [[3, 4], [3, 4]]), ([1, 0, 0, 2], None, [1, 4, 4]), (0, 1, [[], []])])
def test_repeat(repeats: Any, axis: Any, wanted: Any) -> None:
    assert tf.repeat(_M, repeats, axis).numpy().tolist() == wanted


def test_repeat_of_a_scalar_and_by_a_tensor() -> None:
    assert tf.repeat(3, 4).numpy().tolist() == [3, 3, 3, 3]
    assert tf.repeat([1, 2], tf.constant([0, 3])).numpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_repeat_is_dense(axis: int) -> None:
    wanted = [[1, 1], [3, 3]] if axis == 0 else [[1, 3], [1, 3]]
    assert _grad(lambda x: tf.repeat(x, [1, 3], axis), _M) == wanted


@pytest.mark.parametrize("repeats, axis", [
    ([1, 2, 3], 1), (-1, None), ([1, 2], None), (1.5, None), ([[1]], 0), (1, 2)])
def test_repeat_errors(repeats: Any, axis: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.repeat(_M, repeats, axis)


def test_reverse() -> None:
    assert tf.reverse(_M, [0]).numpy().tolist() == [[3, 4], [1, 2]]
    assert tf.reverse(_M, [0, -1]).numpy().tolist() == [[4, 3], [2, 1]]
    for axis in ([0, 0], [2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.reverse(_M, axis)


def test_reverse_sequence() -> None:
    m = [[1, 2, 3], [4, 5, 6]]
    assert tf.reverse_sequence(m, [2, 3], 1).numpy().tolist() == [[2, 1, 3], [6, 5, 4]]
    assert tf.reverse_sequence(m, [2, 1, 0], 0, 1).numpy().tolist() == [[4, 2, 3], [1, 5, 6]]
    for lengths, axis in (([2, 4], 1), ([-1, 2], 1), ([2], 1), ([1, 1], 0), ([0.5, 1.0], 1)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.reverse_sequence(m, lengths, axis)
    with pytest.raises(TypeError):
        tf.reverse_sequence(m, [2, 3])


def test_roll() -> None:
    assert tf.roll([1, 2, 3, 4], 1, 0).numpy().tolist() == [4, 1, 2, 3]
    assert tf.roll(_M, [1, 1], [0, 1]).numpy().tolist() == [[4, 3], [2, 1]]
    assert tf.roll([1, 2, 3], [1, 1], [0, 0]).numpy().tolist() == [2, 3, 1]
    for x, shift, axis in ((_M, 1, 2), (_M, [1, 2], 0), (1.0, 1, 0), (_M, 1, [0, 1])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.roll(x, shift, axis)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_as_numpy(indexing: Any) -> None:
    vectors = [1, 2], [3, 4, 5], [6]
    for count in (1, 2, 3):
        made = tf.meshgrid(*vectors[:count], indexing=indexing)
        for ours, theirs in zip(made, np.meshgrid(*vectors[:count], indexing=indexing)):
            np.testing.assert_array_equal(ours.numpy(), theirs)


def test_meshgrid_corner_cases() -> None:
    assert tf.meshgrid() == []
    assert [g.numpy().tolist() for g in tf.meshgrid([1, 2], 5)] == [[[1, 2]], [[5, 5]]]
    with pytest.raises(ValueError, match="indexing"):
        tf.meshgrid([1], indexing="yx")


@pytest.mark.parametrize("move", [
    lambda x: tf.roll(x, 0, 0), lambda x: tf.roll(x, [2, -2], [0, 0]), lambda x: tf.tile(x, [1]),
    lambda x: tf.repeat(x, 1), lambda x: tf.reverse(x, [])])
@pytest.mark.parametrize("persistent", [False, True])
def test_what_moves_nothing_passes_cotangents_on_once(move, persistent):
    """Also where a Variable of the program makes the tape keep what it walks over."""
    x, places = tf.constant([3.0, 5.0]), tf.Variable([0, 0])
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = move(x)
        loss = tf.reduce_sum(tf.gather(y, places) ** 2 + y)
    np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(loss, x)).numpy(), [13.0, 1.0])
