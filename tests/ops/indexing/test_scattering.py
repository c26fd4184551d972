"""tensor_scatter_nd_*: values, shared gradients, equal indices and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.ops.indexing import scattering


def _grads(function: Any, tensor: Any, indices: Any, updates: Any) -> tuple[Any, Any, Any]:
    x, u = tf.constant(tensor), tf.constant(updates)
    weights = tf.constant([1.0, 10.0, 100.0])
    with tf.GradientTape() as tape:
        tape.watch([x, u])
        y = function(x, indices, u) * weights
    dx, du = tape.gradient(y, [x, u])
    return (y / weights).numpy().tolist(), dx.numpy().tolist(), du.numpy().tolist()


_ROWS = [[0], [0], [1], [2]]


@pytest.mark.parametrize("function, value, dx, du", [
    (tf.tensor_scatter_nd_add, [4, 10, 10], [1, 10, 100], [1, 1, 10, 100]),
    (tf.tensor_scatter_nd_sub, [-2, 0, -4], [1, 10, 100], [-1, -1, -10, -100]),
    (tf.tensor_scatter_nd_max, [2, 5, 7], [0, 5, 0], [0, 1, 5, 100]),
    (tf.tensor_scatter_nd_min, [1, 5, 3], [0.5, 5, 100], [0.5, 0, 5, 0]),
    (tf.tensor_scatter_nd_update, [2, 5, 7], [0, 0, 0], [0, 1, 10, 100]),
])
def test_values_and_gradients(function: Any, value: Any, dx: Any, du: Any) -> None:
    found = _grads(function, [1.0, 5.0, 3.0], _ROWS, [1.0, 2.0, 5.0, 7.0])
    for got, wanted in zip(found, (value, dx, du)):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_rows_of_a_matrix_and_single_cells() -> None:
    m = [[1.0, 2.0], [3.0, 4.0]]
    rows = tf.tensor_scatter_nd_update(m, [[1]], [[8.0, 9.0]])
    assert rows.numpy().tolist() == [[1, 2], [8, 9]]
    cells = tf.tensor_scatter_nd_add(m, [[0, 1], [1, 0]], [10.0, 20.0])
    assert cells.numpy().tolist() == [[1, 12], [23, 4]]


def test_the_tensor_given_is_not_written_to() -> None:
    x = tf.constant([1.0, 2.0])
    tf.tensor_scatter_nd_update(x, [[0]], [9.0])
    tf.tensor_scatter_nd_max(x, [[0]], [9.0])
    assert x.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("value", [[True, False], ["a", "b"], [1, 2]])
def test_update_takes_any_dtype(value: Any) -> None:
    made = tf.tensor_scatter_nd_update(value, [[0]], tf.constant(value)[1:])
    assert made.numpy().tolist() == [tf.constant(value).numpy()[1]] * 2


def test_no_indices_change_nothing() -> None:
    made = tf.tensor_scatter_nd_update([1.0, 2.0], tf.zeros([0, 1], tf.int32), tf.zeros([0]))
    assert made.numpy().tolist() == [1, 2]


def test_indices_out_of_range() -> None:
    for function in (tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_update):
        with pytest.raises(tf.errors.InvalidArgumentError, match="outside"):
            function([1.0, 2.0], [[2]], [3.0])
    ignored = tf.tensor_scatter_nd_add([1.0, 2.0], [[2], [0], [-1]], [3.0, 4.0, 5.0], "IGNORE")
    assert ignored.numpy().tolist() == [5, 2]


@pytest.mark.parametrize("indices, updates", [
    ([0], [3.0]), ([[0]], [3.0, 4.0]), ([[0, 0]], [3.0]), ([[0.5]], [3.0]), (0, [3.0])])
def test_shapes_and_dtypes_that_do_not_fit(indices: Any, updates: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.tensor_scatter_nd_add([1.0, 2.0], indices, updates)


def test_unknown_policy() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad_indices_policy"):
        tf.tensor_scatter_nd_add([1.0], [[0]], [1.0], "CLIP")


def test_the_last_of_equal_rows_is_found() -> None:
    rows = np.array([2, 0, 2, 1, 0])
    assert scattering.last_writers(np, rows, 3).tolist() == [False, False, True, True, True]
