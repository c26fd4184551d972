"""Linear systems: complex and half precision, adjoints, batches, and failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg
from gtape.numerics.systems import solve_triangular
from tests.ops.directions import check

_C = np.array([[2 + 0.5j, 0.3 + 1.7j], [0.5 - 0.1j, 1.7 + 0.6j]])
_H = _C @ _C.conj().T + np.eye(2)
_A = np.array([[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]])


def _positive(x: Any) -> Any:
    return tf.matmul(x, x, adjoint_b=True) + np.eye(x.shape[-1])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky_gradients_along_hermitian_directions(dtype: str) -> None:
    check(lambda x: linalg.cholesky(_positive(x)), (3, 3), dtype=dtype)
    check(lambda x: linalg.cholesky_solve(linalg.cholesky(_positive(x)), x), (2, 3, 3),
          dtype=dtype)


@pytest.mark.parametrize("solve", [linalg.solve, linalg.triangular_solve])
def test_adjoint_systems(solve: Any) -> None:
    b = np.array([[1.0 + 2j], [3.0]])
    left = np.tril(_C) if solve is linalg.triangular_solve else _C
    np.testing.assert_allclose(left.conj().T @ solve(_C, b, adjoint=True).numpy(), b, atol=1e-12)
    check(lambda a, r: solve(a, r, adjoint=True), _C, b)


def test_inverse_of_the_adjoint() -> None:
    np.testing.assert_allclose(linalg.inv(_C, adjoint=True).numpy(), np.linalg.inv(_C.conj().T))


def test_half_precision() -> None:
    x = tf.cast(_A, tf.float16)
    assert linalg.inv(x).dtype == tf.float16
    assert linalg.solve(x, x).dtype == tf.float16
    assert linalg.det(x).dtype == tf.float16


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [1, 64, 65, 200])
def test_block_substitution(lower: bool, n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(2, n, n)) + 3 * n * np.eye(n)
    b = rng.normal(size=(2, n, 3))
    triangle = np.tril(a) if lower else np.triu(a)
    np.testing.assert_allclose(triangle @ solve_triangular(np, a, b, lower), b, atol=1e-9)


@pytest.mark.parametrize("lower", [True, False])
def test_banded(lower: bool) -> None:
    bands = np.array([[2.0, 3, 4], [9, 1, 1]]) if lower else np.array([[1.0, 1, 9], [2, 3, 4]])
    full = np.diag([2.0, 3, 4]) + np.diag([1.0, 1], -1 if lower else 1)
    made = linalg.banded_triangular_solve(bands, np.ones((3, 1)), lower=lower)
    np.testing.assert_allclose(full @ made.numpy(), np.ones((3, 1)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("options", [{}, {"l2_regularizer": 0.5}, {"fast": False}])
def test_lstsq(shape: tuple[int, int], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    made = linalg.lstsq(a, b, **options).numpy()
    weight = options.get("l2_regularizer", 0.0)
    wide = np.vstack([a, np.sqrt(weight) * np.eye(shape[1])])
    wanted = np.linalg.lstsq(wide, np.vstack([b, np.zeros((shape[1], 2))]), rcond=None)[0]
    np.testing.assert_allclose(made, wanted, rtol=1e-7, atol=1e-9)
    check(lambda x, y: linalg.lstsq(x, y, **options), a, b)


def test_pinv_of_a_singular_matrix() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(linalg.pinv(x).numpy(), np.linalg.pinv(x), atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
def test_pinv_that_cuts_singular_values(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(linalg.pinv(x, rcond=0.5).numpy(), np.linalg.pinv(x, rcond=0.5),
                               atol=1e-12)
    check(lambda a: linalg.pinv(a, rcond=0.5), x)


@pytest.mark.parametrize("call", [
    lambda: linalg.inv(tf.ones((2, 2))), lambda: linalg.solve(tf.ones((2, 2)), tf.ones((2, 1))),
    lambda: linalg.triangular_solve(tf.zeros((2, 2)), tf.ones((2, 1))),
    lambda: linalg.cholesky(-tf.eye(2)), lambda: linalg.inv(tf.ones((2, 3))),
    lambda: linalg.inv(tf.ones(3)), lambda: linalg.inv(tf.ones((2, 2), tf.int32)),
    lambda: linalg.solve(tf.eye(2), tf.ones(2)), lambda: linalg.solve(tf.eye(2), tf.ones((3, 1))),
    lambda: linalg.solve(tf.eye(2), tf.ones((2, 1), tf.float64)), lambda: linalg.pinv(tf.ones(2)),
    lambda: linalg.lstsq(tf.eye(2), tf.ones(2))])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()


def test_empty_matrices() -> None:
    assert linalg.inv(tf.zeros((0, 0))).shape == [0, 0]
    assert linalg.solve(tf.zeros((0, 3, 3)), tf.zeros((0, 3, 1))).shape == [0, 3, 1]
    assert linalg.cholesky(tf.zeros((0, 2, 2))).shape == [0, 2, 2]
