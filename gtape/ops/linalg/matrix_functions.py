"""The exponential, logarithm and square root of matrices.

The derivative of a matrix function f at a along e is the upper right block of f([[a, e], [0, a]])
(Mathias 1996, doi:10.1137/S0895479895283409), and its transpose is that of aᵀ. So each gradient is
f of a matrix twice the size, at every order.
"""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import matrix_functions as formulas
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.scalars import zero
from gtape.ops.linalg.matrices import WELL, computed, matrix_spec
from gtape.ops.shape.layout import swap_last
from gtape.ops.shape.packing import concat_


def _pulled(op: Any, a: Tensor, g: Tensor) -> Tensor:
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
expm_.vjp(a=lambda g, a: _pulled(expm_, a, g))
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


logm_.vjp(a=lambda g, a: _pulled(logm_, a, g))
logm_.cases = [case([[2 + 0.1j, 0.3], [0.5j, 1.7]], dtypes=("complex128",))]


@primitive(tf_name="MatrixSquareRoot")
def square_root_(xp: ArrayModule, a: Array) -> Array:
    """The y with y y = a and eigenvalues with positive real parts."""
    return computed(xp, "sqrtm: the matrix is singular", lambda m: formulas.square_root(xp, m), a)

square_root_.infer(lambda a: matrix_spec("sqrtm", a, square=True))
square_root_.vjp(a=lambda g, a: _pulled(square_root_, a, g))
square_root_.cases = [case(WELL), case([WELL, WELL]),
                      case([[2 + 0.1j, 0.3], [0.5j, 1.7]], dtypes=("complex128",))]


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix exponential of square matrices.

    Raises:
        InvalidArgumentError: not square, or integers.
    """
    return expm_(convert(input))


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal logarithm of square complex matrices.

    Raises:
        InvalidArgumentError: not square, real, or singular.
    """
    return logm_(convert(input))


def matrix_square_root(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal square root of square matrices; nan for real matrices that have no real one.

    Raises:
        InvalidArgumentError: not square, or singular.
    """
    return square_root_(convert(input))


sqrtm = matrix_square_root
