"""Inverses and linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import Tensor
from gtape.numerics import nonfinite
from gtape.numerics.triangular import solve_triangular
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, one_dtype
from gtape.ops.control.selection import where
from gtape.ops.elementwise.scalars import conj
from gtape.ops.linalg.diagonals import band_part_, diag_, diag_part_, set_diag_
from gtape.ops.linalg.eigen import singular_values, svd
from gtape.ops.linalg.matrices import adjoint_of, check_matrix, computed
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.reductions.reductions import reduce_max
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims, sum_to

_COMPLEX = ("complex128",)


@primitive(tf_name="MatrixInverse")
def inv_(xp: Any, a: Any) -> Any:
    """y = a⁻¹."""
    return computed(xp, "inv: the matrix is not invertible", xp.linalg.inv, a,
                    rule=nonfinite.ONLY_NAN)


@inv_.infer
def _(a: Spec) -> Spec:
    check_matrix("inv", a, square=True)
    return a


@inv_.vjp("a")
def _(g: Any, y: Any) -> Any:
    return -matmul_(matmul_(y, g, transpose_a=True), y, transpose_b=True)


_WELL = [[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]]
inv_.cases = [case(_WELL), case([_WELL, _WELL]), case((0, 0)), case((2, 2), dtypes=_COMPLEX)]


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, or of their conjugate transposes.

    Raises:
        InvalidArgumentError: not square, or singular.
    """
    made = inv_(convert(input))
    return adjoint_of(made) if adjoint else made


def _system_spec(name: str, a: Spec, b: Spec) -> Spec:
    one_dtype(name, (a, b))
    check_matrix(name, a, square=True)
    if b.ndim < 2:
        raise InvalidArgumentError(f"{name}: the right-hand side must be [..., n, columns]; got "
                                   f"{b}. Write rhs[:, tf.newaxis] for one vector")
    if b.shape[-2] != a.shape[-1]:
        raise InvalidArgumentError(f"{name}: the right-hand side must have as many rows as the "
                                   f"matrix; got {a} and {b}")
    batch = broadcast_shapes(f"{name} (batch axes)", a.reshaped(a.shape[:-2]),
                             b.reshaped(b.shape[:-2]))
    return b.reshaped((*batch, *b.shape[-2:]))


def _operands(xp: Any, a: Any, b: Any, transpose: bool) -> tuple[Any, Any]:
    """The matrix, transposed if asked, and the right-hand side, with one batch shape."""
    left = xp.swapaxes(a, -1, -2) if transpose else a
    if left.shape[:-2] == b.shape[:-2]:
        return left, b
    batch = np.broadcast_shapes(left.shape[:-2], b.shape[:-2])
    return (xp.broadcast_to(left, (*batch, *left.shape[-2:])),
            xp.broadcast_to(b, (*batch, *b.shape[-2:])))


@primitive(tf_name="MatrixSolve")
def solve_(xp: Any, a: Any, b: Any, *, transpose: bool = False) -> Any:
    """x with a x = b, or aᵀ x = b."""
    return computed(xp, "solve: the matrix is not invertible", xp.linalg.solve,
                    *_operands(xp, a, b, transpose), rule=nonfinite.ONLY_NAN)


@solve_.infer
def _(a: Spec, b: Spec, *, transpose: bool) -> Spec:
    return _system_spec("solve", a, b)


@solve_.vjp("a", "b")
def _(g: Any, a: Any, b: Spec, y: Any, *, transpose: bool) -> Any:
    part = solve_(a, g, transpose=not transpose)
    return _matrix_part(part, y, a.spec, transpose), sum_to(part, b.shape)


def _matrix_part(part: Tensor, y: Tensor, a: Spec, transpose: bool) -> Tensor:
    """The cotangent of the matrix, given that of the right-hand side."""
    outer = (matmul_(y, part, transpose_b=True) if transpose
             else matmul_(part, y, transpose_b=True))
    return sum_to(-outer, a.shape)  # type: ignore[operator]


solve_.cases = [case(_WELL, (3, 2)), case([_WELL, _WELL], (3, 1)), case(_WELL, (2, 3, 1)),
                case(_WELL, (3, 2), transpose=True), case((2, 2), (2, 1), dtypes=_COMPLEX)]


