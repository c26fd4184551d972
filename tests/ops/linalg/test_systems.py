"""Systems by LU factors and tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg
from tests.ops.directions import check

_RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4)])
def test_factors_reconstruct_solve_and_invert(shape: tuple[int, ...]) -> None:
    a = _RNG.normal(size=shape)
    factors = linalg.lu(a)
    assert factors.p.dtype == tf.int32
    np.testing.assert_allclose(linalg.lu_reconstruct(*factors).numpy(), a, atol=1e-12)
    np.testing.assert_allclose(linalg.lu_matrix_inverse(*factors).numpy(), np.linalg.inv(a),
                               atol=1e-9)
    b = _RNG.normal(size=(*shape[:-1], 2))
    np.testing.assert_allclose(a @ linalg.lu_solve(*factors, b).numpy(), b, atol=1e-9)


def test_rows_are_reordered_by_the_largest_entry() -> None:
    factors = linalg.lu([[1.0, 2.0], [3.0, 4.0]], output_idx_type=tf.int64)
    assert factors.p.numpy().tolist() == [1, 0] and factors.p.dtype == tf.int64
    np.testing.assert_allclose(factors.lu.numpy(), [[3, 4], [1 / 3, 2 / 3]], rtol=1e-6)


def test_gradient_through_the_factors_is_that_of_the_whole() -> None:
    check(lambda x: linalg.lu_reconstruct(*linalg.lu(x)), (3, 3))
    check(lambda x: linalg.lu_matrix_inverse(*linalg.lu(x + 3 * np.eye(3))), (2, 3, 3))


def test_refusals_of_factors() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.lu(tf.ones((2, 3)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.lu_solve(tf.eye(2), tf.constant([0, 1, 2]), tf.ones((2, 1)))


def test_factors_of_empty_matrices():
    found = tf.linalg.lu(tf.zeros([2, 0, 0]))
    assert found.lu.shape == (2, 0, 0) and found.p.shape == (2, 0)


def _dense(upper: Any, main: Any, lower: Any) -> np.ndarray:
    return np.diag(main) + np.diag(upper[:-1], 1) + np.diag(lower[1:], -1)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("form", ["compact", "sequence", "matrix"])
def test_products_and_systems(n: int, form: str) -> None:
    bands = _RNG.normal(size=(3, n))
    full = _dense(*bands)
    given: Any = {"compact": bands, "sequence": list(bands), "matrix": full}[form]
    x = _RNG.normal(size=(n, 2))
    made = linalg.tridiagonal_matmul(given, x, diagonals_format=form)
    np.testing.assert_allclose(made.numpy(), full @ x, atol=1e-12)
    solved = linalg.tridiagonal_solve(given, full @ x, diagonals_format=form)
    np.testing.assert_allclose(solved.numpy(), x, atol=1e-8)


def test_short_sequences_and_vectors() -> None:
    full = _dense([1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 5.0, 1.0])
    given = [[1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 1.0]]
    b = np.array([1.0, 2.0, 3.0], np.float32)
    made = linalg.tridiagonal_solve(given, b, diagonals_format="sequence")
    np.testing.assert_allclose(full @ made.numpy(), b, rtol=1e-5)


def test_transposed_and_conjugated_right_hand_sides() -> None:
    bands = np.array([[1.0, 1, 0], [1, 2, 3], [0, 1, 1]]) + 0j
    b = np.array([[1 + 1j, 2, 3], [3, 4, 5j]])
    made = linalg.tridiagonal_solve(bands, b, transpose_rhs=True, conjugate_rhs=True)
    np.testing.assert_allclose(_dense(*bands) @ made.numpy(), b.conj().T, atol=1e-12)


def test_gradients() -> None:
    check(lambda d, x: linalg.tridiagonal_matmul(d, x), (3, 4), (4, 2))
    check(lambda d, x: linalg.tridiagonal_solve(d, x, diagonals_format="matrix"),
          np.eye(3) * 4 + 1, (3, 2))


def test_eigenvalues() -> None:
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25])
    full = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    wanted = np.linalg.eigvalsh(full)
    np.testing.assert_allclose(linalg.eigh_tridiagonal(alpha, beta).numpy(), wanted)
    some = linalg.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2))
    np.testing.assert_allclose(some.numpy(), wanted[1:])
    bounds = (0.0, wanted[1] + 1e-9)
    inside = linalg.eigh_tridiagonal(alpha, beta, select="v", select_range=bounds)
    np.testing.assert_allclose(inside.numpy(), wanted[:2])
    exact = [linalg.eigh_tridiagonal([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0], select="v",
                                     select_range=r).numpy().tolist() for r in ((2, 3), (5, 6))]
    assert exact == [[2.0, 3.0], []]
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than"):
        linalg.eigh_tridiagonal(alpha, beta, select="v", select_range=(2.0, 2.0))
    e, v = linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    np.testing.assert_allclose(full @ v.numpy(), v.numpy() * e.numpy(), atol=1e-12)


@pytest.mark.parametrize("call", [
    lambda: linalg.tridiagonal_solve(tf.ones((2, 3)), tf.ones(3)),
    lambda: linalg.tridiagonal_solve(tf.ones((3, 3)), tf.ones((4, 1))),
    lambda: linalg.tridiagonal_solve(tf.ones((3, 3)), tf.ones(3), diagonals_format="dense"),
    lambda: linalg.tridiagonal_solve(tf.ones((3, 3)), tf.ones(3), perturb_singular=True),
    lambda: linalg.eigh_tridiagonal(tf.ones(3), tf.ones(3)),
    lambda: linalg.eigh_tridiagonal(tf.ones(3), tf.ones(2), select="x"),
    lambda: linalg.eigh_tridiagonal(tf.ones(3), tf.ones(2), select="i")])
def test_refusals_of_diagonals(call: Any) -> None:
    with pytest.raises(ValueError):
        call()
