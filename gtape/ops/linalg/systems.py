"""Systems solved by LU factors, and those without a solution: pseudo-inverse, least squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import paused
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import systems
from gtape.numerics.systems import factor_lu
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, index_tensor
from gtape.ops.control.selection import where
from gtape.ops.elementwise.scalars import zero
from gtape.ops.indexing.gathering import gather
from gtape.ops.indexing.sorting import argsort_
from gtape.ops.linalg.diagonals import band_part_, diag_part_, set_diag_
from gtape.ops.linalg.eigen import singular_values, svd
from gtape.ops.linalg.matrices import WELL, adjoint_of, computed, matrix_spec
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.linalg.solving import cholesky_, cholesky_solve, triangular_solve_
from gtape.ops.reductions.reductions import reduce_max
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import eye, ones_like
from gtape.ops.shape.layout import expand_dims, swap_last


class Lu(NamedTuple):
    """Both triangles in one matrix, and the row order."""

    lu: Tensor
    p: Tensor


@primitive(outputs="lu p", tf_name="Lu")
def lu_(xp: ArrayModule, a: Array, *, index: DType) -> tuple[Array, Array]:
    """a[p] = L U, L with a diagonal of ones."""
    factors, order = computed(xp, "lu", lambda m: factor_lu(xp, m), a, rule=systems.ONLY_NAN)
    return factors, order.astype(index.np_dtype)


@lu_.infer
def _(a: Spec, *, index: DType) -> tuple[Spec, Spec]:
    matrix_spec("lu", a, square=True)
    return a, Spec(a.shape[:-1], index)


@lu_.vjp("a")
def _(g: Tensor, lu: Tensor, p: Tensor) -> Tensor:
    # d(lu) = L tril(L⁻¹ da[p] U⁻¹, -1) + triu(L⁻¹ da[p] U⁻¹) U, transposed.
    lower, upper = _triangles(lu)
    left = band_part_(matmul_(lower, g, transpose_a=True), lower=-1, upper=0)
    right = band_part_(matmul_(g, upper, transpose_b=True), lower=0, upper=-1)
    left = set_diag_(left, zero(diag_part_(left)))
    middle = triangular_solve_(lower, left + right, transpose=True)
    y = triangular_solve_(upper, swap_last(middle), lower=False)
    return _permuted(swap_last(y), _inverse(p))


_PIVOTED = [[0.2, 1.0, 0.5], [2.0, 0.3, -0.4], [-1.0, 0.6, 1.5]]
lu_.cases = [case(_PIVOTED, index=dtypes.int32), case([_PIVOTED, _PIVOTED], index=dtypes.int64),
             case((2, 2), index=dtypes.int32, dtypes=("complex128",))]


def _triangles(lu: Tensor) -> tuple[Tensor, Tensor]:
    """L with a diagonal of ones, and U."""
    lower = band_part_(lu, lower=-1, upper=0)
    return set_diag_(lower, ones_like(diag_part_(lu))), band_part_(lu, lower=0, upper=-1)


def _inverse(p: Tensor) -> Tensor:
    """The inverse of permutations [..., n]: what sorts them."""
    return argsort_(p, descending=False, dtype=dtypes.int64)


def _permuted(x: Tensor, order: Tensor) -> Tensor:
    """x[..., order, :], for each matrix its own order."""
    return gather(x, order, batch_dims=order.ndim - 1, axis=order.ndim - 1)


def lu(input: TensorLike, output_idx_type: DType = dtypes.int32, name: str | None = None) -> Lu:
    """(lu, p) with input[p] = L U: L below the diagonal (its own diagonal is ones), U above.

    Raises:
        InvalidArgumentError: not square.
    """
    return Lu(*lu_(convert(input), index=as_dtype(output_idx_type)))


def _factors(name: str, lower_upper: Tensor, perm: Tensor) -> tuple[Tensor, Tensor]:
    x = convert(lower_upper)
    matrix_spec(name, x.spec, square=True)
    order = index_tensor(perm, name, x)
    if order.spec.shape != x.spec.shape[:-1]:
        raise InvalidArgumentError(f"{name}: perm must have the shape {list(x.spec.shape[:-1])} "
                                   f"for {x.spec}; got {order.spec}")
    return x, order


def lu_reconstruct(lower_upper: Tensor, perm: Tensor, validate_args: bool = False,
                   name: str | None = None) -> Tensor:
    """The matrix whose factors `lu` gave.

    Raises:
        InvalidArgumentError: shapes that do not fit.
    """
    x, order = _factors("lu_reconstruct", lower_upper, perm)
    return _permuted(matmul_(*_triangles(x)), _inverse(order))


def lu_solve(lower_upper: Tensor, perm: Tensor, rhs: TensorLike, validate_args: bool = False,
             name: str | None = None) -> Tensor:
    """x with a x = rhs, given the factors of a.

    Raises:
        InvalidArgumentError: shapes that do not fit, or a singular matrix.
    """
    x, order = _factors("lu_solve", lower_upper, perm)
    b = convert_like(rhs, x._t, "lu_solve")
    lower, upper = _triangles(x)
    return triangular_solve_(upper, triangular_solve_(lower, _permuted(b, order)), lower=False)


def lu_matrix_inverse(lower_upper: Tensor, perm: Tensor, validate_args: bool = False,
                      name: str | None = None) -> Tensor:
    """a⁻¹, given the factors of a.

    Raises:
        InvalidArgumentError: shapes that do not fit, or a singular matrix.
    """
    x, order = _factors("lu_matrix_inverse", lower_upper, perm)
    identity = eye(x.spec.shape[-1], batch_shape=x.spec.shape[:-2], dtype=x.dtype)
    return lu_solve(x, order, identity)


@primitive(tf_name="Pinv", holomorphic=False)
def pinv_(xp: ArrayModule, a: Array, *, rcond: float) -> Array:
    """The Moore-Penrose inverse; singular values up to rcond times the largest count as 0."""
    return computed(xp, "pinv", lambda m: xp.linalg.pinv(m, rcond), a)

pinv_.infer(lambda a, **_:
            matrix_spec("pinv", a).reshaped((*a.shape[:-2], a.shape[-1], a.shape[-2])))
@pinv_.vjp("a")
def _(g: Tensor, a: Tensor, y: Tensor) -> Tensor:
    # Golub & Pereyra 1973, doi:10.1137/0710036, for constant rank.
    yh, gh = adjoint_of(y), adjoint_of(g)
    rows = matmul_(gh, matmul_(y, yh))
    columns = matmul_(matmul_(yh, y), gh)
    outside = rows - matmul_(a, matmul_(y, rows))
    return outside - matmul_(matmul_(yh, g), yh) + columns - matmul_(matmul_(columns, y), a)


pinv_.cases = [case((3, 2), rcond=1e-7), case((2, 3), rcond=1e-7), case(WELL, rcond=1e-7),
               case((3, 2), rcond=1e-7, dtypes=("complex128",))]


def pinv(a: TensorLike, rcond: float | None = None, validate_args: bool = False,
         name: str | None = None) -> Tensor:
    """The Moore-Penrose inverse of matrices [..., m, n].

    Args:
        rcond: singular values up to this times the largest count as 0; 10 max(m, n) times the
            dtype's rounding unit unless given. Where it cuts off values that are not 0, the
            gradient is that of the singular values and vectors, which must be distinct.

    Raises:
        InvalidArgumentError: a rank below 2, or integers.
    """
    x = convert(a)
    matrix_spec("pinv", x.spec)
    rounding = float(10 * max(x.spec.shape[-2:]) * np.finfo(x.dtype.real_dtype.np_dtype).eps)
    if rcond is None:
        return pinv_(x, rcond=rounding)
    limit = as_float(rcond, "pinv: rcond")
    # The rule for constant rank is wrong only where values that are not 0 are cut off.
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


def lstsq(matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:
    """The x that makes ‖matrix x - rhs‖² + l2_regularizer ‖x‖² least, of least norm if many do.

    Args:
        fast: solve the normal equations by Cholesky's method, which needs full rank and squares
            the condition number; otherwise use singular values, without regularizer.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit; or fast and not of full rank.
    """
    a, b = pair("lstsq", matrix, rhs)
    matrix_spec("lstsq", a.spec)
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
    return set_diag_(gram, diag_part_(gram) + weight) if weight else gram
