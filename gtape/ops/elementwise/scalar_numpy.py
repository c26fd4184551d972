"""Array spellings of scalar ops that NumPy has no function for: `f(xp, *arrays)`.

`with_out`, where a function has it, writes into a given array, so large formulas can be evaluated
block by block without allocating.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gtape.core.device import Array, ArrayModule


def _out(function: Callable[..., object]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def mark(spelling: Callable[..., object]) -> Callable[..., Any]:
        spelling.with_out = function  # type: ignore[attr-defined]
        return spelling

    return mark


def _sigmoid_out(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


@_out(_sigmoid_out)
def sigmoid(xp: Any, x: Any) -> Any:
    # exp overflows to inf for very negative x, and 1 / inf is the 0 that is wanted.
    return 1 / (1 + xp.exp(-x))


def one_minus_square(xp: ArrayModule, x: Any) -> Any:
    """1 - x would lose the sign of a zero imaginary part, which picks a root of the result."""
    if type(x) in (int, float) or x.dtype.kind != "c":
        return (1 - x) * (1 + x)  # 1 - x² would cancel near 1
    return -(x - 1) * (x - -1)


def log1p(xp: Any, x: Any) -> Any:
    """NumPy's, whose complex one is that of log and loses small numbers."""
    if type(x) in (int, float) or x.dtype.kind != "c":
        return xp.log1p(x)
    a, b = x.real, x.imag
    # |1 + z|² - 1 without the 1 for moderate z, where its squares cannot overflow.
    near = xp.maximum(xp.abs(a), xp.abs(b)) < 1e3
    p, q = xp.where(near, a, 0), xp.where(near, b, 0)
    rest = p * (2 + p) + q * q
    size = xp.where(near & (rest > -0.5), 0.5 * xp.log1p(rest), xp.log(xp.abs(x + 1)))
    return make_complex(xp, size, xp.arctan2(b, a + 1))


log1p.with_out = np.log1p  # type: ignore[attr-defined]


def softplus(xp: Any, x: object) -> Any:
    # Both parts are exact and neither overflows: log(1 + eˣ) would for large x.
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def log_sigmoid(xp: Any, x: object) -> Any:
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


def _rsqrt_out(x: Any, out: Any) -> None:
    np.sqrt(x, out=out)
    np.reciprocal(out, out=out)


@_out(_rsqrt_out)
def rsqrt(xp: Any, x: object) -> Any:
    return 1 / xp.sqrt(x)  # NumPy has no rsqrt


#: By dtype of floats: the integers of so many bytes, and a zero. A product of floats makes nan of a
#: shut gate where the other factor is infinite; a product of their bytes is as fast, and `where` is
#: eight times as slow. NumPy compares with a zero array in half the time it takes for a number.
_GATES = {np.dtype(f"f{n}"): (np.dtype(f"i{n}"), np.zeros((), f"f{n}")) for n in (2, 4, 8)}


def _relu_out(x: Any, out: Any) -> None:
    np.maximum(x, _GATES[out.dtype][1], out=out)


@_out(_relu_out)
def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, _GATES[x.dtype][1] if xp is np and x.dtype in _GATES else 0)


def _relu_gate_out(g: Any, y: Any, out: Any) -> None:
    whole, zero = _GATES[out.dtype]
    np.multiply(g.view(whole), np.greater(y, zero), out=out.view(whole))


@_out(_relu_gate_out)
def relu_gate(xp: Any, g: Any, y: Any) -> Any:
    if xp is np and g.dtype in _GATES:
        whole, zero = _GATES[g.dtype]
        return np.multiply(g.view(whole), np.greater(y, zero)).view(g.dtype)
    return xp.where(y > 0, g, xp.zeros_like(y))


def relu6(xp: Any, x: object) -> Any:
    return xp.minimum(xp.maximum(x, 0), 6)


def relu6_gate(xp: Any, g: object, y: Any) -> Any:
    return xp.where((y > 0) & (y < 6), g, xp.zeros_like(y))


def leaky_relu(xp: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x > 0, x, x * alpha)


def leaky_gate(xp: Any, g: Any, x: Any, alpha: Any) -> Any:
    return xp.where(x > 0, g, g * alpha)


def elu(xp: Any, x: Any) -> Any:
    # `where` computes both sides: expm1 of large x would overflow.
    return xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0)))


def _where_out(c: object, a: Any, b: Any, out: Any) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=c)


@_out(_where_out)
def where(xp: Any, c: object, a: object, b: object) -> Any:
    return xp.where(c, a, b)


def _zero_out(x: object, out: Any) -> None:
    out.fill(0)


@_out(_zero_out)
def zero(xp: Any, x: object) -> Any:
    return xp.zeros_like(x)


def over(xp: Any, a: Any, b: Any) -> Any:
    y = a / b
    return xp.where(a == 0, xp.zeros_like(y), y)


