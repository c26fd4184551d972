"""Tridiagonal matrices against dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg
from tests.ops.directions import check

_RNG = np.random.default_rng(0)


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
def test_refusals(call: Any) -> None:
    with pytest.raises(ValueError):
        call()
