"""Decompositions: gradients that do not depend on the phase of vectors, and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg
from tests.ops.directions import check

_RNG = np.random.default_rng(3)


def _complex(*shape: int) -> np.ndarray:
    return _RNG.normal(size=shape) + 1j * _RNG.normal(size=shape)


def _hermitian(x: Any) -> Any:
    return x + linalg.adjoint(x)


def _projectors(v: Any, weights: Any) -> Any:
    """Σ w vᵢ vᵢᴴ: the same whatever the phases of the vectors."""
    return tf.matmul(v * weights[..., None, :], v, adjoint_b=True)


@pytest.mark.parametrize("shape, dtype", [((3, 3), "float64"), ((2, 3, 3), "complex128")])
def test_eigh_gradients(shape: tuple[int, ...], dtype: str) -> None:
    weights = np.array([1.0, -2.0, 0.5]).astype(dtype)

    def function(x: Any) -> Any:
        e, v = linalg.eigh(_hermitian(x))
        return _projectors(v, weights * tf.cast(tf.exp(e), v.dtype))

    check(function, shape, dtype=dtype)
    check(lambda x: linalg.eigvalsh(_hermitian(x)), shape, dtype=dtype)


def test_eigh_reads_the_lower_triangle() -> None:
    x = tf.constant([[2.0, 9.0], [1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = linalg.eigvalsh(x)[0]
    np.testing.assert_allclose(y.numpy(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), [[0.5, 0.0], [-1.0, 0.5]], rtol=1e-5)


def test_eigenvalues_of_complex_matrices_are_complex() -> None:
    x = tf.constant([[2.0, 1j], [-1j, 3.0]], tf.complex64)
    e, v = linalg.eigh(x)
    wanted = [(5 - 5 ** 0.5) / 2, (5 + 5 ** 0.5) / 2]
    for found in (e, linalg.eigvalsh(x), linalg.eigvals(x)):
        assert found.dtype == tf.complex64
        np.testing.assert_allclose(np.sort(found.numpy()), wanted, rtol=1e-6)
    assert linalg.eigvalsh(tf.math.real(x)).dtype == tf.float32
    np.testing.assert_allclose((v * e) @ tf.linalg.adjoint(v), x, atol=1e-6)


def test_equal_eigenvalues_have_finite_gradients() -> None:
    x = tf.eye(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        e, v = linalg.eigh(x)
        y = tf.reduce_sum(e) + tf.reduce_sum(v)
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_eig_gradients() -> None:
    def function(x: Any) -> Any:
        e, v = linalg.eig(x)
        return tf.cast(tf.abs(v), tf.complex128) * tf.exp(e)

    check(function, _complex(3, 3), dtype="complex128")
    rotation = np.array([[0.3, -1.0, 0.2], [1.0, 0.1, 0.0], [0.4, 0.1, 2.0]])
    check(function, rotation)
    check(lambda x: tf.reduce_sum(linalg.eigvals(x) ** 2), rotation)


def test_eig_of_real_matrices_is_complex() -> None:
    e, v = linalg.eig(tf.constant([[0.0, -1.0], [1.0, 0.0]]))
    assert e.dtype == v.dtype == tf.complex64
    assert tf.eigvals(tf.eye(2, dtype=tf.float64)).dtype == tf.complex128
    np.testing.assert_allclose(sorted(e.numpy().imag), [-1.0, 1.0], rtol=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("full", [False, True])
def test_svd_factors(shape: tuple[int, ...], full: bool) -> None:
    a = _complex(*shape)
    s, u, v = linalg.svd(a, full_matrices=full)
    k, m, n = min(shape[-2:]), *shape[-2:]
    assert u.shape[-1] == (m if full else k) and v.shape[-1] == (n if full else k)
    made = (u.numpy()[..., :k] * s.numpy()[..., None, :]) @ np.swapaxes(
        v.numpy()[..., :k].conj(), -1, -2)
    np.testing.assert_allclose(made, a, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_svd_gradients(shape: tuple[int, ...], dtype: str) -> None:
    a = _complex(*shape)
    a = a if dtype == "complex128" else a.real

    def function(x: Any) -> Any:
        s, u, v = linalg.svd(x)
        return tf.matmul(u * tf.cast(tf.exp(s), u.dtype), v, adjoint_b=True)

    check(function, a, dtype=dtype)
    check(lambda x: linalg.svd(x, compute_uv=False), a, dtype=dtype)


def test_svd_refuses_the_gradient_of_full_factors() -> None:
    x = tf.ones((3, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = linalg.svd(x, full_matrices=True)[1]
    with pytest.raises(tf.errors.UnimplementedError):
        tape.gradient(y, x)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_qr(shape: tuple[int, ...]) -> None:
    a = _RNG.normal(size=shape)
    q, r = linalg.qr(a)
    np.testing.assert_allclose(q.numpy() @ r.numpy(), a, atol=1e-12)
    assert linalg.qr(a, full_matrices=True).q.shape == [shape[0], shape[0]]
    check(lambda x: tf.matmul(*linalg.qr(x)), a)


@pytest.mark.parametrize("call", [
    lambda: linalg.eigh(tf.ones((2, 3))), lambda: linalg.eig(tf.ones(3)),
    lambda: linalg.svd(tf.ones(3)), lambda: linalg.qr(tf.ones((2, 2), tf.int32))])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
