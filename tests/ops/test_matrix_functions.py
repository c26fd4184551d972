"""Matrix functions against eigenvalues, and where they do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg

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
    lambda: linalg.logm(_A), lambda: linalg.sqrtm(tf.zeros((2, 2)))])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
