"""Variable.scatter_*, scatter_nd_*, sparse_read and gather_nd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf


def _table() -> Any:
    return tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("how, rows", [
    ("update", [[10, 20], [3, 4], [30, 40]]), ("add", [[11, 22], [3, 4], [35, 46]]),
    ("sub", [[-9, -18], [3, 4], [-25, -34]]), ("mul", [[10, 40], [3, 4], [150, 240]]),
    ("div", [[0.1, 0.1], [3, 4], [5 / 30, 6 / 40]]), ("min", [[1, 2], [3, 4], [5, 6]]),
    ("max", [[10, 20], [3, 4], [30, 40]])])
def test_rows(how: str, rows: Any) -> None:
    v = _table()
    delta = tf.IndexedSlices([[10.0, 20.0], [30.0, 40.0]], [0, 2])
    np.testing.assert_allclose(getattr(v, f"scatter_{how}")(delta).numpy(), rows, rtol=1e-6)
    np.testing.assert_allclose(v.numpy(), rows, rtol=1e-6)


@pytest.mark.parametrize("how, first", [
    ("update", 3), ("add", 15), ("sub", 5), ("mul", 60), ("div", 10 / 6), ("min", 2), ("max", 10)])
def test_equal_rows_act_one_after_another(how: str, first: float) -> None:
    v = tf.Variable([10.0, 1.0])
    getattr(v, f"scatter_{how}")(tf.IndexedSlices([2.0, 3.0], [0, 0]))
    np.testing.assert_allclose(v.numpy(), [first, 1], rtol=1e-6)


def test_a_scalar_is_repeated_and_a_scalar_index_is_one_row() -> None:
    v = _table()
    v.scatter_update(tf.IndexedSlices(7.0, [0, 1]))
    assert v.numpy().tolist() == [[7, 7], [7, 7], [5, 6]]
    v.scatter_sub(tf.IndexedSlices([1.0, 2.0], 0))
    assert v.numpy()[0].tolist() == [6, 5]


def test_integers_divide_towards_zero() -> None:
    v = tf.Variable([-7, 7])
    v.scatter_div(tf.IndexedSlices([2, 2], [0, 1]))
    assert v.numpy().tolist() == [-3, 3]


def test_index_tuples() -> None:
    v = _table()
    assert v.scatter_nd_update([[0], [2]], [[7.0, 7.0], [8.0, 8.0]]).numpy()[2].tolist() == [8, 8]
    assert v.scatter_nd_add([[0, 0], [0, 0]], [1.0, 2.0]).numpy()[0].tolist() == [10, 7]
    assert v.scatter_nd_sub([[1, 1]], [4.0]).numpy()[1].tolist() == [3, 0]


def test_reading_rows_gives_a_sparse_gradient() -> None:
    v = _table()
    with tf.GradientTape(persistent=True) as tape:
        rows, cell = v.sparse_read([0, 2]), v.gather_nd([[0, 1]])
    assert rows.numpy().tolist() == [[1, 2], [5, 6]] and cell.numpy().tolist() == [2]
    assert isinstance(tape.gradient(rows, v), tf.IndexedSlices)
    assert tape.gradient(cell, v).numpy().tolist() == [[0, 1], [0, 0], [0, 0]]


def test_value_is_a_new_tensor_with_the_gradient() -> None:
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v.value() * v.read_value()
    assert tape.gradient(y, v).numpy() == 6


def test_tensors_read_before_keep_their_value() -> None:
    v = tf.Variable([1.0, 2.0])
    before = v + 0.0
    read = v.value()
    v.scatter_add(tf.IndexedSlices([1.0], [0]))
    assert read.numpy().tolist() == before.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("delta, error", [
    ([1.0], TypeError), (lambda: tf.IndexedSlices([[1.0, 2.0]], [3]), None),
    (lambda: tf.IndexedSlices([1.0], [0]), None), (lambda: tf.IndexedSlices([[1, 2]], [0]), None),
    (lambda: tf.IndexedSlices([[1.0, 2.0]], [0.5]), None)])
def test_what_does_not_fit(delta: Any, error: Any) -> None:
    v = _table()
    given = delta() if callable(delta) else delta
    with pytest.raises(error or tf.errors.InvalidArgumentError):
        v.scatter_add(given)
    assert v.numpy()[0].tolist() == [1, 2]


def test_what_does_not_fit_by_tuples() -> None:
    v = _table()
    for indices, updates in (([[0, 0]], [1.0, 2.0]), ([[3, 0]], [1.0]), ([[0, 0, 0]], [1.0])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            v.scatter_nd_update(indices, updates)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        tf.Variable(1.0).scatter_add(tf.IndexedSlices([1.0], [0]))
