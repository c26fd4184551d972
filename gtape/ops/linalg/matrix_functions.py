"""Functions of matrices: determinant, trace and rank, exponential, logarithm and square root.

The derivative of a matrix function f at a along e is the upper right block of f([[a, e], [0, a]])
(Mathias 1996, doi:10.1137/S0895479895283409), and its transpose is that of aᵀ. So the gradients of
exponential, logarithm and root are f of a matrix twice the size, at every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import matrix_functions as formulas
from gtape.numerics import systems
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.operators import real
from gtape.ops.elementwise.scalars import conj, greater, imag_part, log, make_complex, zero
from gtape.ops.linalg.diagonals import diag_part_
from gtape.ops.linalg.eigen import singular_values
from gtape.ops.linalg.products import matmul_
from gtape.ops.linalg.solving import WELL, adjoint_of, cholesky_, computed, inv_, matrix_spec
from gtape.ops.reductions.reductions import reduce_max_, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_, swap_last
from gtape.ops.shape.packing import concat_

_COMPLEX = ("complex128",)
_SINGULAR = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 1.0]]


def _per_matrix(x: Tensor) -> Tensor:
    """A number for each matrix as [..., 1, 1]."""
    return reshape_(x, shape=(*x.spec.shape, 1, 1))


@primitive(tf_name="MatrixDeterminant")
def det_(xp: ArrayModule, a: Array) -> Array:
    """y = det a."""
    return computed(xp, "det", xp.linalg.det, a, rule=systems.NonfiniteRule(
        instead=lambda m: systems.determinant(xp, m)))


det_.infer(lambda a: matrix_spec("det", a, square=True).reshaped(a.shape[:-2]))
# Cofactors, not det(a) a⁻ᵀ, which singular matrices do not have.
det_.vjp(a=lambda g, a: _per_matrix(g) * cofactors_(a))
det_.cases = [case(WELL), case([WELL, _SINGULAR]), case((1, 1)), case((2, 2)),
              case((3, 3), dtypes=_COMPLEX), case(np.zeros((2, 2)))]


@primitive(tf_name="MatrixDeterminantGrad")
def cofactors_(xp: ArrayModule, a: Array) -> Array:
    """y[i, j] = ∂det(a)/∂a[i, j]: right for singular matrices too."""
    return computed(xp, "det", lambda m: systems.cofactors(xp, m), a)


cofactors_.infer(lambda a: a)
cofactors_.vjp(a=lambda g, a: cofactor_change_(a, g))
cofactors_.cases = [case(WELL), case(_SINGULAR, orders=1), case((1, 1)), case((2, 2)),
                    case((3, 3), dtypes=_COMPLEX)]


@primitive(linear="h", tf_name="MatrixDeterminantGrad")
def cofactor_change_(xp: ArrayModule, a: Array, h: Array) -> Array:
    """The derivative of cofactors(a) along h."""
    return computed(xp, "det", lambda m, d: systems.cofactor_change(xp, m, d), a, h)


cofactor_change_.infer(lambda a, h: a)
cofactor_change_.vjp(h=lambda g, a: cofactor_change_(a, g))


@cofactor_change_.vjp("a")
def _(g: Tensor, a: Tensor, h: Tensor) -> Tensor:
    # The third derivative of det, for invertible matrices: that of
    # det(a) (tr(b h) tr(b g) - tr(b h b g)) with b = a⁻¹.
    b = inv_(a)
    left, right = matmul_(b, h), matmul_(b, g)
    whole = _trace(left) * _trace(right) - _trace(matmul_(left, right))
    c = cofactors_(a)
    part = _per_matrix(whole) * c
    for first, second in ((left, right), (right, left)):
        single = matmul_(c, second, transpose_b=True)
        part = part - _per_matrix(_trace(first)) * single
        part = part + matmul_(single, first, transpose_b=True)
    return part


def _trace(x: Tensor) -> Tensor:
    y = diag_part_(x)
    return reduce_sum_(y, axis=(y.ndim - 1,))


cofactor_change_.cases = [case(WELL, (3, 3)), case((3, 3), (3, 3), dtypes=_COMPLEX)]


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinants of square matrices. The gradient is the cofactor matrix, for singular
    matrices too.
    Raises InvalidArgumentError: not square."""
    return det_(convert(input))


class LogMatrixDeterminant(NamedTuple):
    """sign · exp(log_abs_determinant) is the determinant."""

    sign: Tensor
    log_abs_determinant: Tensor


@primitive(outputs="sign logabs", tf_name="LogMatrixDeterminant", holomorphic=False)
def slogdet_(xp: ArrayModule, a: Array) -> tuple[Array, ...]:
    """det a = sign · exp(logabs)."""
    sign, logabs = computed(xp, "slogdet", lambda m: tuple(xp.linalg.slogdet(m)), a,
                            rule=systems.NonfiniteRule(instead=lambda m: _parts(xp, m)))
    return sign, xp.asarray(logabs).astype(a.dtype)


def _parts(xp: ArrayModule, a: Array) -> tuple[Array, ...]:
    """The sign and logarithm of determinants of matrices with nan or inf."""
    y = systems.determinant(xp, a)
    # NumPy's slogdet gives 0 for nan: a pivot search passes it by.
    size = xp.abs(y)
    sign = y / size if a.dtype.kind == "c" else xp.where(xp.isnan(y), y, xp.sign(y))
    return sign, xp.log(size)


@slogdet_.infer
def _(a: Spec) -> tuple[Spec, Spec]:
    matrix_spec("slogdet", a, square=True)
    y = a.reshaped(a.shape[:-2])
    return y, y