def raised(a: Any, b: Any) -> Any:
    """aᵇ as C has it. NumPy takes √a where one exponent 0.5 serves all of a: at -0 and -inf that is
    another number."""
    if type(b) is int:
        return a ** b
    y = a ** b
    if type(b) in (float, complex):
        return _root_mended(a, y) if b == 0.5 else y
    if (b.shape == y.shape and b.size > 1 and 0 not in b.strides) or not (b == 0.5).any():
        return y
    return np.where(b == 0.5, _root_mended(a, y), y)


def _root_mended(a: Any, powers: Any) -> Any:
    if getattr(powers, "dtype", None) not in _GATES or (type(a) is np.ndarray and a.size
                                                      and a.min() > 0):
        return powers
    return np.where((a == 0) | (a == -np.inf), abs(a), powers)


def power(xp: ArrayModule, a: object, b: object) -> Any:
    return raised(a, b)


def pow_slope(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(b, (int, float, complex)):
        return xp.zeros_like(a) if b == 0 else 2 * a if b == 2 else b * raised(a, b - 1)
    y = b * xp.power(a, b - 1)
    return xp.where(b == 0, xp.zeros_like(y), y)


def log_positive(xp: Any, a: Any) -> Any:
    if type(a) in (int, float):
        return float(np.log(a)) if a > 0 else 0.0
    positive = a > 0 if a.dtype.kind != "c" else a != 0
    return xp.where(positive, xp.log(xp.where(positive, a, xp.ones_like(a))), xp.zeros_like(a))


def divide_no_nan(xp: Any, a: Any, b: Any) -> Any:
    y = a / b
    return xp.where(b == 0, xp.zeros_like(y), y)


def _multiply_no_nan_out(a: Any, b: Any, out: Any) -> None:
    whole, zero = _GATES[out.dtype]
    opened = np.not_equal(b, zero)
    np.multiply(a, b, out=out)
    np.multiply(out.view(whole), opened, out=out.view(whole))


@_out(_multiply_no_nan_out)
def multiply_no_nan(xp: Any, a: Any, b: Any) -> Any:
    y = a * b
    if type(y) in (int, float):  # of constants alone
        return y if b else 0.0
    if xp is np and y.dtype in _GATES:
        whole, zero = _GATES[y.dtype]
        return np.multiply(y.view(whole), np.not_equal(b, zero)).view(y.dtype)
    return xp.where(b == 0, xp.zeros_like(y), y)


def xlogy(xp: Any, a: object, b: object) -> Any:
    y = a * xp.log(b)
    return xp.where(a == 0, xp.zeros_like(y), y)


def xlog1py(xp: ArrayModule, a: Array, b: Array) -> Any:
    y = a * xp.log1p(b)
    return xp.where(a == 0, xp.zeros_like(y), y)


def xdivy(xp: Any, a: Any, b: Any) -> Any:
    y = a / b
    return xp.where(a == 0, xp.zeros_like(y), y)


def _no_zero(name: str, divisor: Any) -> None:
    number = np.isscalar(divisor)
    kind = np.asarray(divisor).dtype.kind if number else divisor.dtype.kind
    if kind in "iu" and bool(divisor == 0 if number else (divisor == 0).any()):
        raise InvalidArgumentError(f"{name}: integer division by zero; use floating tensors, "
                                   f"or tf.where to replace zeros")


def floordiv(xp: Any, a: Any, b: Any) -> Any:
    _no_zero("floordiv", b)
    kind = (a if hasattr(a, "dtype") else b).dtype.kind
    return xp.floor_divide(a, b) if kind in "iu" else xp.floor(a / b)


def floormod(xp: Any, a: object, b: object) -> Any:
    _no_zero("floormod", b)
    return xp.mod(a, b)


def truncatediv(xp: ArrayModule, a: Array, b: Array) -> Array:
    _no_zero("truncatediv", b)
    # In a program one of the two may be a number.
    if getattr(a, "dtype", None) is None:
        a = xp.asarray(a, b.dtype)
    if a.dtype.kind not in "iu":
        return xp.trunc(a / b)
    # fmod is exact for integers; a / b would pass through float64.
    return (a - xp.fmod(a, b)) // b


def truncatemod(xp: ArrayModule, a: Array, b: Array) -> Array:
    _no_zero("truncatemod", b)
    return xp.fmod(a, b)


def squared_difference(xp: ArrayModule, a: Any, b: Any) -> Any:
    difference = a - b
    return difference * difference


def clip(xp: Any, x: object, low: object, high: object) -> Any:
    return xp.maximum(xp.minimum(x, high), low)


def make_complex(xp: ArrayModule, a: Array, b: Array) -> Array:
    narrow = (a if hasattr(a, "dtype") else b).dtype == np.float32
    wide = np.complex64 if narrow else np.complex128
    return (a + xp.asarray(1j, dtype=wide) * b).astype(wide)


def unit(xp: Any, z: Any) -> Any:
    size = xp.abs(z)
    return xp.where(size == 0, z * 0, z / xp.where(size == 0, xp.ones_like(size), size))
