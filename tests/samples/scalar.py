"""Samples of the elementwise functions: domains, broadcasts, sizes, and the ends of the range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import (
    COMPLEX,
    FLOATS,
    WIDE,
    Sample,
    numpy_dtype,
    of,
    sample,
)

sp = pytest.importorskip("scipy.special")
_SHAPES = ((), (1,), (0,), (7,), (2, 0, 3), (3, 5))
_PAIRS = (((), ()), ((3, 5), (3, 5)), ((3, 1), (5,)), ((2, 1, 3), (1, 4, 1)), ((0, 3), (1, 3)),
          ((), (7,)))


def _sigmoid(x: Any) -> Any:
    return sp.expit(x)


def _selu(x: Any) -> Any:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _gelu(x: Any) -> Any:
    return 0.5 * x * sp.erfc(-x / np.sqrt(2.0))


#: name: reference, low, high, whether it takes complex numbers.
_UNARY: dict[str, tuple[Callable[..., Any], float, float, bool]] = {
    "abs": (np.abs, -2, 2, True), "negative": (np.negative, -2, 2, True),
    "sign": (np.sign, 0.2, 2, False), "square": (np.square, -2, 2, True),
    "sqrt": (np.sqrt, 0.2, 4, True), "exp": (np.exp, -3, 3, True),
    "sin": (np.sin, -4, 4, True), "cos": (np.cos, -4, 4, True), "tan": (np.tan, -1.2, 1.2, True),
    "sinh": (np.sinh, -3, 3, True), "cosh": (np.cosh, -3, 3, True), "tanh": (np.tanh, -3, 3, True),
    "asin": (np.arcsin, -0.9, 0.9, True), "acos": (np.arccos, -0.9, 0.9, True),
    "atan": (np.arctan, -3, 3, True), "asinh": (np.arcsinh, -3, 3, True),
    "acosh": (np.arccosh, 1.2, 4, True), "atanh": (np.arctanh, -0.9, 0.9, True),
    "math.log": (np.log, 0.2, 4, True), "math.log1p": (np.log1p, -0.5, 3, True),
    "math.expm1": (np.expm1, -2, 2, True), "math.rsqrt": (lambda x: 1 / np.sqrt(x), 0.2, 4, True),
    "math.reciprocal": (lambda x: 1 / x, 0.3, 3, True),
    "math.reciprocal_no_nan": (lambda x: np.where(x == 0, 0, 1 / x), 0.3, 3, True),
    "sigmoid": (_sigmoid, -4, 4, False),
    "math.log_sigmoid": (lambda x: -np.logaddexp(0, -x), -4, 4, False),
    "math.softplus": (lambda x: np.logaddexp(0, x), -4, 4, False),
    "math.softsign": (lambda x: x / (1 + np.abs(x)), -3, 3, False),
    "math.erf": (sp.erf, -2, 2, False), "math.erfc": (sp.erfc, -2, 3, False),
    "math.erfinv": (sp.erfinv, -0.9, 0.9, False),
    "math.erfcinv": (sp.erfcinv, 0.2, 1.8, False), "math.ndtri": (sp.ndtri, 0.1, 0.9, False),
    "math.lgamma": (sp.gammaln, 2.5, 6, False), "math.digamma": (sp.digamma, 2, 6, False),
    "math.bessel_i0": (sp.i0, -3, 3, False), "math.bessel_i0e": (sp.i0e, -3, 3, False),
    "math.bessel_i1": (sp.i1, -3, 3, False), "math.bessel_i1e": (sp.i1e, -3, 3, False),
    "nn.relu": (lambda x: np.maximum(x, 0), 0.2, 2, False),
    "nn.relu6": (lambda x: np.clip(x, 0, 6), 0.2, 5, False),
    "nn.elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -3, -0.1, False),
    "nn.selu": (_selu, -3, -0.1, False),
    "nn.leaky_relu": (lambda x: np.where(x > 0, x, 0.2 * x), -3, -0.1, False),
    "nn.gelu": (_gelu, -4, 4, False), "nn.silu": (lambda x: x * _sigmoid(x), -4, 4, False)}
_COMPLEX_PARTS = {"math.real": np.real, "math.imag": np.imag, "math.conj": np.conj,
                  "math.angle": np.angle}

_BINARY: dict[str, tuple[Callable[..., Any], float, float, bool]] = {
    "add": (np.add, -2, 2, True), "subtract": (np.subtract, -2, 2, True),
    "multiply": (np.multiply, -2, 2, True), "divide": (np.divide, 0.4, 2, True),
    "maximum": (np.maximum, -2, 2, False), "minimum": (np.minimum, -2, 2, False),
    "atan2": (np.arctan2, 0.3, 2, False), "pow": (np.power, 0.4, 2, True),
    "math.squared_difference": (lambda a, b: (a - b) * np.conj(a - b), -2, 2, True),
    "math.floormod": (np.mod, 0.4, 2, False),
    "math.divide_no_nan": (np.divide, 0.4, 2, True),
    "math.multiply_no_nan": (np.multiply, 0.4, 2, True),
    "math.xlogy": (sp.xlogy, 0.4, 2, True), "math.xlog1py": (sp.xlog1py, 0.4, 2, True),
    "math.xdivy": (np.divide, 0.4, 2, True)}

#: Where a function is, beside its domain: compared with the reference in every dtype.
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, -2.5, np.inf, -np.inf, np.nan)
_AT_THE_ENDS = ("abs", "negative", "sign", "square", "sqrt", "exp", "sinh", "cosh", "tanh", "asin",
                "acos", "atan", "asinh", "acosh", "atanh", "math.log", "math.log1p", "math.expm1",
                "math.rsqrt", "math.reciprocal", "math.reciprocal_no_nan", "sigmoid",
                "math.log_sigmoid", "math.softplus", "math.erf", "math.erfc", "math.erfinv",
                "nn.relu", "nn.relu6", "nn.elu", "nn.selu")
_PAIRS_AT_THE_ENDS = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "atan2",
                      "pow", "math.squared_difference")


def extremes(dtype: str) -> np.ndarray:
    """The special points, and the least and largest numbers of a dtype."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    return np.array([*_SPECIAL, *ends, *[-e for e in ends]], np.float64)


