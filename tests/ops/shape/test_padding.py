"""pad: modes, fill values and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_M = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("mode, numpy_mode", [
    ("CONSTANT", "constant"), ("symmetric", "symmetric"), ("REFLECT", "reflect")])
def test_as_numpy(mode: str, numpy_mode: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    pads = [(1, 0), (0, 2), (1, 1)]
    np.testing.assert_array_equal(tf.pad(x, pads, mode).numpy(), np.pad(x, pads, mode=numpy_mode))


@pytest.mark.parametrize("x, value, wanted", [
    ([1.0], 9, [9, 1]), ([1.0], 9.5, [9.5, 1]), ([True], 0, [False, True]), (["a"], 0, [b"", b"a"]),
    ([1], 7, [7, 1]), ([1.0], tf.constant(2.0), [2, 1]), ([1 + 1j], 2j, [2j, 1 + 1j])])
def test_fill(x: Any, value: Any, wanted: Any) -> None:
    assert tf.pad(x, [[1, 0]], constant_values=value).numpy().tolist() == wanted


@pytest.mark.parametrize("mode, wanted", [
    ("CONSTANT", [1, 1, 1]), ("REFLECT", [1, 3, 1]), ("SYMMETRIC", [2, 1, 2])])
def test_gradients(mode: str, wanted: Any) -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.pad(x, [[1, 1]], mode)
    assert tape.gradient(y, x).numpy().tolist() == wanted


def test_scalars_and_empty_tensors() -> None:
    assert tf.pad(1.0, tf.zeros([0, 2], tf.int32)).numpy() == 1
    assert tf.pad(1.0, tf.zeros([0, 2], tf.int32), "REFLECT").numpy() == 1
    assert tf.pad(tf.zeros([0]), [[2, 1]], constant_values=1.0).numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("paddings, mode", [
    ([[1, 0]], "CONSTANT"), ([[-1, 0], [0, 0]], "CONSTANT"), (1, "CONSTANT"),
    ([[0.5, 0], [0, 0]], "CONSTANT"), ([[2, 0], [0, 0]], "REFLECT"), ([[3, 0], [0, 0]],
                                                                       "SYMMETRIC")])
def test_paddings_that_do_not_fit(paddings: Any, mode: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.pad(_M, paddings, mode)


def test_other_errors() -> None:
    with pytest.raises(ValueError, match="mode"):
        tf.pad(_M, [[1, 1], [1, 1]], "EDGE")
    with pytest.raises(TypeError):
        tf.pad([1], [[1, 0]], constant_values=0.5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="one value"):
        tf.pad([1.0], [[1, 0]], constant_values=[1.0, 2.0])
