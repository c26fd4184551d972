"""Determinants, trace and rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.convert import convert, convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import cofactors as formulas
from gtape.numerics import nonfinite
from gtape.opdef.primitive import primitive
from gtape.ops.linalg.diagonals import diag_part_
from gtape.ops.linalg.matrices import adjoint_of, as_dtype_of, check_matrix, computed
from gtape.ops.linalg.products import matmul_
from gtape.ops.reductions.reductions import reduce_max_, reduce_sum_
from gtape.ops.shape.layout import reshape_

_COMPLEX = ("complex128",)
_WELL = [[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]]
_SINGULAR = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 1.0]]


def _per_matrix(x: Tensor) -> Tensor:
    """A number for each matrix as [..., 1, 1]."""
    return reshape_(x, shape=(*x.spec.shape, 1, 1))


@primitive(tf_name="MatrixDeterminant")
def det_(xp: Any, a: Any) -> Any:
    """y = det a."""
    return computed(xp, "det", xp.linalg.det, a, rule=nonfinite.NonfiniteRule(
        instead=lambda m: formulas.determinant(xp, m)))


@det_.infer
def _(a: Spec) -> Spec:
    check_matrix("det", a, square=True)
    return a.reshaped(a.shape[:-2])


@det_.vjp("a")
def _(g: Any, a: Any) -> Any:
    return _per_matrix(g) * cofactors_(a)  # type: ignore[operator]


det_.cases = [case(_WELL), case([_WELL, _SINGULAR]), case((1, 1)), case((2, 2)),
              case((3, 3), dtypes=_COMPLEX), case(np.zeros((2, 2)))]


@primitive(tf_name="MatrixDeterminantGrad")
def cofactors_(xp: Any, a: Any) -> Any:
    """y[i, j] = ∂det(a)/∂a[i, j]: right for singular matrices too."""
    return computed(xp, "det", lambda m: formulas.cofactors(xp, m), a)


@cofactors_.infer
def _(a: Spec) -> Spec:
    return a


@cofactors_.vjp("a")
def _(g: Any, a: Any) -> Any:
    return cofactor_change_(a, g)


cofactors_.cases = [case(_WELL), case(_SINGULAR, orders=1), case((1, 1)), case((2, 2)),
                    case((3, 3), dtypes=_COMPLEX)]


@primitive(linear="h", tf_name="MatrixDeterminantGrad")
def cofactor_change_(xp: Any, a: Any, h: Any) -> Any:
    """The derivative of cofactors(a) along h."""
    return computed(xp, "det", lambda m, d: formulas.cofactor_change(xp, m, d), a, h)


@cofactor_change_.infer
def _(a: Spec, h: Spec) -> Spec:
    return a


@cofactor_change_.vjp("h")
def _(g: Any, a: Any) -> Any:
    return cofactor_change_(a, g)


@cofactor_change_.vjp("a")
def _(g: Any, a: Any, h: Any) -> Any:
    # The third derivative of det, for invertible matrices: that of
    # det(a) (tr(b h) tr(b g) - tr(b h b g)) with b = a⁻¹.
    from gtape.ops.linalg.solving import inv_

    b = inv_(a)
    left, right = matmul_(b, h), matmul_(b, g)
    whole = _trace(left) * _trace(right) - _trace(matmul_(left, right))  # type: ignore[operator]
    c = cofactors_(a)
    part = _per_matrix(whole) * c  # type: ignore[operator]
    for first, second in ((left, right), (right, left)):
        single = _pulled(c, second)
        part = part - _per_matrix(_trace(first)) * single  # type: ignore[operator]
        part = part + _pulled(single, first)
    return part


def _trace(x: Tensor) -> Tensor:
    made = diag_part_(x)
    return reduce_sum_(made, axis=(made.ndim - 1,))


def _pulled(c: Tensor, m: Tensor) -> Tensor:
    return matmul_(c, m, transpose_b=True)


cofactor_change_.cases = [case(_WELL, (3, 3)), case((3, 3), (3, 3), dtypes=_COMPLEX)]


def det(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices. The gradient is the cofactor matrix, for singular
    matrices too.

    Raises:
        InvalidArgumentError: not square.
    """
    return det_(convert(input))


class LogMatrixDeterminant(NamedTuple):
    """sign · exp(log_abs_determinant) is the determinant."""

    sign: Tensor
    log_abs_determinant: Tensor