def samples() -> Iterator[Sample]:
    for name, (reference, low, high, takes_complex) in _UNARY.items():
        for shape in _SHAPES:
            yield sample(name, of(*shape, low=low, high=high), reference=reference,
                         near=8, mixed=False, orders=2 if shape == (7,) else 0)
        if takes_complex:
            yield sample(name, of(3, 2, low=0.2, high=0.8), reference=reference, dtypes=COMPLEX)
    for name, reference in _COMPLEX_PARTS.items():
        yield sample(name, of(3, 2, low=0.2, high=0.8), reference=reference, dtypes=COMPLEX)
        yield sample(name, of(3, 2, low=0.2, high=0.8), reference=reference, dtypes=WIDE)
    for name, (pair, low, high, takes_complex) in _BINARY.items():
        for a, b in _PAIRS:
            yield sample(name, of(*a, low=low, high=high), of(*b, low=low, high=high),
                         reference=pair, near=4, mixed=False, orders=2 if len(a) > 1 else 0)
        if takes_complex:
            yield sample(name, of(3, 1, low=0.3, high=0.9), of(2, low=0.3, high=0.9),
                         reference=pair, dtypes=COMPLEX)
    yield from _others()


def at_the_ends() -> Iterator[Sample]:
    """Values alone: what the functions give where they stop to be smooth or finite."""
    for dtype in FLOATS:
        points = extremes(dtype)
        for name in _AT_THE_ENDS:
            yield sample(name, points, reference=_UNARY[name][0], dtypes=(dtype,), near=4,
                         mixed=False, gradients=False)
        for name in _PAIRS_AT_THE_ENDS:
            yield sample(name, points[:, None], points, reference=_BINARY[name][0],
                         dtypes=(dtype,), near=4, mixed=False, gradients=False)


_INTEGER_UNARY = {"abs": np.abs, "negative": np.negative, "square": np.square, "sign": np.sign}
_INTEGER_BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "math.squared_difference": lambda a, b: (a - b) * (a - b),
    "less": np.less, "greater_equal": np.greater_equal, "equal": np.equal}
_QUOTIENTS = {"math.floordiv": np.floor_divide, "math.floormod": np.mod,
              "truncatediv": lambda a, b: _truncated(a, b)[0],
              "truncatemod": lambda a, b: _truncated(a, b)[1]}


