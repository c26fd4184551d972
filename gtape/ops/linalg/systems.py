"""Systems solved by LU factors, tridiagonal ones, and those without a solution: the pseudo-inverse
and least squares.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import paused
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import systems
from gtape.numerics.systems import factor_lu, solve_tridiagonal
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int, as_tensors, host_value, index_tensor, one_dtype
from gtape.ops.control.selection import where
from gtape.ops.elementwise.operators import conj
from gtape.ops.elementwise.scalars import zero
from gtape.ops.indexing.gathering import gather
from gtape.ops.indexing.sorting import argsort_
from gtape.ops.linalg.diagonals import band_part_, diag_, diag_part_, set_diag_
from gtape.ops.linalg.eigen import eigh_, singular_values, svd
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.linalg.solving import (
    WELL,
    adjoint_of,
    cholesky_,
    cholesky_solve,
    computed,
    matrix_spec,
    triangular_solve_,
)
from gtape.ops.reductions.reductions import reduce_max, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import eye, ones_like, zeros_like
from gtape.ops.shape.layout import expand_dims, squeeze, swap_last
from gtape.ops.shape.packing import concat_, stack_


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
    # The diagonal belongs to U; that of L is ones, and has no cotangent.
    left = set_diag_(left, zero(diag_part_(left)))
    middle = triangular_solve_(lower, left + right, transpose=True)
    y = triangular_solve_(upper, swap_last(middle), lower=False)
    return _permuted(swap_last(y), _inverse(p))


# Rows that must be exchanged, by pivots far enough apart that differences change none.
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
    Raises InvalidArgumentError: not square."""
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
    """The matrix whose factors `lu` gave. Raises InvalidArgumentError: shapes that do not fit."""
    x, order = _factors("lu_reconstruct", lower_upper, perm)
    return _permuted(matmul_(*_triangles(x)), _inverse(order))


def lu_solve(lower_upper: Tensor, perm: Tensor, rhs: TensorLike, validate_args: bool = False,
             name: str | None = None) -> Tensor:
    """x with a x = rhs, given the factors of a.
    Raises InvalidArgumentError: shapes that do not fit, or a singular matrix."""
    x, order = _factors("lu_solve", lower_upper, perm)
    b = convert_like(rhs, x._t, "lu_solve")
    lower, upper = _triangles(x)
    return triangular_solve_(upper, triangular_solve_(lower, _permuted(b, order)), lower=False)


