"""Eigenvalues, singular values and QR factors.

Gradients of vectors need distinct values: pairs of equal values contribute nothing, as in
TensorFlow. Sources: Giles 2008, "Collected matrix derivative results"; Townsend 2016,
"Differentiating the singular value decomposition"; Walter & Lehmann 2010, arXiv:1009.6112.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import UnimplementedError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import systems
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.operators import conj, real
from gtape.ops.elementwise.scalars import divide_no_nan, imag_part, make_complex
from gtape.ops.linalg.diagonals import band_part_, diag_, diag_part_, set_diag_
from gtape.ops.linalg.products import matmul_
from gtape.ops.linalg.solving import adjoint_of, computed, matrix_spec, solve_, triangular_solve_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import concat_, filled

_COMPLEX = ("complex128",)
_TALL = [[2.0, 0.3], [0.5, 1.7], [-0.1, 0.6]]
_WIDE = [[2.0, 0.5, -0.1], [0.3, 1.7, 0.6]]
_WELL = [[2.0, 0.3, -0.4], [0.5, 1.1, 0.2], [-0.1, 0.6, 0.4]]


def _columns(x: Tensor) -> Tensor:
    """[..., n] as [..., 1, n]: one number for each column."""
    return reshape_(x, shape=(*x.spec.shape[:-1], 1, x.spec.shape[-1]))


def _rows(x: Tensor) -> Tensor:
    return reshape_(x, shape=(*x.spec.shape, 1))


def _diagonal_matrix(x: Tensor) -> Tensor:
    n = x.spec.shape[-1]
    return diag_(x, rows=n, columns=n)


def _gaps(x: Tensor) -> Tensor:
    """1 / (x[j] - x[i]), and 0 where they are equal."""
    # Equal values may turn into each other freely: what they contribute has no limit, and is left
    # out, as TensorFlow does.
    return divide_no_nan(1.0, _columns(x) - _rows(x))


# ---------------------------------------------------------------- eigh
@primitive(outputs="e v", tf_name="SelfAdjointEigV2", holomorphic=False)
def eigh_(xp: ArrayModule, a: Array) -> tuple[Array, ...]:
    """a v = v diag(e) for Hermitian a, e ascending; the lower triangle of a is read."""
    return computed(xp, "eigh: no convergence", lambda m: tuple(xp.linalg.eigh(m)), a,
                    rule=systems.lower(systems.NAN))


@eigh_.infer
def _(a: Spec) -> tuple[Spec, Spec]:
    matrix_spec("eigh", a, square=True)
    return Spec(a.shape[:-1], a.dtype.real_dtype), a


@eigh_.vjp("a")
def _(gs: Sequence[Tensor | None], e: Tensor, v: Tensor) -> Tensor:
    grad_e, grad_v = gs
    vh = adjoint_of(v)
    middle = None if grad_e is None else _diagonal_matrix(cast(grad_e, v.dtype))
    if grad_v is not None:
        turned = cast(_gaps(e), v.dtype) * matmul_(vh, grad_v)
        middle = turned if middle is None else middle + turned
    grad = matmul_(v, matmul_(middle, vh))
    # An element below the diagonal stands for the one above it too; the diagonal for itself.
    folded = band_part_(grad + adjoint_of(grad), lower=-1, upper=0)
    return set_diag_(folded, 0.5 * diag_part_(folded))


eigh_.cases = [case(_WELL), case([_WELL, _WELL])]


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(e, v): eigenvalues, ascending, and eigenvectors as columns, of Hermitian matrices.

    Only the lower triangle is read, and the gradient lies in it. Both have the dtype of `tensor`:
    those of complex matrices are complex, with imaginary parts 0.

    Raises InvalidArgumentError: not square."""
    e, v = eigh_(convert(tensor))
    return cast(e, v.dtype), v


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues, ascending, of Hermitian matrices. Raises as `eigh`."""
    return eigh(tensor)[0]


# ---------------------------------------------------------------- eig
@primitive(outputs="e v", tf_name="Eig", holomorphic=False)
def eig_(xp: ArrayModule, a: Array) -> tuple[Array, Array]:
    """a v = v diag(e); columns of v have length 1."""
    y = computed(xp, "eig: no convergence", lambda m: tuple(xp.linalg.eig(m)), a)
    # NumPy gives real arrays where all eigenvalues are: the dtype must not depend on the values.
    wide = np.complex128 if a.dtype.itemsize >= 8 and a.dtype != np.complex64 else np.complex64
    return tuple(m.astype(wide) for m in y)


@eig_.infer
def _(a: Spec) -> tuple[Spec, Spec]:
    matrix_spec("eig", a, square=True)
    wide = (dtypes.complex128 if a.dtype in (dtypes.float64, dtypes.complex128)
            else dtypes.complex64)
    return Spec(a.shape[:-1], wide), Spec(a.shape, wide)


@eig_.vjp("a")
def _(gs: Any, a_spec: Spec, e: Tensor, v: Tensor) -> Tensor:
    grad_e, grad_v = gs
    vh = adjoint_of(v)
    middle = None if grad_e is None else _diagonal_matrix(grad_e)
    if grad_v is not None:
        projected = matmul_(vh, grad_v)
        # Columns keep length 1, so that what would lengthen them is taken out.
        lengths = cast(real(diag_part_(projected)), v.dtype)
        free = projected - matmul_(vh, v) * _columns(lengths)
        turned = conj(_gaps(e)) * free
        middle = turned if middle is None else middle + turned
    y = solve_(vh, matmul_(middle, vh))
    return cast(y if a_spec.dtype.is_complex else real(y), a_spec.dtype)


eig_.cases = [case(_WELL, dtypes=("float64",))]


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(e, v): complex eigenvalues, and eigenvectors of length 1 as columns, of square matrices.
    Raises InvalidArgumentError: not square."""
    return eig_(convert(tensor))


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The complex eigenvalues of square matrices. Raises as `eig`."""
    return eig_(convert(tensor))[0]


# ---------------------------------------------------------------- svd
@primitive(outputs="s u v", tf_name="Svd", holomorphic=False)
def svd_(xp: ArrayModule, a: Array, *, full: bool = False) -> tuple[Array, ...]:
    """a = u diag(s) vᴴ, s descending."""
    def routine(m: np.ndarray) -> tuple[np.ndarray, ...]:
        u, s, vh = xp.linalg.svd(m, full_matrices=full)
        return s, u, xp.conj(xp.swapaxes(vh, -1, -2))

    return computed(xp, "svd: no convergence", routine, a)


@svd_.infer
def _(a: Spec, *, full: bool) -> tuple[Spec, Spec, Spec]:
    matrix_spec("svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    return (Spec((*batch, k), a.dtype.real_dtype), a.reshaped((*batch, m, m if full else k)),
            a.reshaped((*batch, n, n if full else k)))


@svd_.vjp("a")
def _(gs: Any, a_spec: Spec, s: Tensor, u: Tensor, v: Tensor, *, full: bool) -> Tensor:
    grad_s, grad_u, grad_v = gs
    if full and a_spec.shape[-1] != a_spec.shape[-2] and (grad_u is not None or grad_v is not None):
        raise UnimplementedError("svd: the gradient of u and v with full_matrices=True is not "
                                 "unique for matrices that are not square; use "
                                 "full_matrices=False")
    k = s.spec.shape[-1]
    u, v = u[..., :k], v[..., :k]
    if grad_u is None and grad_v is None:
        return matmul_(u * _columns(cast(grad_s, a_spec.dtype)), adjoint_of(v))
    return _svd_part(a_spec, s, u, v, grad_s, *filled((grad_u, grad_v), (u.spec, v.spec)))


def _svd_part(a: Spec, s: Tensor, u: Tensor, v: Tensor, grad_s: Tensor | None, grad_u: Tensor,
              grad_v: Tensor) -> Tensor:
    # Wan & Zhang 2019, arXiv:1909.02659, in the form for thin factors.
    uh, vh = adjoint_of(u), adjoint_of(v)
    scale = cast(s, a.dtype)
    gaps = cast(_gaps(s * s), a.dtype)
    inverse = cast(divide_no_nan(1.0, s), a.dtype)
    from_u, from_v = matmul_(uh, grad_u), matmul_(vh, grad_v)
    left, right = gaps * from_u, gaps * from_v
    middle = ((left + adjoint_of(left)) * _columns(scale)
              + _rows(scale) * (right + adjoint_of(right)))
    if grad_s is not None:
        middle = middle + _diagonal_matrix(cast(grad_s, a.dtype))
    if a.dtype.is_complex:
        # u and v are free up to a phase that they share: its part is read off u.
        phase = imag_part(diag_part_(from_u))
        middle = middle + _diagonal_matrix(make_complex(0.0 * phase, phase) * inverse)
    y = matmul_(u, matmul_(middle, vh))
    rows, columns = a.shape[-2:]
    # Thin factors: what turns a vector out of the space of the others.
    if rows > columns:
        y = y + matmul_((grad_u - matmul_(u, from_u)) * _columns(inverse), vh)
    if columns > rows:
        y = y + matmul_(u, adjoint_of((grad_v - matmul_(v, from_v)) * _columns(inverse)))
    return y


svd_.cases = [case(_TALL), case(_WIDE), case(_WELL), case([_WELL, _WELL], full=True)]


def singular_values(x: Tensor) -> Tensor:
    """Singular values, descending."""
    return svd_(x)[0]


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True,
        name: str | None = None) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """(s, u, v) with tensor = u diag(s) vᴴ, s descending; s alone with compute_uv=False.

    Args:
        full_matrices: u and v square, where they are thin otherwise.

    Raises InvalidArgumentError: a rank below 2, or integers."""
    x = convert(tensor)
    if not compute_uv:
        return singular_values(x)
    return svd_(x, full=bool(full_matrices))


# ---------------------------------------------------------------- qr
class Qr(NamedTuple):
    """The factors q, of orthonormal columns, and r, upper triangular."""

    q: Tensor
    r: Tensor


@primitive(outputs="q r", tf_name="Qr", holomorphic=False)
def qr_(xp: ArrayModule, a: Array, *, full: bool = False) -> tuple[Array, ...]:
    """a = q r."""
    mode = "complete" if full else "reduced"
    return computed(xp, "qr", lambda m: tuple(xp.linalg.qr(m, mode)), a)


@qr_.infer
def _(a: Spec, *, full: bool) -> tuple[Spec, Spec]:
    matrix_spec("qr", a)
    *batch, m, n = a.shape
    k = m if full else min(m, n)
    return a.reshaped((*batch, m, k)), a.reshaped((*batch, k, n))


@qr_.vjp("a")
def _(gs: Any, a_spec: Spec, q: Tensor, r: Tensor, *, full: bool) -> Tensor:
    rows, columns = a_spec.shape[-2:]
    if full and rows > columns:
        raise UnimplementedError("qr: the gradient with full_matrices=True is not unique for more "
                                 "rows than columns; use full_matrices=False")
    grad_q, grad_r = filled(gs, (q.spec, r.spec))
    if rows >= columns:
        return _qr_square(q, r, grad_q, grad_r)
    # a = [x y], r = [u w]: q and u are the factors of x, and w = qᴴ y.
    right = r[..., rows:]
    grad_w = grad_r[..., rows:]
    grad_q = grad_q + matmul_(matmul_(q, right), adjoint_of(grad_w))
    x = _qr_square(q, r[..., :rows], grad_q, grad_r[..., :rows])
    return concat_(x, matmul_(q, grad_w), axis=len(a_spec.shape) - 1)


def _qr_square(q: Tensor, r: Tensor, grad_q: Tensor, grad_r: Tensor) -> Tensor:
    m = matmul_(r, adjoint_of(grad_r)) - matmul_(adjoint_of(grad_q), q)
    lower = band_part_(m, lower=-1, upper=0)
    # r has a real diagonal, so that of m counts once and without its imaginary part.
    whole = set_diag_(lower + adjoint_of(lower), cast(real(diag_part_(m)), m.dtype))
    left = grad_q + matmul_(q, whole)
    return adjoint_of(triangular_solve_(r, adjoint_of(left), lower=False))


qr_.cases = [case(_TALL), case(_WELL), case(_WIDE), case([_WIDE, _WIDE], full=True),
             case((3, 2), dtypes=_COMPLEX), case((2, 3), dtypes=_COMPLEX)]


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Qr:
    """The factors (q, r) of matrices: input = q r.

    Args:
        full_matrices: q square, where it has min(m, n) columns otherwise.

    Raises InvalidArgumentError: a rank below 2, or integers."""
    return Qr(*qr_(convert(input), full=bool(full_matrices)))
