"""Samples of products and of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import COMPLEX, FLOATS, WIDE, Sample, of, sample

sl = pytest.importorskip("scipy.linalg")
_WELL = np.array([[4.0, 0.3, -0.4], [0.5, 3.0, 0.2], [-0.1, 0.6, 2.5]])
_BATCH = np.stack([_WELL, _WELL.T + np.eye(3)])
_POSITIVE = _WELL @ _WELL.T
_ALL = (*WIDE, *COMPLEX)
#: What a result of decompositions may be off, in units: they lose a few digits of the condition.
_LOOSE = 200


def samples() -> Iterator[Sample]:
    yield from _products()
    yield from _solving()
    yield from _decompositions()
    yield from _bands()


def _products() -> Iterator[Sample]:
    for a, b in (((3, 5), (5, 2)), ((2, 3, 5), (5, 2)), ((2, 1, 3, 5), (4, 5, 2)),
                 ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((3, 0), (0, 2))):
        yield sample("matmul", of(*a), of(*b), dtypes=(*FLOATS, *COMPLEX) if len(a) == 2 else WIDE,
                     reference=np.matmul)
    yield sample("matmul", of(5, 3), of(2, 5), transpose_a=True, transpose_b=True,
                 reference=lambda a, b, transpose_a, transpose_b: a.T @ b.T)
    yield sample("matmul", of(5, 3), of(5, 2), adjoint_a=True, dtypes=_ALL,
                 reference=lambda a, b, adjoint_a: a.conj().T @ b)
    yield sample("linalg.matvec", of(2, 3, 5), of(5), reference=lambda a, x: a @ x)
    yield sample("tensordot", of(2, 3, 4), of(4, 3, 5), axes=[[1, 2], [1, 0]],
                 reference=np.tensordot)
    for equation, shapes in (("ij,jk->ik", ((2, 3), (3, 4))), ("bij,bj->b", ((2, 3, 4), (2, 4))),
                             ("ii->", ((3, 3),)), ("i,j->ij", ((2,), (3,)))):
        yield sample("einsum", *(of(*s) for s in shapes), dtypes=(*FLOATS, "complex128"),
                     function=lambda *x, e=equation: tf.einsum(e, *x),
                     reference=lambda *x, e=equation: np.einsum(e, *x))
    yield sample("linalg.cross", of(2, 3), of(2, 3), reference=np.cross)


def _solving() -> Iterator[Sample]:
    square = {"dtypes": _ALL, "near": _LOOSE}
    for a in (_WELL, _BATCH):
        yield sample("linalg.inv", a, reference=np.linalg.inv, **square)
        yield sample("linalg.solve", a, of(3, 2), reference=np.linalg.solve, **square)
        yield sample("linalg.det", a, reference=np.linalg.det, **square)
        yield sample("linalg.slogdet", a, **square, reference=lambda a: [
            np.asarray(x, a.dtype) for x in np.linalg.slogdet(a)])
        yield sample("linalg.triangular_solve", a, of(3, 1), **square,
                     reference=lambda a, b: np.linalg.solve(np.tril(a), b))
        yield sample("linalg.pinv", a[..., :2], reference=np.linalg.pinv, dtypes=_ALL, near=_LOOSE)
    large = np.tril(np.cos(np.arange(67.0 * 67)).reshape(67, 67)) / 67 + np.eye(67)
    for lower in (True, False):
        yield sample("linalg.triangular_solve", large if lower else large.T, of(67, 2), orders=0,
                     lower=lower, **square, reference=lambda a, b, lower: np.linalg.solve(a, b))
    yield sample("linalg.triangular_solve", _WELL, of(3, 1), lower=False, adjoint=True, **square,
                 reference=lambda a, b, lower, adjoint: np.linalg.solve(np.triu(a).conj().T, b))
    # The gradient of cholesky is Hermitian, of which differences see one triangle: so its sample
    # makes its matrix Hermitian first.
    yield sample("linalg.cholesky", _WELL, function=lambda a: tf.linalg.cholesky(_hermitian(a)),
                 reference=lambda a: np.linalg.cholesky(a @ a.conj().T), **square)
    yield sample("linalg.logdet", _WELL, function=lambda a: tf.linalg.logdet(_hermitian(a)),
                 reference=lambda a: np.linalg.slogdet(a @ a.conj().T)[1], **square)
    yield sample("linalg.cholesky_solve", np.tril(_WELL), of(3, 2), **square,
                 reference=lambda c, b: np.linalg.solve(np.tril(c) @ np.tril(c).conj().T, b))
    yield sample("linalg.lstsq", of(5, 3), of(5, 1), dtypes=WIDE, near=5 * _LOOSE,
                 reference=lambda a, b: np.linalg.lstsq(a, b)[0])
    yield sample("linalg.lu", _WELL, function=lambda a: tf.linalg.lu(a).lu, **square,
                 reference=lambda a: (lambda p, low, u: low + u - np.eye(3))(*sl.lu(a)))
    yield sample("linalg.lu_solve", _WELL, of(3, 2), dtypes=WIDE, near=_LOOSE,
                 function=lambda a, b: tf.linalg.lu_solve(*tf.linalg.lu(a), b),
                 reference=np.linalg.solve)
    yield sample("linalg.lu_matrix_inverse", _WELL, dtypes=WIDE, near=_LOOSE,
                 function=lambda a: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(a)),
                 reference=np.linalg.inv)
    yield sample("linalg.lu_reconstruct", _WELL, dtypes=WIDE, near=_LOOSE, reference=lambda a: a,
                 function=lambda a: tf.linalg.lu_reconstruct(*tf.linalg.lu(a)))
    yield sample("linalg.banded_triangular_solve", of(2, 4, low=1, high=2), of(4, 1), dtypes=WIDE,
                 near=_LOOSE)
    for empty in ((0, 0), (2, 0, 0), (0, 2, 2)):
        for name in ("inv", "det", "expm", "matrix_square_root", "cholesky"):
            full = name if name == "matrix_square_root" else f"linalg.{name}"
            yield sample(full, np.zeros(empty), dtypes=WIDE, orders=0)


def _hermitian(a: Any) -> Any:
    return tf.matmul(a, a, adjoint_b=True)


def _even(a: Any) -> Any:
    """A Hermitian matrix of which both triangles follow `a`."""
    return a + tf.linalg.adjoint(a)


def _decompositions() -> Iterator[Sample]:
    wide = {"dtypes": WIDE, "near": _LOOSE}
    yield sample("linalg.eigh", _WELL, function=lambda a: tf.linalg.eigh(_even(a))[0], **wide,
                 reference=lambda a: np.linalg.eigvalsh(a + a.T))
    yield sample("linalg.eigh", _WELL, dtypes=_ALL, near=_LOOSE, function=_projector,
                 reference=_projector_of)
    yield sample("linalg.eigvalsh", _BATCH, function=lambda a: tf.linalg.eigvalsh(_even(a)),
                 reference=lambda a: np.linalg.eigvalsh(a + np.swapaxes(a, -1, -2)), **wide)
    yield sample("eigvals", _WELL, function=lambda a: tf.math.real(tf.reduce_sum(
        tf.eigvals(a) ** 3)), reference=lambda a: np.trace(a @ a @ a), **wide)
    yield sample("eig", _WELL, function=lambda a: tf.abs(tf.eig(a)[1]), **wide,
                 reference=lambda a: np.abs(np.linalg.eig(a)[1]))
    yield sample("linalg.svd", of(4, 3), function=lambda a: tf.linalg.svd(a)[0], dtypes=_ALL,
                 near=_LOOSE, reference=lambda a: np.linalg.svd(a)[1])
    yield sample("linalg.svd", of(3, 4), function=_low_rank, dtypes=_ALL, near=_LOOSE,
                 reference=lambda a: (lambda u, s, v: u[:, :1] * s[0] @ v[:1])(*np.linalg.svd(a)))
    yield sample("linalg.qr", of(4, 3), dtypes=_ALL, near=_LOOSE,
                 function=lambda a: tf.abs(tf.linalg.qr(a)[1]),
                 reference=lambda a: np.abs(np.linalg.qr(a)[1]))
    yield sample("linalg.expm", of(2, 3, 3), dtypes=_ALL, near=_LOOSE, reference=sl.expm)
    yield sample("linalg.expm", np.diag([30.0, -40.0, 0.1]), dtypes=WIDE, near=_LOOSE, orders=0,
                 reference=sl.expm)
    yield sample("linalg.logm", _WELL, dtypes=COMPLEX, near=_LOOSE, reference=sl.logm)
    yield sample("linalg.logm", of(5, 5), dtypes=COMPLEX, near=_LOOSE, reference=sl.logm,
                 orders=1)
    yield sample("linalg.logm", np.array([[2.0 ** -10, 1.0], [0.0, 2.0 ** -10]]), dtypes=COMPLEX,
                 near=4, orders=0, gradients=False, reference=lambda a: np.array(
                     [[-10 * np.log(2), 1024.0], [0, -10 * np.log(2)]]) + 0j)
    yield sample("matrix_square_root", _WELL, dtypes=_ALL, near=_LOOSE, reference=sl.sqrtm)


def _projector(a: Any) -> Any:
    """The projector on the eigenvector of the largest eigenvalue, which has no free phase."""
    e, v = tf.linalg.eigh(_even(a))
    return tf.matmul(v[:, 2:] * e[2], v[:, 2:], adjoint_b=True)


def _projector_of(a: Any) -> Any:
    e, v = np.linalg.eigh(a + a.conj().T)
    return e[2] * v[:, 2:] @ v[:, 2:].conj().T


def _low_rank(a: Any) -> Any:
    s, u, v = tf.linalg.svd(a)
    return tf.matmul(u[:, :1] * tf.cast(s[:1], u.dtype), v[:, :1], adjoint_b=True)


def _dense(d: Any) -> Any:
    return np.diag(d[1]) + np.diag(d[0, :-1], 1) + np.diag(d[2, 1:], -1)


def _bands() -> Iterator[Sample]:
    bands = np.array([[0.5, -0.4, 0.0], [2.2, 1.8, 2.2], [0.0, 0.9, 0.6]])
    yield sample("linalg.tridiagonal_solve", bands, of(3, 2), dtypes=_ALL, near=_LOOSE,
                 reference=lambda d, b: np.linalg.solve(_dense(d), b))
    yield sample("linalg.tridiagonal_matmul", bands, of(3, 2), dtypes=_ALL,
                 reference=lambda d, b: _dense(d) @ b)
    yield sample("linalg.eigh_tridiagonal", of(4, low=1, high=4), of(3), dtypes=WIDE, near=_LOOSE,
                 reference=lambda a, b: sl.eigh_tridiagonal(a, b)[0])