def lu_matrix_inverse(lower_upper: Tensor, perm: Tensor, validate_args: bool = False,
                      name: str | None = None) -> Tensor:
    """a⁻¹, given the factors of a. Raises as `lu_solve`."""
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

    Raises InvalidArgumentError: a rank below 2, or integers."""
    x = convert(a)
    matrix_spec("pinv", x.spec)
    rounding = float(10 * max(x.spec.shape[-2:]) * np.finfo(x.dtype.real_dtype.np_dtype).eps)
    if rcond is None:
        return pinv_(x, rcond=rounding)
    limit = as_float(rcond, "pinv: rcond")
    # The rule for constant rank is wrong only where values that are not 0 are cut off.
    # Looking at the values waits for a GPU, hence only for a tolerance above the rounding.
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
    # 1 / inf = 0, with a slope of 0: a quotient that is not taken would be 1 / 0.
    inverses = 1.0 / where(kept, s, np.inf)
    return matmul_(v * cast(expand_dims(inverses, -2), x.dtype), adjoint_of(u))


def lstsq(matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:
    """The x that makes ‖matrix x - rhs‖² + l2_regularizer ‖x‖² least, of least norm if many do.

    Args:
        fast: solve the normal equations by Cholesky's method, which needs full rank and squares
            the condition number; otherwise use singular values, without regularizer.

    Raises InvalidArgumentError: shapes or dtypes do not fit; or fast and not of full rank."""
    a, b = pair("lstsq", matrix, rhs)
    matrix_spec("lstsq", a.spec)
    if b.ndim < 2:
        raise InvalidArgumentError(f"lstsq: the right-hand side must be [..., m, columns]; got "
                                   f"{b.spec}")
    if not fast:
        return matmul_(pinv(a), b)
    ah = adjoint_of(a)
    rows, columns = a.spec.shape[-2:]
    # The smaller of the two Gram matrices, and the only one of full rank.
    if rows >= columns:
        return cholesky_solve(cholesky_(_regular(matmul_(ah, a), l2_regularizer)), matmul_(ah, b))
    factor = cholesky_(_regular(matmul_(a, ah), l2_regularizer))
    return matmul_(ah, cholesky_solve(factor, b))


def _regular(gram: Tensor, weight: float) -> Tensor:
    return set_diag_(gram, diag_part_(gram) + weight) if weight else gram


_SOLVE = "tridiagonal_solve"


def _beside(x: Tensor, like: Tensor, step: int, last_axis: int = 1) -> Tensor:
    """x with a 0 behind it along the axis `last_axis` from the end; in front, where step is -1."""
    axis = x.ndim - last_axis
    # Of `like`, since nothing may be left of x.
    blank = zeros_like(like[(*(slice(None),) * axis, slice(0, 1))])
    return concat_(*((x, blank) if step > 0 else (blank, x)), axis=axis)


def _shifted(x: Tensor, step: int, last_axis: int = 1) -> Tensor:
    """y[i] = x[i + step] along the axis `last_axis` from the end, 0 outside; step is 1 or -1."""
    part = slice(1, None) if step > 0 else slice(0, -1)
    return _beside(x[(*(slice(None),) * (x.ndim - last_axis), part)], x, step, last_axis)


def _diagonals(name: str, diagonals: Any, form: str) -> list[Tensor]:
    """The upper, main and lower diagonal, each [..., n]; unused places are 0."""
    if form == "compact":
        x = convert(diagonals)
        if x.ndim < 2 or x.spec.shape[-2] != 3:
            raise InvalidArgumentError(f"{name}: compact diagonals must be [..., 3, n]; got "
                                       f"{x.spec}")
        upper, main, lower = (x[..., i, :] for i in range(3))
    elif form == "sequence":
        upper, main, lower = as_tensors(list(diagonals), name)
        n = main.spec.shape[-1]
        upper = _beside(upper, main, 1) if upper.spec.shape[-1] == n - 1 else upper
        lower = _beside(lower, main, -1) if lower.spec.shape[-1] == n - 1 else lower
    elif form == "matrix":
        x = convert(diagonals)
        matrix_spec(name, x.spec, square=True)
        upper, lower = _off_diagonal(x, 1), _off_diagonal(x, -1)
        main = diag_part_(x)
    else:
        raise ValueError(f"{name}: diagonals_format must be 'compact', 'sequence' or 'matrix'; "
                         f"got {shown(form)}")
    return [upper, main, lower]


def _off_diagonal(x: Tensor, k: int) -> Tensor:
    n = x.spec.shape[-1]
    if n == 1:
        return zeros_like(diag_part_(x))
    y = diag_part_(x, k=(k, k))
    return _beside(y, y, k)


@primitive(tf_name="TridiagonalSolve")
def tridiagonal_solve_(xp: ArrayModule, diagonals: Array, b: Array, *, pivoting: bool = True,
                       ) -> Array:
    """x with T x = b, T given by its upper, main and lower diagonal [..., 3, n]."""
    failure = f"{_SOLVE}: the matrix is not invertible"
    if not pivoting:
        failure += ", or it needs partial_pivoting=True"
    return computed(xp, failure, lambda d, r: solve_tridiagonal(
        xp, d[..., 0, :], d[..., 1, :], d[..., 2, :], r, pivoting), diagonals, b, rule=None)


@tridiagonal_solve_.infer
def _(diagonals: Spec, b: Spec, *, pivoting: bool) -> Spec:
    one_dtype(_SOLVE, (diagonals, b))
    matrix_spec(_SOLVE, diagonals)
    if b.ndim < 2 or b.shape[:-1] != (*diagonals.shape[:-2], diagonals.shape[-1]):
        raise InvalidArgumentError(f"{_SOLVE}: for diagonals {diagonals} the right-hand side must "
                                   f"be {[*diagonals.shape[:-2], diagonals.shape[-1], 'columns']};"
                                   f" got {b}")
    return b


@tridiagonal_solve_.vjp("diagonals", "b")
def _(g: Tensor, diagonals: Tensor, y: Tensor, *, pivoting: bool) -> tuple[Tensor, ...]:
    upper, main, lower = (diagonals[..., i, :] for i in range(3))
    axis = diagonals.ndim - 2
    turned = stack_(_shifted(lower, 1), main, _shifted(upper, -1), axis=axis)
    # The transposed matrix: what was above the diagonal is below, one place further.
    part = tridiagonal_solve_(turned, g, pivoting=pivoting)
    beside = (_shifted(y, 1, 2), y, _shifted(y, -1, 2))
    rows = [-reduce_sum_(part * x, axis=(y.ndim - 1,)) for x in beside]
    return stack_(*rows, axis=axis), part


_BANDS = [[0.5, -0.4, 0.0], [0.2, 1.8, 2.2], [0.0, 0.9, 0.6]]
tridiagonal_solve_.cases = [case(_BANDS, (3, 2)), case([_BANDS, _BANDS], (2, 3, 1), pivoting=False),
                            case((3, 4), (4, 1), dtypes=("complex128",))]


def tridiagonal_solve(diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact",
                      transpose_rhs: bool = False, conjugate_rhs: bool = False,
                      name: str | None = None, partial_pivoting: bool = True,
                      perturb_singular: bool = False) -> Tensor:
    """x with T x = rhs, T tridiagonal: linear time.

    Args:
        diagonals: 'compact' [..., 3, n], the upper, main and lower diagonal, the last of upper
            and the first of lower unused; 'sequence', the three one by one; 'matrix' [..., n, n].
        rhs: [..., n] or [..., n, columns].
        transpose_rhs, conjugate_rhs: use the transpose or conjugate of rhs [..., columns, n].
        partial_pivoting: exchange rows for accuracy.

    Raises:
        InvalidArgumentError: shapes or dtypes that do not fit, or a singular matrix; without
            pivoting, any with a pivot of 0.
        ValueError: perturb_singular is asked for, which only GPUs of TensorFlow have.
    """
    if perturb_singular:
        raise ValueError(f"{_SOLVE}: perturb_singular is not supported; add a small number to the "
                         f"main diagonal")
    upper, main, lower = _diagonals(_SOLVE, diagonals, diagonals_format)
    packed = stack_(upper, main, lower, axis=main.ndim - 1)
    packed, b = pair(_SOLVE, packed, rhs)
    b = conj(b) if conjugate_rhs else b
    pivoting = bool(partial_pivoting)
    if b.ndim == main.ndim:
        return squeeze(tridiagonal_solve_(packed, expand_dims(b, -1), pivoting=pivoting), -1)
    return tridiagonal_solve_(packed, swap_last(b) if transpose_rhs else b, pivoting=pivoting)


def tridiagonal_matmul(diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact",
                       name: str | None = None) -> Tensor:
    """T rhs, T tridiagonal, rhs [..., n, columns]; see `tridiagonal_solve` for the forms of T.
    Raises InvalidArgumentError: shapes or dtypes that do not fit."""
    name = "tridiagonal_matmul"
    upper, main, lower = _diagonals(name, diagonals, diagonals_format)
    main, x = pair(name, main, rhs)
    if x.ndim < 2 or x.spec.shape[-2] != main.spec.shape[-1]:
        raise InvalidArgumentError(f"{name}: rhs must be [..., {main.spec.shape[-1]}, columns]; "
                                   f"got {x.spec}")
    upper, main, lower = (expand_dims(d, -1) for d in (upper, main, lower))
    return main * x + upper * _shifted(x, 1, 2) + lower * _shifted(x, -1, 2)


def eigh_tridiagonal(alpha: TensorLike, beta: TensorLike, eigvals_only: bool = True,
                     select: str = "a", select_range: TensorLike | None = None, tol: object = None,
                     name: str | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, of the Hermitian matrices with diagonal `alpha` [..., n] and first
    diagonal above it `beta` [..., n - 1], by way of the full matrix.

    Args:
        eigvals_only: give the eigenvalues alone, not (e, v).
        select: 'a' all; 'i' those numbered select_range[0] … select_range[1]; 'v' those in
            [select_range[0], select_range[1]], for one matrix.

    Raises InvalidArgumentError: shapes that do not fit, or an empty range of values;
    ValueError: an unknown `select`, or no `select_range` for it."""
    a, b = as_tensors([alpha, beta], "eigh_tridiagonal")
    n = a.spec.shape[-1] if a.ndim else 0
    if not n or b.spec.shape != (*a.spec.shape[:-1], n - 1):
        raise InvalidArgumentError(f"eigh_tridiagonal: alpha must be [..., n] and beta "
                                   f"[..., n - 1]; got {a.spec} and {b.spec}")
    full = diag_(a, rows=n, columns=n)
    if n > 1:
        # Below, of which `eigh_` reads the conjugates.
        full = full + diag_(conj(b), k=(-1, -1), rows=n, columns=n)
    e, v = eigh_(full)
    chosen = _selected(e, select, select_range)
    return e[..., chosen] if eigvals_only else (e[..., chosen], v[..., chosen])


def _selected(e: Tensor, select: str, bounds: Any) -> slice:
    if select == "a":
        return slice(None)
    if select not in ("i", "v"):
        raise ValueError(f"eigh_tridiagonal: select must be 'a', 'i' or 'v'; got {shown(select)}")
    if bounds is None or len(bounds) != 2:
        raise ValueError(f"eigh_tridiagonal: select='{select}' needs select_range, two numbers")
    if select == "i":
        first, last = (as_int(n, "eigh_tridiagonal: select_range") for n in bounds)
        return slice(first, last + 1)
    values = host_value(e, "eigh_tridiagonal: the eigenvalues")
    if values.ndim != 1:
        raise ValueError("eigh_tridiagonal: select='v' needs one matrix, since each may have "
                         "another number of eigenvalues in the range")
    low, high = float(bounds[0]), float(bounds[1])
    if not low < high:
        raise InvalidArgumentError(f"eigh_tridiagonal: the first of select_range must be less than "
                                   f"the second; got {low} and {high}")
    return slice(int((values < low).sum()), int((values <= high).sum()))