def _conjugated(a: Tensor, adjoint: bool) -> Tensor:
    if not (adjoint and a.dtype.is_complex):
        return a
    return conj(a)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x with matrix x = rhs, or with the conjugate transpose of the matrix.

    Raises:
        InvalidArgumentError: not square, singular, or shapes or dtypes that do not fit.
    """
    a, b = pair("solve", matrix, rhs)
    return solve_(_conjugated(a, adjoint), b, transpose=bool(adjoint))


@primitive(tf_name="MatrixTriangularSolve")
def triangular_solve_(xp: Any, a: Any, b: Any, *, lower: bool = True,
                      transpose: bool = False) -> Any:
    """x with T x = b, or Tᵀ x = b, T one triangle of a."""
    below = lower != transpose
    part = nonfinite.lower if below else nonfinite.upper
    return computed(xp, "triangular_solve: the matrix is not invertible",
                    lambda t, r: solve_triangular(xp, t, r, below),
                    *_operands(xp, a, b, transpose), rule=part(nonfinite.ONLY_NAN))


@triangular_solve_.infer
def _(a: Spec, b: Spec, *, lower: bool, transpose: bool) -> Spec:
    return _system_spec("triangular_solve", a, b)


@triangular_solve_.vjp("a", "b")
def _(g: Any, a: Any, b: Spec, y: Any, *, lower: bool, transpose: bool) -> Any:
    part = triangular_solve_(a, g, lower=lower, transpose=not transpose)
    whole = _matrix_part(part, y, a.spec, transpose)
    kept = band_part_(whole, lower=-1, upper=0) if lower else band_part_(whole, lower=0, upper=-1)
    return kept, sum_to(part, b.shape)


triangular_solve_.cases = [
    case(_WELL, (3, 2)), case(_WELL, (3, 2), lower=False), case([_WELL, _WELL], (3, 1)),
    case(_WELL, (3, 2), transpose=True), case((2, 2), (2, 1), dtypes=_COMPLEX)]


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                     name: str | None = None) -> Tensor:
    """x with T x = rhs, or Tᴴ x = rhs, where T is the lower or upper triangle of `matrix`.

    Raises:
        InvalidArgumentError: not square, a zero on the diagonal, or shapes that do not fit.
    """
    a, b = pair("triangular_solve", matrix, rhs)
    return triangular_solve_(_conjugated(a, adjoint), b, lower=bool(lower),
                             transpose=bool(adjoint))


def banded_triangular_solve(bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                            name: str | None = None) -> Tensor:
    """x with T x = rhs, where T is triangular with few diagonals.

    Args:
        bands: [..., count, n]. Lower: the main diagonal first, then those below it, each aligned
            to the right of its row. Upper: the highest first and the main one last, aligned to
            the left.

    Raises:
        InvalidArgumentError: as `triangular_solve`.
    """
    x, b = pair("banded_triangular_solve", bands, rhs)
    if x.ndim < 2 or x.spec.shape[-2] > x.spec.shape[-1]:
        raise InvalidArgumentError(f"banded_triangular_solve: the bands must be [..., count, n] "
                                   f"with count <= n; got {x.spec}")
    count, n = x.spec.shape[-2:]
    if lower:
        full = diag_(x, k=(1 - count, 0), rows=n, columns=n, align="LEFT_RIGHT")
    else:
        full = diag_(x, k=(0, count - 1), rows=n, columns=n, align="LEFT_LEFT")
    return triangular_solve(full, b, lower=lower, adjoint=adjoint)


@primitive(tf_name="Cholesky", holomorphic=False)
def cholesky_(xp: Any, a: Any) -> Any:
    """The lower triangular y with y yᴴ = a; the lower triangle of a is read."""
    return computed(xp, "cholesky: the matrix is not positive definite", xp.linalg.cholesky, a,
                    rule=nonfinite.lower(nonfinite.ONLY_NAN))


@cholesky_.infer
def _(a: Spec) -> Spec:
    check_matrix("cholesky", a, square=True)
    return a


@cholesky_.vjp("a")
def _(g: Any, y: Any) -> Any:
    # Murray 2016, arXiv:1602.07527, section 3, with the cotangent spread over both triangles.
    middle = matmul_(adjoint_of(y), g)
    middle = band_part_(middle, lower=-1, upper=0)
    middle = set_diag_(middle, 0.5 * diag_part_(middle))
    back = adjoint_of(y)
    left = triangular_solve_(back, middle, lower=False)
    whole = adjoint_of(triangular_solve_(back, adjoint_of(left), lower=False))
    return 0.5 * (whole + adjoint_of(whole))


# The gradient is spread over both triangles of which one is read, so differences confirm it only
# along Hermitian directions; those of a number all are.
cholesky_.cases = [case([[2.0]]), case([[[2.0]], [[3.0]]])]


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L Lᴴ = input, for Hermitian positive definite matrices.

    Only the lower triangle is read; the gradient is Hermitian.

    Raises:
        InvalidArgumentError: not square, or not positive definite.
    """
    return cholesky_(convert(input))


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """x with L Lᴴ x = rhs, given the Cholesky factor L.

    Raises:
        InvalidArgumentError: as `triangular_solve`.
    """
    factor, b = pair("cholesky_solve", chol, rhs)
    return triangular_solve(factor, triangular_solve(factor, b), adjoint=True)


