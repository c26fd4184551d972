"""Diagonals and bands: ranges, alignment, padding and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg

_X = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize("align, wanted", [
    ("RIGHT_LEFT", [[0, 2, 7, 12], [1, 6, 11, 0], [5, 10, 0, 0]]),
    ("LEFT_RIGHT", [[2, 7, 12, 0], [1, 6, 11, 0], [0, 5, 10, 0]])])
def test_packed_diagonals(align: str, wanted: Any) -> None:
    padded = np.array(wanted)[:, :3] if align == "LEFT_RIGHT" else np.array(
        [[2, 7, 12], [1, 6, 11], [5, 10, 0]])
    made = linalg.diag_part(_X, k=(-1, 1), align=align)
    np.testing.assert_array_equal(made.numpy(), padded)
    back = linalg.diag(made, k=(-1, 1), num_rows=3, num_cols=4, align=align).numpy()
    np.testing.assert_array_equal(back, np.triu(np.tril(_X, 1), -1))


def test_padding() -> None:
    made = linalg.diag_part(_X, k=(2, 3), padding_value=9.0)
    np.testing.assert_array_equal(made.numpy(), [[9, 4], [3, 8]])
    made = linalg.diag([1.0, 2.0], k=1, padding_value=7).numpy()
    np.testing.assert_array_equal(made, [[7, 1, 7], [7, 7, 2], [7, 7, 7]])


def test_set_diag() -> None:
    made = linalg.set_diag(_X, np.array([0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(made.numpy(), _X * (1 - np.eye(3, 4)))
    made = linalg.set_diag(_X, np.array([-1.0, -2.0]), k=-1).numpy()
    assert made[1, 0] == -1 and made[2, 1] == -2


def test_tensors_do_not_alias() -> None:
    x = tf.constant(_X)
    linalg.set_diag(x, np.zeros(3))
    np.testing.assert_array_equal(x.numpy(), _X)


@pytest.mark.parametrize("lower, upper", [(0, -1), (-1, 0), (0, 0), (1, 2), (-1, -1)])
def test_band_part(lower: int, upper: int) -> None:
    wanted = _X if upper < 0 else np.tril(_X, upper)
    wanted = wanted if lower < 0 else np.triu(wanted, -lower)
    np.testing.assert_array_equal(linalg.band_part(_X, lower, upper).numpy(), wanted)


def test_tensor_diag_and_back() -> None:
    x = tf.constant(np.arange(6.0).reshape(2, 3))
    made = linalg.tensor_diag(x)
    assert made.shape == [2, 3, 2, 3]
    np.testing.assert_array_equal(linalg.tensor_diag_part(made).numpy(), x.numpy())


def test_cross_and_adjoint() -> None:
    np.testing.assert_array_equal(linalg.cross([1.0, 0, 0], [0.0, 1, 0]).numpy(), [0, 0, 1])
    x = np.array([[1 + 1j, 2]])
    np.testing.assert_array_equal(linalg.adjoint(x).numpy(), x.conj().T)


def test_integers_and_bools() -> None:
    assert linalg.diag([1, 2]).dtype == tf.int32
    assert linalg.band_part(tf.constant([[True, True]]), 0, 0).numpy().tolist() == [[True, False]]


@pytest.mark.parametrize("call", [
    lambda: linalg.diag(1.0), lambda: linalg.diag(tf.ones(3), num_rows=2),
    lambda: linalg.diag(tf.ones((2, 3)), k=(0, 2)), lambda: linalg.diag(tf.ones(3), align="UP"),
    lambda: linalg.diag_part(_X, k=9), lambda: linalg.diag_part(tf.ones(3)),
    lambda: linalg.diag_part(_X, k=(1, 0)), lambda: linalg.set_diag(_X, np.zeros(4)),
    lambda: linalg.band_part(_X, 9, 0), lambda: linalg.band_part(tf.ones(3), 0, 0),
    lambda: linalg.tensor_diag(1.0), lambda: linalg.tensor_diag_part(tf.ones((2, 3))),
    lambda: linalg.cross(tf.ones(2), tf.ones(2))])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
