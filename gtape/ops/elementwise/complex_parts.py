"""Real and imaginary parts, conjugates, angles and squared lengths, of real tensors too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gtape.core.convert import convert
from gtape.core.tensor import Tensor
from gtape.opdef.eager_functions import unspecialised
from gtape.opdef.scalar_ops import ScalarFunction
from gtape.ops.elementwise import scalars as s
from gtape.ops.shape.creation import zeros_like

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr


def _number(name: str, value: Tensor) -> Tensor:
    x = convert(value)
    if not (x.dtype.is_differentiable or x.dtype.is_integer):
        raise TypeError(f"{name} takes numbers; got {x.spec}")
    return x


def real(input: Tensor, name: str | None = None) -> Tensor:
    """The real part; a real tensor is given back as it is.

    Raises:
        TypeError: no numbers.
    """
    x = _number("real", input)
    return s.real_part(x) if x.dtype.is_complex else x


def imag(input: Tensor, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for a real tensor.

    Raises:
        TypeError: no numbers.
    """
    x = _number("imag", input)
    if x.dtype.is_complex:
        return s.imag_part(x)
    return zeros_like(x)


def conj(x: Tensor, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is given back as it is.

    Raises:
        TypeError: no numbers.
    """
    tensor = _number("conj", x)
    return s.conj(tensor) if tensor.dtype.is_complex else tensor


def _real_angle(x: Any) -> Expr:
    """π where x < 0, else 0; its gradient is None."""
    return s.where(x < 0, math.pi, 0)


_real_angle_op = ScalarFunction(_real_angle, types="real_float", name="real_angle",
                                domain=(0.5, 2.0))
_real_angle_op.declare()
real_angle = unspecialised(_real_angle_op, ("x",))


def angle(input: Tensor, name: str | None = None) -> Tensor:
    """The argument of z in radians; for a real tensor π where it is negative and 0 elsewhere.

    Raises:
        TypeError: no numbers.
    """
    x = _number("angle", input)
    return s.complex_angle(x) if x.dtype.is_complex else real_angle(x)


def squared_length(x: Tensor) -> Tensor:
    """|x|², real."""
    if not x.dtype.is_complex:
        return s.square(x)
    return s.add(s.square(s.real_part(x)), s.square(s.imag_part(x)))