@primitive(outputs="sign logabs", tf_name="LogMatrixDeterminant", holomorphic=False)
def slogdet_(xp: Any, a: Any) -> Any:
    """det a = sign · exp(logabs)."""
    sign, logabs = computed(xp, "slogdet", lambda m: tuple(xp.linalg.slogdet(m)), a,
                            rule=nonfinite.NonfiniteRule(instead=lambda m: _parts(xp, m)))
    return sign, xp.asarray(logabs).astype(a.dtype)


def _parts(xp: Any, a: Any) -> tuple[Any, Any]:
    """The sign and logarithm of determinants of matrices with nan or inf."""
    made = formulas.determinant(xp, a)
    size = xp.abs(made)
    sign = made / size if a.dtype.kind == "c" else xp.where(xp.isnan(made), made, xp.sign(made))
    return sign, xp.log(size)


@slogdet_.infer
def _(a: Spec) -> tuple[Spec, Spec]:
    check_matrix("slogdet", a, square=True)
    made = a.reshaped(a.shape[:-2])
    return made, made


@slogdet_.vjp("a")
def _(gs: Any, a: Any, sign: Any) -> Any:
    # d log det a = tr(a⁻¹ da): its real part moves logabs, its imaginary part turns sign.
    from gtape.ops.elementwise.scalars import zero
    from gtape.ops.linalg.solving import inv_

    g = gs[1]
    if g is not None and a.dtype.is_complex:
        from gtape.ops.elementwise.scalars import real_part

        g = as_dtype_of(real_part(g), a.dtype)
    if gs[0] is not None and a.dtype.is_complex:
        turned = _turning(gs[0], sign)
        g = turned if g is None else g + turned
    if g is None:
        return zero(a)
    return _per_matrix(g) * adjoint_of(inv_(a))


def _turning(g: Tensor, sign: Tensor) -> Tensor:
    """The part of g that turns the phase, as an imaginary number."""
    from gtape.ops.elementwise.scalars import conj, imag_part, make_complex

    part = imag_part(conj(sign) * g)  # type: ignore[operator]
    return make_complex(0.0 * part, part)  # type: ignore[operator]


slogdet_.cases = [case(_WELL), case((2, 3, 3)), case((3, 3), dtypes=_COMPLEX)]


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """(sign, log|det|) of square matrices: det without overflow.

    Raises:
        InvalidArgumentError: not square; or, for the gradient, singular.
    """
    return LogMatrixDeterminant(*slogdet_(convert(input)))


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """log det of Hermitian positive definite matrices, by Cholesky's method.

    Raises:
        InvalidArgumentError: not square, or not positive definite.
    """
    from gtape.ops.elementwise.scalars import log, real_part
    from gtape.ops.linalg.solving import cholesky_

    diagonal = diag_part_(cholesky_(convert(matrix)))
    if diagonal.dtype.is_complex:
        diagonal = real_part(diagonal)
    return 2.0 * reduce_sum_(log(diagonal), axis=(diagonal.ndim - 1,))  # type: ignore[operator]


def trace(x: Any, name: str | None = None) -> Tensor:
    """Σᵢ x[…, i, i].

    Raises:
        InvalidArgumentError: a rank below 2.
    """
    return _trace(convert(x))


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None,
                ) -> Tensor:
    """The number of singular values above `tol`, as int32.

    Args:
        tol: a tolerance for each singular value: broadcast against [..., min(m, n)], so that one
            for each matrix is [..., 1]. Unless given it is max(m, n) times the largest singular
            value times the dtype's rounding unit.

    Raises:
        InvalidArgumentError: a rank below 2, or integers.
    """
    from gtape.ops.elementwise.scalars import greater
    from gtape.ops.linalg.eigen import singular_values

    x = convert(a)
    if x.ndim < 2:
        raise InvalidArgumentError(f"matrix_rank needs rank 2 or more; got {x.spec}")
    s = singular_values(x)
    last = (s.ndim - 1,)
    if tol is None:
        unit = float(np.finfo(s.dtype.np_dtype).eps) * max(x.spec.shape[-2:])
        limit = unit * reduce_max_(s, axis=last, keepdims=True)  # type: ignore[operator]
    else:
        limit = convert_like(tol, s._t, "matrix_rank: tol")
    return reduce_sum_(as_dtype_of(greater(s, limit), dtypes.int32), axis=last)
