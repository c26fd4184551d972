"""Determinants of singular matrices, signs, traces and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg
from gtape.numerics.systems import cofactors
from tests.ops.directions import check


def _slope(function: Any, value: Any) -> Any:
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("matrix, wanted", [
    ([[0.0, 0.0], [0.0, 4.0]], [[4.0, 0.0], [0.0, 0.0]]),
    ([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]),
    (np.zeros((3, 3), np.float32), np.zeros((3, 3))), ([[5.0]], [[1.0]])])
def test_gradient_of_singular_matrices(matrix: Any, wanted: Any) -> None:
    np.testing.assert_allclose(_slope(linalg.det, matrix), wanted, atol=1e-5)


def test_second_derivative_of_a_singular_matrix() -> None:
    check(linalg.det, np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 1.0]]))


def test_nearly_singular_matrices_lose_no_accuracy() -> None:
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0 + 1e-13]])
    wanted = [[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]]
    np.testing.assert_allclose(cofactors(np, a), wanted, atol=1e-9)


def test_complex_gradient_is_the_conjugate_cofactor() -> None:
    a = np.array([[2 + 0.5j, 0.3], [0.5j, 1.7]])
    cofactor = np.array([[1.7, -0.5j], [-0.3, 2 + 0.5j]])
    np.testing.assert_allclose(_slope(linalg.det, a), cofactor.conj(), atol=1e-12)


def test_slogdet() -> None:
    found = linalg.slogdet(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert float(found.sign) == -1.0
    np.testing.assert_allclose(float(found.log_abs_determinant), np.log(2), rtol=1e-6)
    a = np.array([[1 + 1j, 2], [3, 4j]])
    sign, logabs = linalg.slogdet(a)
    assert logabs.dtype == tf.complex128
    np.testing.assert_allclose((sign * tf.exp(logabs)).numpy(), np.linalg.det(a))


def test_the_sign_of_a_real_determinant_has_gradient_zero() -> None:
    np.testing.assert_array_equal(_slope(lambda x: linalg.slogdet(x)[0], np.eye(2)),
                                  np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_logdet(dtype: str) -> None:
    def function(x: Any) -> Any:
        return linalg.logdet(tf.matmul(x, x, adjoint_b=True) + np.eye(3))

    check(function, (2, 3, 3), dtype=dtype)
    np.testing.assert_allclose(linalg.logdet(4 * np.eye(3)).numpy(), 3 * np.log(4))


def test_trace() -> None:
    np.testing.assert_array_equal(linalg.trace(tf.ones((2, 3, 4))).numpy(), [3.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.trace(tf.ones(3))


def test_matrix_rank() -> None:
    x = np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    made = linalg.matrix_rank(x)
    assert made.dtype == tf.int32 and made.numpy().tolist() == [1, 2]
    assert int(linalg.matrix_rank(np.diag([1.0, 0.1]), tol=0.5)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.matrix_rank(tf.ones(3))


def test_tolerances_of_the_rank_broadcast_against_the_singular_values() -> None:
    x = tf.linalg.diag([[1.0, 0.1, 0.01], [2.0, 1e-7, 0.0]])
    assert linalg.matrix_rank(x, tol=[[0.05], [3.0]]).numpy().tolist() == [2, 0]
    assert linalg.matrix_rank(x, tol=[0.05, 0.5, 0.001]).numpy().tolist() == [2, 1]
    assert linalg.matrix_rank(x, tol=tf.constant([0.05])).numpy().tolist() == [2, 1]
    assert linalg.matrix_rank(x[0], tol=[0.05, 0.005, 0.5]).numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        linalg.matrix_rank(x, tol=[0.05, 0.5])


def test_determinant_of_an_empty_matrix_is_one() -> None:
    assert float(linalg.det(tf.zeros((0, 0)))) == 1.0
