"""Python's operators on tensors and variables, as a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor, takes_composites
from gtape.core.convert import convert, convert_like
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import Variable
from gtape.opdef.eager_functions import operands
from gtape.opdef.scalar_graph import Expr
from gtape.ops.arguments import named
from gtape.ops.elementwise import scalars as s
from gtape.ops.linalg.products import matmul
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import zeros_like

_SLOTS: dict[str, Any] = {
    "__add__": s.add, "__sub__": s.subtract, "__mul__": s.multiply, "__pow__": s.power,
    "__floordiv__": s.floordiv, "__mod__": s.floormod, "__matmul__": matmul,
    "__lt__": s.less, "__le__": s.less_equal, "__gt__": s.greater, "__ge__": s.greater_equal,
    "__neg__": s.negative}


@takes_composites
def truediv(x: TensorLike, y: object, name: str | None = None) -> Tensor:
    """x / y; integers are divided as floating numbers (float64, 8 and 16 bits float32).

    Raises:
        TypeError: the dtypes differ.
    """
    return s.divide(*_quotient("truediv", x, y))


def _quotient(name: str, x: TensorLike, y: object) -> tuple[Tensor, ...]:
    """Dividend and divisor of one floating or complex dtype."""
    a, b = operands(name, (x, y))
    if a.dtype is not b.dtype:
        raise TypeError(f"{name}: x and y must have the same dtype; got {a.dtype.name} and "
                        f"{b.dtype.name}. Write tf.cast(y, tf.{a.dtype.name})")
    # TensorFlow's table for Python 3's division.
    if a.dtype.is_integer:
        wide = dtypes.float32 if a.dtype.size <= 2 else dtypes.float64
        a, b = cast(a, wide), cast(b, wide)
    return a, b


@takes_composites
def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0; integers are divided as by `truediv`.

    Raises:
        TypeError: the dtypes differ.
    """
    return s.divide_no_nan(*_quotient("divide_no_nan", x, y))


def _divide(x: TensorLike, y: object) -> Tensor:
    t = getattr(x, "_t", None) or getattr(y, "_t", None)
    # The common case, of one floating dtype, without a look at integers to be widened.
    known = t is not None and (t.fast or (t.device.maps is not None and t.dtype.is_floating))
    if known and _same_float(x, t) and _same_float(y, t):
        return s.divide(x, y)
    return truediv(x, y)


def _same_float(value: object, array_type: object) -> bool:
    return getattr(value, "_t", array_type) is array_type and (
        isinstance(value, (Tensor, Variable)) or type(value) in (float, int))


def _reflected(function: Callable[..., object]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _compare(self: TensorLike, other: TensorLike | None, function: Callable[..., object],
             unequal: bool) -> Any:
    """Elementwise; None and values of other shapes are simply not equal."""
    # Python code compares with None; TensorFlow says no without an error.
    if other is None:
        return unequal
    if isinstance(other, CompositeTensor):
        return NotImplemented  # Python asks the composite next
    a, b = operands("equal", (self, other))
    try:
        np.broadcast_shapes(a.spec.shape, b.spec.shape)
    except ValueError:
        return convert(unequal, dtypes.bool_, a._t.device)  # one bool, as TensorFlow says
    return function(a, b)


def _string_guard(function: Any) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: TensorLike | None) -> Any:
        # A comparison by NumPy would say False in silence.
        if isinstance(other, (str, bytes)) and self.dtype is not dtypes.string:
            raise TypeError(f"a {self.dtype.name} tensor cannot be compared with a string: "
                            f"{shown(other)}")
        return function(self, other)

    return compare


def _abs(self: TensorLike) -> Tensor:
    return absolute(self)


def absolute(x: TensorLike | CompositeTensor, name: str | None = None) -> Tensor:
    """|x|; for complex values the magnitude, real. The gradient at 0 is 0."""
    if type(x) is EagerTensor and x._t.fast:  # the hot path: no convert, no look at the dtype
        return s.real_abs(x)
    if isinstance(x, CompositeTensor):
        return s.real_abs(x)
    tensor = convert(x)
    return s.complex_abs(tensor) if tensor.dtype.is_complex else s.real_abs(tensor)


def signum(x: TensorLike | CompositeTensor, name: str | None = None) -> Tensor:
    """-1, 0 or 1, with the gradient 0; z / |z| for complex z, and 0 at 0."""
    operand: Any = x if isinstance(x, CompositeTensor) else convert(x)
    return s.unit(operand) if operand.dtype.is_complex else s.sign(operand)


def _invert(self: Any) -> Any:
    return s.logical_not(self) if self.dtype.is_bool else s.invert(self)


def _bits(logical: Any, integer: Any) -> Callable[[Any, Any], Any]:
    def operator(self: Tensor, other: Tensor) -> Tensor:
        like = self if isinstance(self, (Tensor, Variable)) else other
        return (logical if like.dtype.is_bool else integer)(self, other)

    return operator


