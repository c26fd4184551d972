"""The error function, its complement and its inverse, and the normal quantile.

The approximations are fits of this project: erf is x times a rational function of x**2 (near
minimax on the range where erf differs from 1), the others Chebyshev series.
"""

from math import sqrt
from types import ModuleType

from .error_function_tables import (
    CENTRE,
    DOUBLE_P,
    DOUBLE_Q,
    ERFCX,
    SHOULDER,
    SINGLE_P,
    SINGLE_Q,
    TAIL,
)
from .series import Array, chebyshev, evaluate, horner

# Beyond these erf rounds to 1.
SINGLE_END, DOUBLE_END = 3.95, 5.95


def erf(xp: ModuleType, x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    return evaluate(xp, _erf, x, single=True)


def erfc(xp: ModuleType, x: Array) -> Array:
    """1 - erf(x), accurate relative to its value down to underflow (x = 26.5 in float64)."""
    return evaluate(xp, _erfc, x)


def erfinv(xp: ModuleType, y: Array) -> Array:
    """The x with erf(x) = y; infinite at -1 and 1, NaN outside.

    As in Giles 2012, "Approximating the erfinv function", y times a function of
    w = -log(1 - y**2), which is smooth; pieces in w and sqrt(w).
    """
    return evaluate(xp, _erfinv, y)


def ndtri(xp: ModuleType, p: Array) -> Array:
    """The quantile of the standard normal distribution: sqrt(2) * erfinv(2 * p - 1), accurate
    for small p too; infinite at 0 and 1, NaN outside."""
    return evaluate(xp, _ndtri, p)


def _erf(xp: ModuleType, x: Array) -> Array:
    double = x.dtype == xp.float64
    end = DOUBLE_END if double else SINGLE_END
    inner = xp.clip(x, -end, end)
    square = inner * inner
    value = horner(xp, DOUBLE_P if double else SINGLE_P, square)
    value /= horner(xp, DOUBLE_Q if double else SINGLE_Q, square)
    value *= inner
    return xp.clip(value, -1.0, 1.0)


def _erfc(xp: ModuleType, x: Array) -> Array:
    tail = xp.clip(x, 0.5, 30.0)
    t = 4.0 / (4.0 + tail)
    scaled = t * chebyshev(xp, ERFCX, 2.0 * t - 1.0)
    # exp(-x**2) in two factors: x**2 rounded once would cost x**2 ulps of the result.
    coarse = xp.rint(tail * 1024.0) / 1024.0
    fine = (tail - coarse) * (tail + coarse)
    far = xp.exp(-coarse * coarse) * xp.exp(-fine) * scaled
    return xp.where(x < 0.5, 1.0 - _erf(xp, x), xp.where(xp.isnan(x), x, far))


def _erfinv(xp: ModuleType, y: Array) -> Array:
    # (1 - y) * (1 + y) keeps the distance to 1 exact.
    return y * _erfinv_ratio(xp, -xp.log((1.0 - y) * (1.0 + y)))


def _ndtri(xp: ModuleType, p: Array) -> Array:
    q = 1.0 - p
    w = -(xp.log(4.0 * p) + xp.log(q))
    middle = -xp.log1p(-((p - q) ** 2))
    near = xp.abs(p - 0.5) < 0.4
    return sqrt(2.0) * (p - q) * _erfinv_ratio(xp, xp.where(near, middle, w))


def _erfinv_ratio(xp: ModuleType, w: Array) -> Array:
    """erfinv(y) / y for w = -log(1 - y**2), up to w = 756; infinite at infinity."""
    root = xp.sqrt(w)
    centre = chebyshev(xp, CENTRE, xp.minimum(w, 6.25) / 3.125 - 1.0)
    shoulder = chebyshev(xp, SHOULDER, (xp.clip(root, 2.5, 6.0) - 4.25) / 1.75)
    tail = chebyshev(xp, TAIL, (xp.clip(root, 6.0, 27.5) - 16.75) / 10.75)
    ratio = xp.where(w < 6.25, centre, xp.where(w < 36.0, shoulder, tail))
    return xp.where(xp.isinf(w), w, ratio)
