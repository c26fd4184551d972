"""The regularised incomplete gamma and beta functions.

Each is a front factor times a series or a continued fraction, iterated on all elements until
every one has converged; gamma functions of large order are Temme's expansion.  The front factors
are written with the deviance x * log(x / m) + m - x, which loses nothing where x is near m (Loader
2000, "Fast and accurate computation of binomial probabilities").
"""

from collections.abc import Callable
from functools import partial
from math import pi
from types import ModuleType

from .arrays import Array
from .error_function import erfc
from .gamma_function import ASYMPTOTIC, lbeta64, lgamma64, stirling_correction
from .series import horner, over_arrays

#: What is smaller, relative to the sum, does not change the sum any more.
EPSILON = 2.0**-53
#: What Lentz's method puts in the place of 0: so small that no other value is changed by it.
TINY = 1e-300
#: Where x is near a the series takes about sqrt(73 a) steps: enough for a up to `UNIFORM`.
MOST_STEPS = 10000
#: From here on two terms of Temme's expansion are exact: the third is below 1 / a**2.5.
UNIFORM = 1e6
#: Taylor coefficients of DLMF 8.12.9 and 8.12.10, c0(eta) and c1(eta), and how far from 0 eta is
#: where the expansion does not underflow: exp(-a * eta**2 / 2) does beyond 38.6 / sqrt(a).
_C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515)
_C1 = (-1 / 540, -1 / 288, 1 / 378, -77 / 77760)
_NEAR = 0.04
#: To look whether all elements have converged is to wait for the device.
CHECK_EVERY = 16


def _gamma_ratio(xp: ModuleType, a: Array, x: Array, upper: bool) -> Array:
    """P(a, x), the integral of t**(a - 1) * exp(-t) from 0 to x, divided by gamma(a), and `upper`
    Q(a, x) = 1 - P(a, x). P is 0 at x = 0, 1 at infinity; NaN for a < 0 and x < 0, and where both
    or neither matter (a = x = 0, a = x = infinity). Series DLMF 8.7.1 of P for x < a + 1, continued
    fraction DLMF 8.9.2 of Q from there on."""
    valid = (a > 0.0) & (x > 0.0) & xp.isfinite(a) & xp.isfinite(x)
    large = valid & (a >= UNIFORM)
    iterated = valid & ~large
    a_in, x_in = xp.where(iterated, a, 1.0), xp.where(iterated, x, 1.0)
    series_side = x_in < a_in + 1.0
    # Each side computes all elements: the other's become some that converge soon.
    front = _gamma_front(xp, a_in, x_in)
    series = front * _gamma_series(xp, a_in, xp.where(series_side, x_in, 0.5 * a_in))
    fraction_x = xp.where(series_side, a_in + 2.0, x_in)
    fraction = front * a_in * _gamma_fraction(xp, a_in, fraction_x)
    lower_value = xp.where(series_side, series, 1.0 - fraction)
    upper_value = xp.where(series_side, 1.0 - series, fraction)
    value = xp.clip(upper_value if upper else lower_value, 0.0, 1.0)
    if bool(large.any()):
        value = xp.where(large, _gamma_uniform(xp, xp.where(large, a, UNIFORM),
                                               xp.where(large, x, UNIFORM), upper), value)
    return xp.where(valid, value, _gamma_limits(xp, a, x, upper))


def _gamma_uniform(xp: ModuleType, a: Array, x: Array, upper: bool) -> Array:
    """The ratio for a >= `UNIFORM`: erfc(eta * sqrt(a / 2)) / 2 with a correction. DLMF 8.12.3 to
    8.12.8 (Temme 1979, "The asymptotic expansion of the incomplete gamma functions"); eta**2 / 2 =
    x / a - 1 - log(x / a), with the sign of x - a."""
    gap = (x - a) / a
    half_square = _log_excess(xp, gap)
    eta = xp.copysign(xp.sqrt(2.0 * half_square), gap)
    near = xp.clip(eta, -_NEAR, _NEAR)
    terms = horner(xp, _C0, near) + horner(xp, _C1, near) / a
    rest = xp.exp(-a * half_square) / xp.sqrt(2.0 * pi * a) * terms
    sign = 1.0 if upper else -1.0
    return xp.clip(0.5 * erfc(xp, sign * eta * xp.sqrt(0.5 * a)) + sign * rest, 0.0, 1.0)


