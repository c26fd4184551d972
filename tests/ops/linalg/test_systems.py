"""LU factors and what is solved with them."""

from __future__ import annotations

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


def test_refusals() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.lu(tf.ones((2, 3)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        linalg.lu_solve(tf.eye(2), tf.constant([0, 1, 2]), tf.ones((2, 1)))


def test_factors_of_empty_matrices():
    found = tf.linalg.lu(tf.zeros([2, 0, 0]))
    assert found.lu.shape == (2, 0, 0) and found.p.shape == (2, 0)