def round_(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest integer, halves to even; integers are given back. Not differentiable."""
    operand: Any = x if isinstance(x, CompositeTensor) else convert(x)
    return s.rint(operand) if operand.dtype.is_floating else operand


def _round(self: Any, digits: int | None = None) -> Any:
    if digits is None:
        return round_(self)
    scale = float(10 ** digits)
    return s.rint(self * scale) / scale


def polyval(coeffs: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Σ coeffs[i] xⁿ⁻¹⁻ⁱ by Horner's rule: the highest power comes first. 0 for no coefficients.

    Raises:
        ValueError: `coeffs` is no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"polyval takes a list of coefficients, the highest power first; got "
                         f"{type(coeffs).__name__}. Write list(coeffs), or tf.unstack(coeffs)")
    at = convert(x)
    if not coeffs:
        return zeros_like(at)
    total = convert_like(coeffs[0], at._t, "polyval")
    for coefficient in coeffs[1:]:
        # Horner's rule: n products, and no powers that overflow.
        total = coefficient + total * at
    return total


def _number(name: str, value: Tensor) -> Tensor:
    x = convert(value)
    if not (x.dtype.is_differentiable or x.dtype.is_integer):
        raise TypeError(f"{name} takes numbers; got {x.spec}")
    return x


def _part(public: str, of_complex: Callable[[Tensor], Tensor],
          of_real: Callable[[Tensor], Tensor], doc: str) -> Callable[..., Tensor]:
    """A function of complex tensors that says something of real ones too."""
    def function(input: Tensor, name: str | None = None) -> Tensor:
        x = _number(public, input)
        return of_complex(x) if x.dtype.is_complex else of_real(x)

    return named(function, public, f"{doc}\n\n    Raises:\n        TypeError: no numbers.\n    ")


@partial(s.scalar_function, types="real_float", domain=(0.5, 2.0))
def real_angle(x: Any) -> Expr:
    """π where x < 0, else 0; its gradient is None."""
    return s.where(x < 0, math.pi, 0)


real = _part("real", s.real_part, lambda x: x,
             "The real part; a real tensor is given back as it is.")
imag = _part("imag", s.imag_part, zeros_like, "The imaginary part; zeros for a real tensor.")
angle = _part("angle", s.complex_angle, real_angle,
              "The argument of z in radians; for a real tensor π where it is negative and 0 "
              "elsewhere.")


def conj(x: Tensor, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is given back as it is.

    Raises:
        TypeError: no numbers.
    """
    tensor = _number("conj", x)
    return s.conj(tensor) if tensor.dtype.is_complex else tensor


def squared_length(x: Tensor) -> Tensor:
    """|x|², real."""
    if not x.dtype.is_complex:
        return s.square(x)
    # Without the root in |z|, which rounds and has no slope at 0.
    return s.add(s.square(s.real_part(x)), s.square(s.imag_part(x)))


def _divmod(self: object, other: TensorLike) -> tuple[Any, Any]:
    return s.floordiv(self, other), s.floormod(self, other)


def _install(cls: type) -> None:
    for slot, function in _SLOTS.items():
        setattr(cls, slot, function)
    for slot in ("add", "sub", "mul", "pow", "floordiv", "mod", "matmul"):
        setattr(cls, f"__r{slot}__", _reflected(_SLOTS[f"__{slot}__"]))
    for slot in ("lt", "le", "gt", "ge"):
        setattr(cls, f"__{slot}__", _string_guard(_SLOTS[f"__{slot}__"]))
    for slot, logical, integer in (("and", s.logical_and, s.bitwise_and),
                                   ("or", s.logical_or, s.bitwise_or),
                                   ("xor", s.logical_xor, s.bitwise_xor)):
        setattr(cls, f"__{slot}__", _bits(logical, integer))
        setattr(cls, f"__r{slot}__", _reflected(_bits(logical, integer)))
    for slot, shift in (("lshift", s.left_shift), ("rshift", s.right_shift)):
        setattr(cls, f"__{slot}__", shift)
        setattr(cls, f"__r{slot}__", _reflected(shift))
    members: dict[str, Any] = {
        "__truediv__": _divide, "__rtruediv__": _reflected(_divide), "__abs__": _abs,
        "__invert__": _invert, "__round__": _round, "__divmod__": _divmod,
        "__pos__": lambda self: self + 0,  # a new tensor, and of a Variable its value
        "__eq__": _string_guard(lambda a, b: _compare(a, b, s.equal, False)),
        "__ne__": _string_guard(lambda a, b: _compare(a, b, s.not_equal, True))}
    for name, member in members.items():
        setattr(cls, name, member)


for _class in (Tensor, Variable):
    # Python takes the hash away from a class that is given __eq__.
    _hash = _class.__hash__
    _install(_class)
    _class.__hash__ = _hash  # type: ignore[method-assign]
