"""LU factors with partial pivoting, and what is solved with them."""

from __future__ import annotations

from typing import NamedTuple

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import nonfinite
from gtape.numerics.triangular import factor_lu
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import index_tensor
from gtape.ops.elementwise.scalars import zero
from gtape.ops.indexing.gathering import gather
from gtape.ops.indexing.sorting import argsort_
from gtape.ops.linalg.diagonals import band_part_, diag_part_, set_diag_
from gtape.ops.linalg.matrices import computed, matrix_spec
from gtape.ops.linalg.products import matmul_
from gtape.ops.linalg.solving import triangular_solve_
from gtape.ops.shape.creation import eye, ones_like
from gtape.ops.shape.layout import swap_last


class Lu(NamedTuple):
    """Both triangles in one matrix, and the row order."""

    lu: Tensor
    p: Tensor


@primitive(outputs="lu p", tf_name="Lu")
def lu_(xp: ArrayModule, a: Array, *, index: DType) -> tuple[Array, Array]:
    """a[p] = L U, L with a diagonal of ones."""
    made, order = computed(xp, "lu", lambda m: factor_lu(xp, m), a, rule=nonfinite.ONLY_NAN)
    return made, order.astype(index.np_dtype)


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
    """The inverse of permutations [..., n]."""
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
