"""Norms: orders, the zero vector, and lists of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg

_X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
_Z = np.array([[1 + 1j, 2], [3, 4j]], np.complex64)


def _slope(function: Any, value: Any) -> Any:
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, np.inf])
def test_vector_norms_equal_numpy(order: Any) -> None:
    flat = np.linalg.norm(_X.reshape(-1), order)
    np.testing.assert_allclose(tf.norm(_X, order).numpy(), flat, rtol=1e-6)
    rows = [np.linalg.norm(row, order) for row in _X]
    np.testing.assert_allclose(tf.norm(_X, order, axis=1).numpy(), rows, rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2, "fro", np.inf])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), [-2, -1]])
def test_matrix_norms_equal_numpy(order: Any, axis: Any) -> None:
    wanted = np.linalg.norm(_X, order, axis=tuple(axis))
    np.testing.assert_allclose(tf.norm(_X, order, axis=axis).numpy(), wanted, rtol=1e-6)
    assert tf.norm(_X, order, axis=axis, keepdims=True).shape == [1, 1]


@pytest.mark.parametrize("order", ["euclidean", 1, 2, 3, 2.5, np.inf])
def test_gradient_at_the_zero_vector_is_zero(order: Any) -> None:
    np.testing.assert_array_equal(_slope(lambda x: tf.norm(x, order), [0.0, 0.0]), [0.0, 0.0])


def test_gradient_of_one_zero_row() -> None:
    rows = [[3.0, 4.0], [0.0, 0.0]]
    made = _slope(lambda x: tf.norm(x, axis=1), rows)
    np.testing.assert_allclose(made, [[0.6, 0.8], [np.nan, np.nan]], rtol=1e-6)
    made = _slope(lambda x: tf.math.reduce_euclidean_norm(x, axis=1), rows)
    np.testing.assert_allclose(made, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_complex_norm_is_real() -> None:
    made = tf.norm(_Z)
    assert made.dtype is tf.float32
    np.testing.assert_allclose(made.numpy(), np.linalg.norm(_Z), rtol=1e-6)
    np.testing.assert_allclose(_slope(tf.norm, _Z), _Z / np.linalg.norm(_Z), rtol=1e-5)


@pytest.mark.parametrize("order, axis", [
    ("fro", None), (0, None), (-1, None), (-np.inf, None), (3, (0, 1)), ("nuc", (0, 1)),
    (2, (0, 0)), (2, (0, 1, 2)), (2, ())])
def test_norm_refuses(order: Any, axis: Any) -> None:
    with pytest.raises(ValueError):
        tf.norm(_X, order, axis=axis)


def test_norm_refuses_integers_and_axes() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.cast"):
        tf.norm(tf.constant([3, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.norm(_X, axis=2)


def test_normalize_gives_both() -> None:
    unit, length = linalg.normalize(_X, axis=1)
    assert length.shape == [2, 1]
    np.testing.assert_allclose(unit.numpy() * length.numpy(), _X, rtol=1e-6)


def test_l2_normalize_near_zero() -> None:
    np.testing.assert_allclose(_slope(linalg.l2_normalize, [0.0, 0.0]), [1e6, 1e6])
    made = linalg.l2_normalize(_Z)
    np.testing.assert_allclose(made.numpy(), _Z / np.linalg.norm(_Z), rtol=1e-6)


def test_global_norm_skips_none_and_takes_slices_as_they_are() -> None:
    rows = tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 0]), tf.constant([2, 1]))
    assert float(linalg.global_norm([rows, None])) == 5.0
    assert float(linalg.global_norm([tf.constant([3.0]), [4.0]])) == 5.0
    assert float(linalg.global_norm([])) == 0.0
    assert float(linalg.global_norm([None])) == 0.0
    with pytest.raises(TypeError):
        linalg.global_norm(tf.ones(3))


def test_global_norm_of_zeros_has_gradient_zero() -> None:
    made = _slope(lambda x: linalg.global_norm([x, 2.0 * x]), [0.0, 0.0])
    np.testing.assert_array_equal(made, [0.0, 0.0])


def test_half_precision_does_not_overflow_in_the_squares() -> None:
    assert float(tf.norm(tf.constant([300.0, 400.0], tf.float16))) == 500.0


def test_empty() -> None:
    assert float(tf.norm(tf.zeros((0,)))) == 0.0