def _gamma_density(xp: ModuleType, a: Array, x: Array) -> Array:
    """x**(a - 1) * exp(-x) / gamma(a), the derivative of `igamma`; NaN unless a > 0 and x >= 0."""
    inside = (a > 0.0) & (x > 0.0) & xp.isfinite(a) & xp.isfinite(x)
    a_in, x_in = xp.where(inside, a, 1.0), xp.where(inside, x, 1.0)
    at_zero = xp.where(a > 1.0, 0.0, xp.where(a == 1.0, 1.0, xp.inf))
    ends = xp.where(x == 0.0, at_zero, 0.0)
    known = (a > 0.0) & (x >= 0.0) & (xp.isfinite(a) | xp.isfinite(x))
    value = _gamma_front(xp, a_in, x_in) * (a_in / x_in)
    return xp.where(inside, value, xp.where(known, ends, xp.nan))


def _gamma_limits(xp: ModuleType, a: Array, x: Array, upper: bool) -> Array:
    """The values outside 0 < a, x < infinity."""
    below, above = (1.0, 0.0) if upper else (0.0, 1.0)
    at_zero = (x == 0.0) & (a > 0.0) | xp.isinf(a) & (x >= 0.0) & xp.isfinite(x)
    at_infinity = xp.isinf(x) & (a >= 0.0) & xp.isfinite(a) | (a == 0.0) & (x > 0.0)
    outside = (a < 0.0) | (x < 0.0)
    value = xp.where(at_zero, below, xp.where(at_infinity, above, xp.nan))
    return xp.where(outside, xp.nan, value)


def _gamma_front(xp: ModuleType, a: Array, x: Array) -> Array:
    """x**a * exp(-x) / gamma(a + 1)."""
    small = xp.exp(a * xp.log(x) - x - lgamma64(xp, a + 1.0))
    # Of large a, a log x, x and lgamma cancel: here on paper, by Stirling's series.
    big = xp.maximum(a, ASYMPTOTIC)
    deviance = big * _log_excess(xp, (x - big) / big)
    large = xp.exp(-deviance - stirling_correction(xp, big)) / xp.sqrt(2.0 * pi * big)
    return xp.where(a < ASYMPTOTIC, small, large)


def _log_excess(xp: ModuleType, u: Array) -> Array:
    """u - log(1 + u) for u > -1, without cancellation near 0. There log(1 + u) = 2 * atanh(r) with
    r = u / (2 + u), and u = 2 * r / (1 - r), so the difference is r * u minus the rest of the
    series of 2 * atanh(r)."""
    # There r² is below 0.07, and what follows r^41 below float64's precision.
    near = xp.clip(u, -0.4, 0.7)
    r = near / (2.0 + near)
    square = r * r
    rest = xp.zeros_like(u)
    for k in range(41, 1, -2):
        rest = (rest + 1.0 / k) * square
    close = r * near - 2.0 * r * rest
    return xp.where(near == u, close, u - xp.log1p(u))


def _gamma_series(xp: ModuleType, a: Array, x: Array) -> Array:
    """sum over k of x**k / ((a + 1) ... (a + k))."""

    def step(k: int, state: list[Array]) -> Array:
        state[0] = state[0] * (x / (a + k))
        state[1] = state[1] + state[0]
        return state[0] <= EPSILON * state[1]

    return _iterate(xp, step, [xp.ones_like(x), xp.ones_like(x)])[1]


def _gamma_fraction(xp: ModuleType, a: Array, x: Array) -> Array:
    """1 / (x + 1 - a - 1 * (1 - a) / (x + 3 - a - 2 * (2 - a) / (x + 5 - a - ...)))."""
    return _lentz(xp, x + 1.0 - a, lambda k: (k * (a - k), x + (2 * k + 1) - a))


