"""Matrices that have no inverse: the Moore-Penrose inverse and least squares."""

from __future__ import annotations

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float
from gtape.ops.control.selection import where
from gtape.ops.linalg.diagonals import diag_part_, set_diag_
from gtape.ops.linalg.eigen import singular_values, svd
from gtape.ops.linalg.matrices import WELL, adjoint_of, computed, matrix_spec
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.linalg.solving import cholesky_, cholesky_solve
from gtape.ops.reductions.reductions import reduce_max
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims


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
    return (outside - matmul_(matmul_(yh, g), yh)
            + columns - matmul_(matmul_(columns, y), a))


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
    if not weight:
        return gram
    return set_diag_(gram, diag_part_(gram) + weight)
