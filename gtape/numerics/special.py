"""The special functions, by name, and the Bessel functions among them.

Each takes (xp, float arrays), broadcasts, computes in float64 (erf of float32 in float32) and
returns the dtype of its first array. The modified Bessel functions of the first kind are Chebyshev
series in x up to 8 and in 1 / x beyond, the division of Clenshaw 1962, "Chebyshev series for
mathematical functions"; the coefficients are fits of this project.
"""

from collections.abc import Sequence
from types import ModuleType

from .arrays import Array
from .coefficients import I0_FAR, I0_NEAR, I1_FAR, I1_NEAR
from .error_function import erf, erfc, erfinv, ndtri, normal_cdf
from .gamma_function import digamma, lbeta, lgamma, polygamma, zeta
from .incomplete import betainc, gamma_density, igamma, igammac
from .series import chebyshev, over_arrays

__all__ = [
    "betainc", "digamma", "erf", "erfc", "erfinv", "gamma_density", "i0", "i0e", "i1", "i1e",
    "igamma", "igammac", "lbeta", "lgamma", "ndtri", "normal_cdf", "polygamma", "zeta"]


#: Where the fits of the tables meet: one up to here, the other from here on.
JOINT = 8.0


def _i0(xp: ModuleType, x: Array) -> Array:
    """I0(x), the even solution of x**2 y'' + x y' = x**2 y with y(0) = 1."""
    return _grown(xp, x, _i0e(xp, x))


def _i0e(xp: ModuleType, x: Array) -> Array:
    """exp(-abs(x)) * I0(x)."""
    size = xp.abs(x)
    # The series is an ulp off at 0, the one place where the value is a round number.
    near = xp.where(size == 0.0, 1.0, _near(xp, I0_NEAR, size))
    return xp.where(size < JOINT, near, _far(xp, I0_FAR, size))


def _i1(xp: ModuleType, x: Array) -> Array:
    """I1(x), the derivative of I0; odd."""
    return _grown(xp, x, _i1e(xp, x))


def _i1e(xp: ModuleType, x: Array) -> Array:
    """exp(-abs(x)) * I1(x)."""
    size = xp.abs(x)
    near = x * _near(xp, I1_NEAR, size)
    return xp.where(size < JOINT, near, xp.copysign(_far(xp, I1_FAR, size), x))


def _near(xp: ModuleType, coefficients: Sequence[float], size: Array) -> Array:
    return chebyshev(xp, coefficients, xp.minimum(size, JOINT) / 4.0 - 1.0)


def _far(xp: ModuleType, coefficients: Sequence[float], size: Array) -> Array:
    outer = xp.maximum(size, JOINT)
    return chebyshev(xp, coefficients, 2.0 * JOINT / outer - 1.0) / xp.sqrt(outer)


def _grown(xp: ModuleType, x: Array, scaled: Array) -> Array:
    """scaled * exp(abs(x)), whose exponential may overflow before the product does."""
    half = xp.exp(0.5 * xp.abs(x))
    return xp.where(xp.isinf(x), xp.copysign(x, scaled), scaled * half * half)


i0, i0e, i1, i1e = map(over_arrays, (_i0, _i0e, _i1, _i1e))
