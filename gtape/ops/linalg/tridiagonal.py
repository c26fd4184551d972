"""Tridiagonal matrices: products, systems, and eigenvalues."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics.systems import solve_tridiagonal
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_tensors, host_value, one_dtype
from gtape.ops.elementwise.operators import conj
from gtape.ops.linalg.diagonals import diag_, diag_part_
from gtape.ops.linalg.eigen import eigh_
from gtape.ops.linalg.matrices import computed, matrix_spec
from gtape.ops.linalg.products import pair
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.creation import zeros_like
from gtape.ops.shape.layout import expand_dims, squeeze, swap_last
from gtape.ops.shape.packing import concat_, stack_

_SOLVE = "tridiagonal_solve"


def _zeros_beside(x: Tensor, last_axis: int) -> Tensor:
    key = (slice(None),) * (x.ndim - last_axis) + (slice(0, 1),)
    return zeros_like(x[key])


def _shifted(x: Tensor, step: int, last_axis: int = 1) -> Tensor:
    """y[i] = x[i + step] along the axis `last_axis` from the end, 0 outside; step is 1 or -1."""
    axis = x.ndim - last_axis
    head = (slice(None),) * axis
    blank = _zeros_beside(x, last_axis)
    if step > 0:
        return concat_(x[(*head, slice(1, None))], blank, axis=axis)
    return concat_(blank, x[(*head, slice(0, -1))], axis=axis)


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
        if upper.spec.shape[-1] == n - 1:
            upper = concat_(upper, _zeros_beside(main, 1), axis=main.ndim - 1)
        if lower.spec.shape[-1] == n - 1:
            lower = concat_(_zeros_beside(main, 1), lower, axis=main.ndim - 1)
    elif form == "matrix":
        x = convert(diagonals)
        matrix_spec(name, x.spec, square=True)
        upper, lower = (_off_diagonal(x, k) for k in (1, -1))
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
    parts = (y, _zeros_beside(y, 1)) if k > 0 else (_zeros_beside(y, 1), y)
    return concat_(*parts, axis=y.ndim - 1)


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

    Raises:
        InvalidArgumentError: shapes or dtypes that do not fit.
    """
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

    Raises:
        InvalidArgumentError: shapes that do not fit, or an empty range of values.
        ValueError: an unknown `select`, or no `select_range` for it.
    """
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