@primitive(tf_name="Pinv", holomorphic=False)
def pinv_(xp: Any, a: Any, *, rcond: float) -> Any:
    """The Moore-Penrose inverse; singular values up to rcond times the largest count as 0."""
    return computed(xp, "pinv", lambda m: xp.linalg.pinv(m, rcond), a)


@pinv_.infer
def _(a: Spec, *, rcond: float) -> Spec:
    check_matrix("pinv", a)
    return a.reshaped((*a.shape[:-2], a.shape[-1], a.shape[-2]))


@pinv_.vjp("a")
def _(g: Any, a: Any, y: Any) -> Any:
    # Golub & Pereyra 1973, doi:10.1137/0710036, for constant rank.
    yh, gh = adjoint_of(y), adjoint_of(g)
    rows = matmul_(gh, matmul_(y, yh))
    columns = matmul_(matmul_(yh, y), gh)
    outside = rows - matmul_(a, matmul_(y, rows))
    return (outside - matmul_(matmul_(yh, g), yh)
            + columns - matmul_(matmul_(columns, y), a))


pinv_.cases = [case((3, 2), rcond=1e-7), case((2, 3), rcond=1e-7), case(_WELL, rcond=1e-7),
               case((3, 2), rcond=1e-7, dtypes=_COMPLEX)]


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None,
         ) -> Tensor:
    """The Moore-Penrose inverse of matrices [..., m, n].

    Args:
        rcond: singular values up to this times the largest count as 0; 10 max(m, n) times the
            dtype's rounding unit unless given. Where it cuts off values that are not 0, the
            gradient is that of the singular values and vectors, which must be distinct.

    Raises:
        InvalidArgumentError: a rank below 2, or integers.
    """
    x = convert(a)
    check_matrix("pinv", x.spec)
    rounding = float(10 * max(x.spec.shape[-2:]) * np.finfo(x.dtype.real_dtype.np_dtype).eps)
    if rcond is None:
        return pinv_(x, rcond=rounding)
    limit = as_float(rcond, "pinv: rcond")
    if limit > rounding and _cuts(x, limit, rounding):
        return _truncated_pinv(x, limit)
    return pinv_(x, rcond=limit)


def _cuts(x: Tensor, limit: float, rounding: float) -> bool:
    """Whether singular values that are not 0 count as 0: the rank is then not that of `x`."""
    with paused():
        s = singular_values(x)._array_()
    largest = s[..., :1]
    return bool(((s > rounding * largest) & (s <= limit * largest)).any())


def _truncated_pinv(x: Tensor, limit: float) -> Tensor:
    s, u, v = svd(x)
    kept = s > limit * reduce_max(s, axis=-1, keepdims=True)
    inverses = 1.0 / where(kept, s, np.inf)
    return matmul_(v * cast(expand_dims(inverses, -2), x.dtype), adjoint_of(u))


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:
    """The x that makes ‖matrix x - rhs‖² + l2_regularizer ‖x‖² least, of least norm if many do.

    Args:
        fast: solve the normal equations by Cholesky's method, which needs full rank and squares
            the condition number; otherwise use singular values, without regularizer.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit; or fast and not of full rank.
    """
    a, b = pair("lstsq", matrix, rhs)
    check_matrix("lstsq", a.spec)
    if b.ndim < 2:
        raise InvalidArgumentError(f"lstsq: the right-hand side must be [..., m, columns]; got "
                                   f"{b.spec}")
    if not fast:
        return matmul_(pinv(a), b)
    ah = adjoint_of(a)
    rows, columns = a.spec.shape[-2:]
    if rows >= columns:
        return cholesky_solve(cholesky_(_regular(matmul_(ah, a), l2_regularizer)), matmul_(ah, b))
    factor = cholesky_(_regular(matmul_(a, ah), l2_regularizer))
    return matmul_(ah, cholesky_solve(factor, b))


def _regular(gram: Tensor, weight: float) -> Tensor:
    if not weight:
        return gram
    return set_diag_(gram, diag_part_(gram) + weight)  # type: ignore[operator]
