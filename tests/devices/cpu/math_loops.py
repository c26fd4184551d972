"""Loops over the scalar functions of generated CPU code, and how far their results are off."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

special = pytest.importorskip("scipy.special")
INCLUDE = '#include "cpu_math.h"\n'
ANY = (-np.inf, np.inf)


class Function(NamedTuple):
    """What a function of one number is, its largest error in ulps for float and for double (None
    where it is libm's), and where doubles are drawn from."""

    exact: Callable[[Any], Any]
    ulps: float
    double_ulps: float | None
    domain: tuple[float, float] = ANY


FUNCTIONS = {
    "exp": Function(np.exp, 1, 1, (-750, 720)),
    "expm1": Function(np.expm1, 1.5, 2, (-40, 720)),
    "sigmoid": Function(lambda x: 1 / (1 + np.exp(-x)), 2, 2, (-760, 50)),
    "log": Function(np.log, 1, 1),
    "log1p": Function(np.log1p, 1.5, 1.5, (-1, 1e20)),
    "sqrt": Function(np.sqrt, 0.5, 0.5),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "sin": Function(np.sin, 1.75, None),
    "cos": Function(np.cos, 1.75, None),
    "tan": Function(np.tan, 1, None),
    "asin": Function(np.arcsin, 2, 1.5, (-1, 1)),
    "acos": Function(np.arccos, 1.5, 1.5, (-1, 1)),
    "atan": Function(np.arctan, 2, 2, (-50, 50)),
    "sinh": Function(np.sinh, 1.75, 1.75, (-715, 715)),
    "cosh": Function(np.cosh, 1.5, 1.5, (-715, 715)),
    "tanh": Function(np.tanh, 1.75, 1.75, (-25, 25)),
    "asinh": Function(np.arcsinh, 1, 2),
    "acosh": Function(np.arccosh, 1, 2.5, (1, 1e3)),
    "atanh": Function(np.arctanh, 1, 2, (-1, 1)),
    "erf": Function(special.erf, 1.25, 1.5, (-7, 7)),
    "erfc": Function(special.erfc, 1.75, None),
    "normcdf": Function(special.ndtr, 1.75, None),
}
PAIRS = {"pow": (np.power, 1), "atan2": (np.arctan2, 2)}
#: Functions of double that are libm's, whose loops are not vectorised.
SCALAR_DOUBLES = {"sin", "cos", "tan", "erfc", "normcdf", "pow"}
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5]


def loop(name: str, result: str, arguments: list[str], body: str) -> str:
    """An exported function that stores `body`, of a, b, c, for each element."""
    pointers = ", ".join(f"const {t}* __restrict {p}_" for t, p in zip(arguments, "abc"))
    loads = " ".join(f"const {t} {p} = {p}_[i];" for t, p in zip(arguments, "abc"))
    return (f'extern "C" __attribute__((visibility("default"))) void {name}({pointers}, '
            f"{result}* __restrict y, long n) {{\n#pragma omp simd\n"
            f"for (long i = 0; i < n; ++i) {{ {loads} y[i] = {body}; }} }}\n")


def functions() -> str:
    """A program with a loop for each function, for float and for double."""
    loops = [loop(f"{name}_{t}", t, [t] * (1 + (name in PAIRS)),
                  f"{name}(a{', b' if name in PAIRS else ''})")
             for name in [*FUNCTIONS, *PAIRS] for t in ("float", "double")]
    return INCLUDE + "namespace gtape_cpu {\n" + "".join(loops) + "}\n"


def call(library: ctypes.CDLL, name: str, result: Any, *arrays: Any) -> Any:
    arrays = tuple(np.ascontiguousarray(a) for a in arrays)
    out = np.empty(arrays[0].shape, result)
    getattr(library, name)(*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)),
                           ctypes.c_long(out.size))
    return out


def ulps(found: Any, exact: Any) -> Any:
    """The distances of `found` from `exact`, which has more digits, in units of the last place.

    Infinity counts as the power of two behind the largest number. A nan, or a zero of the wrong
    sign, is infinitely far from anything else.
    """
    info = np.finfo(found.dtype)
    end = np.ldexp(exact.dtype.type(1), info.maxexp)
    exact = np.clip(exact, -end, end)
    exponent = np.frexp(np.where(exact == 0, np.ldexp(end, -2 * info.maxexp), exact))[1]
    exponent = np.maximum(exponent, info.minexp + 1)
    unit = np.ldexp(exact.dtype.type(1), np.minimum(exponent, info.maxexp) - info.nmant - 1)
    distance = np.abs(np.clip(found.astype(exact.dtype), -end, end) - exact) / unit
    same_zero = (np.signbit(found) == np.signbit(exact)) | (exact != 0) | (found != 0)
    return np.where(np.isnan(exact) | np.isnan(found),
                    np.where(np.isnan(exact) & np.isnan(found), 0, np.inf),
                    np.where(same_zero, distance, np.inf))


def every_float(step: int = 4099) -> Any:
    """Floats of all exponents and both signs, by strides through their bits, and the edges."""
    bits = np.arange(0, 1 << 32, step, np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.array(EDGES, np.float32)])


def some_doubles(domain: tuple[float, float], count: int = 40_000) -> Any:
    rng = np.random.default_rng(7)
    low, high = domain
    drawn = [np.array([*EDGES, 5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308]),
             rng.standard_normal(count), np.exp(rng.uniform(-700, 700, count)),
             1 + rng.uniform(-0.1, 0.1, count)]
    if np.isfinite(low):
        drawn.append(rng.uniform(low, high, count))
    else:
        drawn.append(rng.integers(0, 1 << 64, count, np.uint64).view(np.float64))
    return np.concatenate(drawn)


def worst(found: Any, exact: Any, *arguments: Any) -> tuple[float, str]:
    distances = ulps(found, exact)
    at = int(np.argmax(distances))
    return float(distances[at]), f"{[a[at] for a in arguments]}: {found[at]!r}, {exact[at]!r}"
