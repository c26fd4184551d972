"""einsum and tensordot against NumPy, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_SHAPES = [
    ("ij,jk", [(2, 3), (3, 4)]), ("...ij,...jk->...ik", [(5, 2, 3), (1, 3, 4)]),
    ("b...i,i->b...", [(2, 3, 4), (4,)]), ("bqhd,bkhd->bhqk", [(2, 3, 2, 5), (2, 6, 2, 5)]),
    ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4), (1, 2, 3)]),
    ("ji", [(2, 3)]), ("...", [(2, 3)]), ("iij->j", [(2, 2, 3)]), ("ij,ij->", [(2, 3), (2, 3)]),
    ("ab,cd->abcd", [(2, 3), (4, 5)]), ("...i,...i->...", [(0, 2), (1, 2)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]), ("i,j->", [(2,), (3,)]), (",->", [(), ()])]


@pytest.mark.parametrize("equation, shapes", _SHAPES)
def test_einsum_equals_numpy(equation: str, shapes: list[tuple[int, ...]], rng: Any) -> None:
    arrays = [rng.normal(size=s) for s in shapes]
    made = tf.einsum(equation, *arrays)
    np.testing.assert_allclose(made.numpy(), np.einsum(equation, *arrays), atol=1e-12)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_einsum_keeps_the_dtype() -> None:
    for dtype in (tf.float16, tf.float32, tf.int32, tf.complex64):
        x = tf.cast(tf.ones((2, 2)), dtype)
        assert tf.einsum("ij,jk->ik", x, x).dtype == dtype


def test_broadcast_axes_are_summed_back() -> None:
    x, y = tf.ones((5, 2, 3)), tf.ones((1, 3, 4))
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.einsum("...ij,...jk->...ik", x, y)
    gx, gy = tape.gradient(z, [x, y])
    assert gx.shape == [5, 2, 3] and gy.shape == [1, 3, 4]
    np.testing.assert_array_equal(gy.numpy(), np.full((1, 3, 4), 10.0))


def test_second_derivative_of_a_linear_einsum_is_none() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.einsum("i,i->", x, [1.0, 2.0])
        g = inner.gradient(y, x)
    assert outer.gradient(g, x) is None


@pytest.mark.parametrize("equation, error", [
    ("ij->iij", ValueError), ("ij->ik", ValueError), ("i.j", ValueError),
    ("ij,jk->ik", ValueError), ("ijk", ValueError), ("...i->", ValueError)])
def test_einsum_refuses(equation: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        tf.einsum(equation, tf.ones((2, 3)))


def test_einsum_refuses_lengths_and_dtypes_that_differ() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="one length"):
        tf.einsum("i,i->i", tf.ones(3), tf.ones(1))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.einsum("i,i->i", tf.ones(3), tf.ones(3, tf.float64))
    with pytest.raises(TypeError):
        tf.einsum("i->i", tf.ones(3), axis=1)


@pytest.mark.parametrize("axes", [0, 1, 2, [0, 1], [[0], [1]], [[0, 1], [1, 0]], [[-1], [0]]])
def test_tensordot_equals_numpy(axes: Any, rng: Any) -> None:
    a, b = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    np.testing.assert_allclose(tf.tensordot(a, b, axes).numpy(), np.tensordot(a, b, axes),
                               atol=1e-12)


@pytest.mark.parametrize("axes", [3, -1, [[0], [0, 1]], [[0, 0], [0, 1]], [[5], [0]], [[0]]])
def test_tensordot_refuses(axes: Any) -> None:
    with pytest.raises(ValueError):
        tf.tensordot(tf.ones((2, 2)), tf.ones((2, 2)), axes)


def test_tensordot_takes_axes_in_a_tensor() -> None:
    x = tf.ones((2, 3))
    assert tf.tensordot(x, x, tf.constant([[1], [1]])).shape == [2, 2]
    assert tf.tensordot(x, x, tf.constant(0)).shape == [2, 3, 2, 3]
