"""Determinants, rank, exponential, logarithm and root of matrices."""

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


_A = np.array([[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]])


def _by_eigenvalues(function: Any, a: np.ndarray) -> np.ndarray:
    e, v = np.linalg.eig(a)
    return (v * function(e.astype(complex))) @ np.linalg.inv(v)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_expm(scale: float) -> None:
    wanted = _by_eigenvalues(np.exp, scale * _A).real
    np.testing.assert_allclose(linalg.expm(scale * _A).numpy(), wanted, rtol=1e-10)


def test_expm_of_zero_and_nilpotent() -> None:
    np.testing.assert_allclose(linalg.expm(np.zeros((2, 2))).numpy(), np.eye(2), atol=1e-15)
    made = linalg.expm(np.array([[0.0, 3.0], [0.0, 0.0]])).numpy()
    np.testing.assert_allclose(made, [[1.0, 3.0], [0.0, 1.0]], atol=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_roots_and_logarithms(scale: float) -> None:
    root = linalg.sqrtm(scale * _A).numpy()
    np.testing.assert_allclose(root @ root, scale * _A, rtol=1e-9, atol=1e-12 * scale)
    log = linalg.logm(tf.constant(scale * _A + 0j)).numpy()
    np.testing.assert_allclose(log, _by_eigenvalues(np.log, scale * _A), atol=1e-9)


def test_defective_matrices() -> None:
    jordan = np.array([[4.0, 1.0], [0.0, 4.0]])
    np.testing.assert_allclose(linalg.sqrtm(jordan).numpy(), [[2.0, 0.25], [0.0, 2.0]])


def test_complex_square_root_of_negative_eigenvalues() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]]) + 0j
    root = tf.matrix_square_root(a).numpy()
    np.testing.assert_allclose(root @ root, a, atol=1e-10)
    np.testing.assert_allclose(root, _by_eigenvalues(np.sqrt, a), atol=1e-10)
    log = linalg.logm(a).numpy()
    np.testing.assert_allclose(log, _by_eigenvalues(np.log, a), atol=1e-9)


@pytest.mark.parametrize("matrix, wanted", [
    ([[2.0 ** -10, 1.0], [0.0, 2.0 ** -10]],
     [[-10 * np.log(2), 1024.0], [0.0, -10 * np.log(2)]]),
    ([[1.0, 2.0], [2.0, 1.0]], [[np.log(3) / 2 + np.pi / 2 * 1j, np.log(3) / 2 - np.pi / 2 * 1j],
                                [np.log(3) / 2 - np.pi / 2 * 1j, np.log(3) / 2 + np.pi / 2 * 1j]]),
    ([[-1.0, 0.0], [0.0, 2.0]], [[np.pi * 1j, 0.0], [0.0, np.log(2)]]),
    ([[0.0, 1.0], [-1.0, 0.0]], [[0.0, np.pi / 2], [-np.pi / 2, 0.0]])])
@pytest.mark.parametrize("dtype, near", [("complex64", 2e-7), ("complex128", 1e-14)])
def test_logarithms(matrix: Any, wanted: Any, dtype: str, near: float) -> None:
    made = linalg.logm(tf.constant(matrix, dtype)).numpy()
    assert made.dtype == dtype
    np.testing.assert_allclose(made, wanted, rtol=near, atol=near)


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_single_precision_is_that_of_the_double_rounded(n: int) -> None:
    rng = np.random.default_rng(n)
    a = (rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))).astype(np.complex64)
    for function in (linalg.logm, linalg.sqrtm):
        wanted = function(a.astype(np.complex128)).numpy()
        made = function(a).numpy()
        np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
        again = made.astype(np.complex128)
        back = linalg.expm(again).numpy() if function is linalg.logm else again @ again
        np.testing.assert_allclose(back, a, atol=3e-6 * np.abs(a).max() * n)


def test_a_defective_matrix_that_is_not_triangular() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    block = 2 * np.eye(5) + np.diag(np.ones(4), 1)
    root = np.diag(np.full(5, 2 ** 0.5))
    for k, factor in enumerate([1 / 2, -1 / 8, 1 / 16, -5 / 128], 1):
        root += np.diag(np.full(5 - k, factor * 2 ** (0.5 - k)), k)
    made = linalg.sqrtm(turn @ block @ turn.T).numpy()
    np.testing.assert_allclose(made, turn @ root @ turn.T, atol=1e-13)


def test_each_matrix_of_a_batch_is_scaled_by_itself() -> None:
    small, large = 0.1 * _A, np.diag([-3e4, 1.0, 2.0])
    for dtype in ("float32", "float64"):
        both = linalg.expm(np.stack([small, large]).astype(dtype)).numpy()
        np.testing.assert_array_equal(both[0], linalg.expm(small.astype(dtype)).numpy())


def test_no_real_root_gives_nan() -> None:
    assert np.isnan(linalg.sqrtm(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()).all()


def test_batches_and_empty_matrices() -> None:
    both = np.stack([_A, 20 * _A])
    np.testing.assert_allclose(linalg.expm(both).numpy()[0], linalg.expm(_A).numpy(), rtol=1e-10)
    np.testing.assert_allclose(linalg.sqrtm(both).numpy()[1], linalg.sqrtm(20 * _A).numpy(),
                               rtol=1e-9)
    for function in (linalg.expm, linalg.sqrtm):
        assert function(tf.zeros((0, 2, 2))).shape == [0, 2, 2]


@pytest.mark.parametrize("call", [
    lambda: linalg.expm(tf.ones((2, 3))), lambda: linalg.expm(tf.ones((2, 2), tf.int32)),
    lambda: linalg.logm(_A), lambda: linalg.sqrtm(tf.constant([[0.0, 1.0], [0.0, 0.0]]))])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