def _betainc(xp: ModuleType, a: Array, b: Array, x: Array) -> Array:
    """I_x(a, b), the integral of t**(a - 1) * (1 - t)**(b - 1) from 0 to x, divided by beta(a, b),
    for a, b > 0 and 0 <= x <= 1; NaN outside. Continued fraction DLMF 8.17.22, on the side of the
    mean where it converges fast."""
    valid = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & xp.isfinite(a) & xp.isfinite(b)
    a_in, b_in, x_in = (xp.where(valid, v, d) for v, d in ((a, 1.0), (b, 1.0), (x, 0.5)))
    swap = x_in > (a_in + 1.0) / (a_in + b_in + 2.0)
    p, q = xp.where(swap, b_in, a_in), xp.where(swap, a_in, b_in)
    y, rest = xp.where(swap, 1.0 - x_in, x_in), xp.where(swap, x_in, 1.0 - x_in)
    tail = _beta_front(xp, p, q, y, rest) / p * _beta_fraction(xp, p, q, y)
    value = xp.clip(xp.where(swap, 1.0 - tail, tail), 0.0, 1.0)
    positive = (a > 0.0) & (b > 0.0) & xp.isfinite(a) & xp.isfinite(b)
    ends = xp.where(positive & (x == 0.0), 0.0, xp.where(positive & (x == 1.0), 1.0, xp.nan))
    return xp.where(valid, value, ends)


def _beta_front(xp: ModuleType, a: Array, b: Array, x: Array, rest: Array) -> Array:
    """x**a * rest**b / beta(a, b) with rest = 1 - x."""
    direct = xp.exp(a * xp.log(x) + b * xp.log(rest) - lbeta64(xp, a, b))
    big_a, big_b = xp.maximum(a, ASYMPTOTIC), xp.maximum(b, ASYMPTOTIC)
    total = big_a + big_b
    # x - a / (a + b) from both sides of 1 - x, so that neither is rounded twice.
    gap = (x * big_b - rest * big_a) / total
    deviance = big_a * _log_excess(xp, gap * total / big_a)
    deviance = deviance + big_b * _log_excess(xp, -gap * total / big_b)
    correction = stirling_correction(xp, total) - stirling_correction(xp, big_a)
    correction = correction - stirling_correction(xp, big_b)
    root = xp.sqrt(big_a / total * big_b / (2.0 * pi))
    large = xp.exp(correction - deviance) * root
    return xp.where((a < ASYMPTOTIC) | (b < ASYMPTOTIC), direct, large)


def _beta_fraction(xp: ModuleType, a: Array, b: Array, x: Array) -> Array:
    """1 / (1 + d1 / (1 + d2 / (1 + ...))) with the coefficients of DLMF 8.17.23."""

    def coefficients(k: int) -> tuple[Array, float]:
        m = k // 2
        if k % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0

    return _lentz(xp, xp.ones_like(x), coefficients)


def _lentz(xp: ModuleType, first: Array,
           coefficients: Callable[[int], tuple[Array, Array | float]]) -> Array:
    """1 / (first + c1 / (d1 + c2 / (d2 + ...))), (ck, dk) = coefficients(k). Lentz 1976,
    "Generating Bessel functions in Mie scattering calculations using continued fractions", with the
    guard against zeros of Thompson & Barnett 1986."""

    def step(k: int, state: list[Array]) -> Array:
        numerator, addend = coefficients(k)
        upper = addend + numerator / state[0]
        lower = addend + numerator * state[1]
        state[0] = xp.where(xp.abs(upper) < TINY, TINY, upper)
        state[1] = 1.0 / xp.where(xp.abs(lower) < TINY, TINY, lower)
        factor = state[0] * state[1]
        # Much later factors differ from 1 by their rounding, which would add up.
        state[2] = xp.where(state[3], state[2], state[2] * factor)
        state[3] = state[3] | (xp.abs(factor - 1.0) <= 2.0 * EPSILON)
        return state[3]

    settled = xp.zeros(first.shape, bool)
    return 1.0 / _iterate(xp, step, [first, xp.zeros_like(first), first, settled])[2]


def _iterate(xp: ModuleType, step: Callable[[int, list[Array]], Array],
             state: list[Array]) -> list[Array]:
    """`state` after steps 1, 2, ... until every element reports convergence, looked at every few
    steps because looking waits for the device.  Steps must not spoil converged elements."""
    for k in range(1, MOST_STEPS + 1):
        done = step(k, state)
        if k % CHECK_EVERY == 0 and bool(done.all()):
            break
    return state


igamma, igammac = (over_arrays(partial(_gamma_ratio, upper=upper)) for upper in (False, True))
gamma_density, betainc = over_arrays(_gamma_density), over_arrays(_betainc)
