"""The error function, its complement and its inverse, and the normal quantile.

The approximations are fits of this project: erf is x times a rational function of x**2 (near
minimax on the range where erf differs from 1), the others Chebyshev series.
"""

from math import sqrt
from types import ModuleType

import numpy as np

from . import coefficients
from .arrays import Array
from .series import chebyshev, horner, over_arrays

# Beyond this erf of float32 rounds to 1; below that of float64 is fitted best.
SINGLE_END, DOUBLE_END = 3.95, 1.0
# Beyond these the lower tail of the normal distribution rounds to 0.
SINGLE_TAIL, DOUBLE_TAIL = np.float32(15.0), 39.0
# Arrays of float32 with numbers of float32: NumPy computes them in half the time.
MINUS_HALF, NORMAL_SCALE = np.float32(-0.5), np.float32(0.35)
UPPER_BITS = np.int32(-4096)
NORMAL_TAIL_SINGLE = tuple(map(np.float32, coefficients.NORMAL_TAIL))


def normal_cdf(xp: ModuleType, x: Array) -> Array:
    """The distribution function of the standard normal distribution, erfc(-x / sqrt(2)) / 2,
    accurate relative to its value down to underflow."""
    if x.dtype == xp.float64:
        return _normal_cdf_double(xp, x)
    flat = x.astype(xp.float32, copy=False).reshape(-1)
    return _normal_cdf_single(xp, flat).reshape(x.shape).astype(x.dtype, copy=False)


def _erf(xp: ModuleType, x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    double = x.dtype == xp.float64
    end = DOUBLE_END if double else SINGLE_END
    inner = xp.clip(x, -end, end)
    square = inner * inner
    value = horner(xp, coefficients.DOUBLE_P if double else coefficients.SINGLE_P, square)
    value /= horner(xp, coefficients.DOUBLE_Q if double else coefficients.SINGLE_Q, square)
    value *= inner
    if not double:
        return xp.clip(value, -1.0, 1.0)
    size = xp.clip(xp.abs(x), 0.5, 30.0)  # erfc underflows before 30
    far = xp.copysign(1.0 - _exp_square(xp, size, 1.0) * _erfcx(xp, size), x)
    return xp.where(xp.abs(x) < end, value, far)


def _erfc(xp: ModuleType, x: Array) -> Array:
    """1 - erf(x), accurate relative to its value down to underflow (x = 26.5 in float64)."""
    tail = xp.clip(x, 0.5, 30.0)
    far = _exp_square(xp, tail, 1.0) * _erfcx(xp, tail)
    return xp.where(x < 0.5, 1.0 - _erf(xp, x), xp.where(xp.isnan(x), x, far))


def _erfcx(xp: ModuleType, x: Array) -> Array:
    """exp(x**2) * erfc(x) for x >= 0.5."""
    t = 4.0 / (4.0 + x)
    return t * chebyshev(xp, coefficients.ERFCX, 2.0 * t - 1.0)


def _exp_square(xp: ModuleType, x: Array, factor: float) -> Array:
    """exp(-factor * x**2), in two factors: x**2 rounded once would cost x**2 ulps of it."""
    # A multiple of 2^-10 below 64 has 16 bits: its square is exact, and so is x - coarse.
    coarse = xp.rint(x * 1024.0) / 1024.0
    fine = (x - coarse) * (x + coarse)
    return xp.exp(-factor * (coarse * coarse)) * xp.exp(-factor * fine)


def _normal_cdf(xp: ModuleType, x: Array) -> Array:
    size = xp.minimum(xp.abs(x), DOUBLE_TAIL)
    scaled = sqrt(0.5) * size
    tail = 0.5 * _exp_square(xp, size, 0.5) * _erfcx(xp, xp.maximum(scaled, 0.5))
    far = xp.where(x < 0.0, tail, 1.0 - tail)
    return xp.where(scaled < 0.5, 0.5 + 0.5 * _erf(xp, sqrt(0.5) * x), far)


def _normal_cdf_single(xp: ModuleType, x: Array) -> Array:
    """As exp(-x**2 / 2) times a polynomial in t = 1 / (1 + 0.35 * abs(x)). Every pass over the
    array counts here: this is gelu."""
    t = xp.minimum(xp.abs(x), SINGLE_TAIL)
    # The upper 12 bits of a float32, whose square is exact.
    power = xp.bitwise_and(t.view(np.int32), UPPER_BITS).view(np.float32)
    rest = t - power
    rest *= t + power
    rest *= MINUS_HALF
    power *= power
    power *= MINUS_HALF
    density = xp.exp(power, out=power)
    density *= xp.exp(rest, out=rest)
    t *= NORMAL_SCALE
    t += 1
    tail = xp.divide(1, t, out=t)
    tail = horner(xp, NORMAL_TAIL_SINGLE, tail)
    tail *= density
    # 1 - tail above, and |0 - tail| below.
    value = xp.subtract(x > 0, tail, out=tail)
    return xp.abs(value, out=value)


def _erfinv(xp: ModuleType, y: Array) -> Array:
    """The x with erf(x) = y; infinite at -1 and 1, NaN outside. As in Giles 2012, "Approximating
    the erfinv function", y times a function of w = -log(1 - y**2), which is smooth; pieces in w and
    sqrt(w)."""
    # (1 - y) * (1 + y) keeps the distance to 1 exact.
    return y * _erfinv_ratio(xp, -xp.log((1.0 - y) * (1.0 + y)))


def _ndtri(xp: ModuleType, p: Array) -> Array:
    """The quantile of the standard normal distribution: sqrt(2) * erfinv(2 * p - 1), accurate
    for small p too; infinite at 0 and 1, NaN outside."""
    q = 1.0 - p
    w = -(xp.log(4.0 * p) + xp.log(q))
    middle = -xp.log1p(-((p - q) ** 2))
    # In the middle w is near 0: the logarithms of 4 p and q cancel, log1p does not.
    near = xp.abs(p - 0.5) < 0.4
    return sqrt(2.0) * (p - q) * _erfinv_ratio(xp, xp.where(near, middle, w))


def _erfinv_ratio(xp: ModuleType, w: Array) -> Array:
    """erfinv(y) / y for w = -log(1 - y**2), up to w = 756; infinite at infinity."""
    root = xp.sqrt(w)
    centre = chebyshev(xp, coefficients.CENTRE, xp.minimum(w, 6.25) / 3.125 - 1.0)
    shoulder = chebyshev(xp, coefficients.SHOULDER, (xp.clip(root, 2.5, 6.0) - 4.25) / 1.75)
    # 27.5² is beyond the w of the least positive float64.
    tail = chebyshev(xp, coefficients.TAIL, (xp.clip(root, 6.0, 27.5) - 16.75) / 10.75)
    ratio = xp.where(w < 6.25, centre, xp.where(w < 36.0, shoulder, tail))
    return xp.where(xp.isinf(w), w, ratio)


# erf of float32 stays in float32, whose fit is exact enough and takes half of the time.
erf = over_arrays(_erf, single=True)
erfc, erfinv, ndtri, _normal_cdf_double = map(over_arrays, (_erfc, _erfinv, _ndtri, _normal_cdf))