def _truncated(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder towards zero, exact in Python's integers."""
    wide = [x.astype(object) for x in np.broadcast_arrays(a, b)]
    quotient = abs(wide[0]) // abs(wide[1]) * np.sign(wide[0]) * np.sign(wide[1])
    return quotient.astype(a.dtype), (wide[0] - quotient * wide[1]).astype(a.dtype)


def integers() -> Iterator[Sample]:
    """Integers to the ends of their dtypes, where sums and products wrap around."""
    for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
        info = np.iinfo(dtype)
        signed = info.min < 0
        points = np.array([0, 1, 2, 7, info.max, info.max - 1, info.max // 2 + 1, info.min,
                           *([-1, -7, info.min + 1] if signed else [])], dtype)
        only = {"dtypes": ("float32",), "gradients": False}
        for name, reference in _INTEGER_UNARY.items():
            if signed or name not in ("abs", "negative", "sign"):
                yield sample(name, points, reference=reference, **only)
        for name, pair in _INTEGER_BINARY.items():
            yield sample(name, points[:, None], points, reference=pair, **only)
        divisors = points[(points != 0) & (points != np.array(-1).astype(dtype))]
        for name, pair in _QUOTIENTS.items():
            yield sample(name, points[:, None], divisors, reference=pair, **only)


def _others() -> Iterator[Sample]:
    low = {"low": 0.4, "high": 3.0}
    yield sample("math.igamma", of(3, 1, **low), of(4, **low), reference=sp.gammainc, orders=1)
    yield sample("math.igammac", of(3, 1, **low), of(4, **low), reference=sp.gammaincc, orders=1)
    # These have gradients for their last argument only.
    yield sample("math.betainc", of(3, 4, low=0.1, high=0.9), orders=1, function=lambda x: (
        tf.math.betainc(tf.constant([[0.5], [1.0], [2.5]], x.dtype), 2.0, x)),
        reference=lambda x: sp.betainc([[0.5], [1.0], [2.5]], 2.0, x))
    yield sample("math.zeta", of(4, **low), reference=lambda q: sp.zeta(2.5, q), dtypes=WIDE,
                 function=lambda q: tf.math.zeta(tf.constant(2.5, q.dtype), q), orders=1)
    yield sample("math.polygamma", of(4, **low), dtypes=WIDE, orders=1, function=lambda x: (
        tf.math.polygamma(tf.constant([[0.0], [1.0], [2.0]], x.dtype), x)),
        reference=lambda x: sp.polygamma([[0], [1], [2]], x))
    yield sample("math.lbeta", of(2, 5, **low), dtypes=WIDE, reference=lambda x: (
        sp.gammaln(x).sum(-1) - sp.gammaln(x.sum(-1))))
    yield sample("math.nextafter", of(3, 5), of(3, 5), dtypes=("float32",), gradients=False,
                 reference=lambda a, b: np.nextafter(np.float32(a), np.float32(b)), near=0)
    yield sample("clip_by_value", of(3, 5), np.float64(-0.75), np.float64(0.5),
                 reference=lambda x, a, b: np.minimum(np.maximum(x, a), b))
    yield sample("clip_by_value", of(3, 5), of(5, low=-1, high=-0.5), of(3, 1, low=0.5, high=1),
                 reference=lambda x, a, b: np.minimum(np.maximum(x, a), b))
    yield sample("nn.gelu", of(3, 5), approximate=True)
    # In its tail 0.5 + 0.5 erf has nothing left; x / √2, rounded, moves the reference by x² units.
    yield sample("nn.gelu", np.array([-2.0, -4.0, -5.0, -6.0]), reference=_gelu, near=40,
                 mixed=False)
    yield sample("nn.leaky_relu", of(3, 5), alpha=0.3,
                 reference=lambda x, alpha: np.where(x > 0, x, alpha * x))
    yield sample("nn.crelu", of(3, 4), reference=lambda x: np.maximum(
        np.concatenate([x, -x], -1), 0))
    yield sample("complex", of(3, 1), of(4), dtypes=WIDE, reference=lambda a, b: a + 1j * b)
    yield sample("scalar_mul", of(), of(3, 4), reference=np.multiply)
    yield sample("realdiv", of(3, 1, **low), of(4, **low), reference=np.divide)
    yield sample("math.polyval", of(5), function=_polyval, dtypes=WIDE,
                 reference=lambda x: np.polyval([1.0, -2.0, 0.5], x))
    yield sample("saturate_cast", of(3, 5), dtype="float16", dtypes=WIDE, orders=0,
                 reference=lambda x, dtype: x)
    yield sample("cast", of(3, 5), dtype="float64", dtypes=("float32", "float64"), orders=0,
                 reference=lambda x, dtype: x)
    yield sample("where", np.array([[True], [False]]), of(2, 3), of(3), reference=np.where)


def _polyval(x: Any) -> Any:
    return tf.math.polyval([tf.cast(c, x.dtype) for c in (1.0, -2.0, 0.5)], x)