@slogdet_.vjp("a")
def _(gs: Sequence[Tensor | None], a: Tensor, sign: Tensor) -> Tensor:
    # d log det a = tr(a⁻¹ da): its real part moves logabs, its imaginary part turns sign.
    g = None if gs[1] is None else cast(real(gs[1]), a.dtype)
    if gs[0] is not None and a.dtype.is_complex:
        part = imag_part(conj(sign) * gs[0])
        turned = make_complex(0.0 * part, part)
        g = turned if g is None else g + turned
    # The sign of a real determinant jumps: zeros, and connected.
    return zero(a) if g is None else _per_matrix(g) * adjoint_of(inv_(a))


slogdet_.cases = [case(WELL), case((2, 3, 3)), case((3, 3), dtypes=_COMPLEX)]


def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    """(sign, log|det|) of square matrices: det without overflow.
    Raises InvalidArgumentError: not square; or, for the gradient, singular."""
    return LogMatrixDeterminant(*slogdet_(convert(input)))


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """log det of Hermitian positive definite matrices, by Cholesky's method.
    Raises InvalidArgumentError: not square, or not positive definite."""
    # That of L is real and positive; its imaginary parts are zeros.
    diagonal = real(diag_part_(cholesky_(convert(matrix))))
    return 2.0 * reduce_sum_(log(diagonal), axis=(diagonal.ndim - 1,))


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Σᵢ x[…, i, i]. Raises InvalidArgumentError: a rank below 2."""
    return _trace(convert(x))


def matrix_rank(a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False,
                name: str | None = None) -> Tensor:
    """The number of singular values above `tol`, as int32.

    Args:
        tol: a tolerance for each singular value: broadcast against [..., min(m, n)], so that one
            for each matrix is [..., 1]. Unless given it is max(m, n) times the largest singular
            value times the dtype's rounding unit.

    Raises InvalidArgumentError: a rank below 2, or integers."""
    x = convert(a)
    if x.ndim < 2:
        raise InvalidArgumentError(f"matrix_rank needs rank 2 or more; got {x.spec}")
    s = singular_values(x)
    last = (s.ndim - 1,)
    if tol is None:
        # As NumPy's matrix_rank and TensorFlow's.
        unit = float(np.finfo(s.dtype.np_dtype).eps) * max(x.spec.shape[-2:])
        limit = unit * reduce_max_(s, axis=last, keepdims=True)
    else:
        limit = convert_like(tol, s._t, "matrix_rank: tol")
    return reduce_sum_(cast(greater(s, limit), dtypes.int32), axis=last)


def _through_block(op: Any, a: Tensor, g: Tensor) -> Tensor:
    """The transpose of the derivative of `op` at a, applied to g."""
    n, axis = a.spec.shape[-1], a.ndim - 1
    turned = swap_last(a)
    upper = concat_(turned, g, axis=axis)
    lower = concat_(zero(turned), turned, axis=axis)
    return op(concat_(upper, lower, axis=axis - 1))[..., :n, n:]


@primitive(tf_name="MatrixExponential")
def expm_(xp: ArrayModule, a: Array) -> Array:
    """y = Σ aᵏ / k!."""
    return computed(xp, "expm", lambda m: formulas.exponential(xp, m), a)


expm_.infer(lambda a: matrix_spec("expm", a, square=True))
expm_.vjp(a=lambda g, a: _through_block(expm_, a, g))
expm_.cases = [case((2, 2)), case((2, 3, 3)), case((2, 2), dtypes=("complex128",))]


@primitive(tf_name="MatrixLogarithm")
def logm_(xp: ArrayModule, a: Array) -> Array:
    """The y with eʸ = a and eigenvalues whose imaginary parts lie in (-π, π)."""
    return computed(xp, "logm: the matrix is singular", lambda m: formulas.logarithm(xp, m), a)


@logm_.infer
def _(a: Spec) -> Spec:
    matrix_spec("logm", a, square=True)
    if not a.dtype.is_complex:
        raise InvalidArgumentError(f"logm takes complex matrices, since real ones may have complex "
                                   f"logarithms; got {a}. Write tf.cast(x, tf.complex64)")
    return a


logm_.vjp(a=lambda g, a: _through_block(logm_, a, g))
logm_.cases = [case([[2 + 0.1j, 0.3], [0.5j, 1.7]], dtypes=("complex128",))]


@primitive(tf_name="MatrixSquareRoot")
def square_root_(xp: ArrayModule, a: Array) -> Array:
    """The y with y y = a and eigenvalues with positive real parts."""
    return computed(xp, "sqrtm: the matrix is singular", lambda m: formulas.square_root(xp, m), a)


square_root_.infer(lambda a: matrix_spec("sqrtm", a, square=True))
square_root_.vjp(a=lambda g, a: _through_block(square_root_, a, g))
square_root_.cases = [case(WELL), case([WELL, WELL]),
                      case([[2 + 0.1j, 0.3], [0.5j, 1.7]], dtypes=("complex128",))]


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential of square matrices.
    Raises InvalidArgumentError: not square, or integers."""
    return expm_(convert(input))


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal logarithm of square complex matrices.
    Raises InvalidArgumentError: not square, real, or singular."""
    return logm_(convert(input))


def matrix_square_root(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal square root of square matrices; nan for real matrices that have no real one.
    Raises InvalidArgumentError: not square, or singular."""
    return square_root_(convert(input))


sqrtm = matrix_square_root
