"""Array spellings of letters that NumPy has no function for: `f(xp, *arrays)`.

`with_out`, where a function has it, writes into a given array, so large formulas can be evaluated
block by block without allocating.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError


def _out(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def mark(spelling: Callable[..., Any]) -> Callable[..., Any]:
        spelling.with_out = function  # type: ignore[attr-defined]
        return spelling

    return mark


def _sigmoid_out(x: Any, out: Any) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


@_out(_sigmoid_out)
def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def softplus(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def log_sigmoid(xp: Any, x: Any) -> Any:
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


def _rsqrt_out(x: Any, out: Any) -> None:
    np.sqrt(x, out=out)
    np.reciprocal(out, out=out)


@_out(_rsqrt_out)
def rsqrt(xp: Any, x: Any) -> Any:
    return 1 / xp.sqrt(x)


def _relu_out(x: Any, out: Any) -> None:
    np.maximum(x, 0, out=out)


@_out(_relu_out)
def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def _relu_gate_out(g: Any, y: Any, out: Any) -> None:
    np.multiply(g, y > 0, out=out)


@_out(_relu_gate_out)
def relu_gate(xp: Any, g: Any, y: Any) -> Any:
    return g * (y > 0)


def relu6(xp: Any, x: Any) -> Any:
    return xp.minimum(xp.maximum(x, 0), 6)


def relu6_gate(xp: Any, g: Any, y: Any) -> Any:
    return g * ((y > 0) & (y < 6))


def leaky_relu(xp: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x > 0, x, x * alpha)


def leaky_gate(xp: Any, g: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x > 0, g, g * alpha)


def elu(xp: Any, x: Any) -> Any:
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0)))


def _where_out(c: Any, a: Any, b: Any, out: Any) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=c)


@_out(_where_out)
def where(xp: Any, c: Any, a: Any, b: Any) -> Any:
    return xp.where(c, a, b)


def _zero_out(x: Any, out: Any) -> None:
    out.fill(0)


@_out(_zero_out)
def zero(xp: Any, x: Any) -> Any:
    return xp.zeros_like(x)


def over(xp: Any, a: Any, b: Any) -> Any:
    return xp.where(a == 0, a * 0, a / b)


def pow_slope(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(b, (int, float)):
        return a * 0 if b == 0 else b * a ** (b - 1)
    return xp.where(b == 0, b * 0, b * xp.power(a, b - 1))


def log_positive(xp: Any, a: Any) -> Any:
    if type(a) in (int, float):
        return float(np.log(a)) if a > 0 else 0.0
    positive = a > 0 if a.dtype.kind != "c" else a != 0
    return xp.where(positive, xp.log(xp.where(positive, a, xp.ones_like(a))), xp.zeros_like(a))


def divide_no_nan(xp: Any, a: Any, b: Any) -> Any:
    return xp.where(b == 0, a * 0 if not hasattr(a, "dtype") else xp.zeros_like(a), a / b)


def multiply_no_nan(xp: Any, a: Any, b: Any) -> Any:
    made = a * b
    return xp.where(b == 0, xp.zeros_like(made), made)


def xlogy(xp: Any, a: Any, b: Any) -> Any:
    made = a * xp.log(b)
    return xp.where(a == 0, xp.zeros_like(made), made)


def xlog1py(xp: Any, a: Any, b: Any) -> Any:
    made = a * xp.log1p(b)
    return xp.where(a == 0, xp.zeros_like(made), made)


def xdivy(xp: Any, a: Any, b: Any) -> Any:
    made = a / b
    return xp.where(a == 0, xp.zeros_like(made), made)


def _no_zero(name: str, divisor: Any) -> None:
    number = np.isscalar(divisor)
    kind = np.asarray(divisor).dtype.kind if number else divisor.dtype.kind
    if kind in "iu" and bool(divisor == 0 if number else (divisor == 0).any()):
        raise InvalidArgumentError(f"{name}: integer division by zero; use floating tensors, "
                                   f"or tf.where to replace zeros")


def floordiv(xp: Any, a: Any, b: Any) -> Any:
    _no_zero("floordiv", b)
    return xp.floor_divide(a, b)


def floormod(xp: Any, a: Any, b: Any) -> Any:
    _no_zero("floormod", b)
    return xp.mod(a, b)


def truncatediv(xp: Any, a: Any, b: Any) -> Any:
    _no_zero("truncatediv", b)
    if a.dtype.kind == "f":
        return xp.trunc(a / b)
    return (a - xp.fmod(a, b)) // b


def truncatemod(xp: Any, a: Any, b: Any) -> Any:
    _no_zero("truncatemod", b)
    return xp.fmod(a, b)


def squared_difference(xp: Any, a: Any, b: Any) -> Any:
    difference = a - b
    return difference * difference


def clip(xp: Any, x: Any, low: Any, high: Any) -> Any:
    return xp.maximum(xp.minimum(x, high), low)


def make_complex(xp: Any, a: Any, b: Any) -> Any:
    narrow = (a if hasattr(a, "dtype") else b).dtype == np.float32
    wide = np.complex64 if narrow else np.complex128
    return (a + xp.asarray(1j, dtype=wide) * b).astype(wide)


def unit(xp: Any, z: Any) -> Any:
    size = xp.abs(z)
    return xp.where(size == 0, z * 0, z / xp.where(size == 0, xp.ones_like(size), size))


def special(name: str) -> Callable[..., Any]:
    """A function of `gtape.numerics.special`, imported when it is first called."""
    def spelling(xp: Any, *arrays: Any) -> Any:
        from gtape.numerics import special as functions

        return getattr(functions, name)(xp, *arrays)

    return spelling
