"""The logarithm of the gamma function, its derivatives, and the Hurwitz zeta function."""

from functools import cache
from math import factorial, log, pi
from types import ModuleType

from .arrays import Array
from .coefficients import DIGAMMA, LGAMMA, ROOT, ROOT_REST
from .series import chebyshev, horner, over_arrays

# Bernoulli numbers B2, B4, ...
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730)
# Where the asymptotic series in 1 / x**2 reach float64's precision with eight terms.
ASYMPTOTIC = 10.0
STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:8], 1))
DIGAMMA_FAR = tuple(-b / (2 * k) for k, b in enumerate(BERNOULLI[:8], 1))
# Zeta sums so many terms one by one, and where q is negative one more for each unit below 0. Each
# is a pass over the array, so there is a limit.
ZETA_TERMS, ZETA_LIMIT = 10, -1000
# The largest order whose factorial is a number.
LAST_FACTORIAL = 170


def lgamma64(xp: ModuleType, x: Array) -> Array:
    """log(abs(gamma(x))); infinite at 0, -1, -2, ... and at both infinities. Near 1 and 2 a series
    keeps the zeros; numbers up to 10 are brought there, so that all terms have one sign. Above it
    is Stirling's series (DLMF 5.11.1), below 0 the reflection formula (DLMF 5.5.3)."""
    # 1 - x is not exact for tiny x, but there lgamma is -log(abs(x)) to rounding.
    reflected = x < 0.0
    positive = xp.where(reflected, 1.0 - x, x)
    value = _lgamma_positive(xp, positive)
    sine = xp.abs(_sin_pi(xp, x))
    mirrored = log(pi) - xp.log(sine) - value
    mirrored = xp.where(xp.isinf(x), xp.inf, mirrored)
    return xp.where(reflected, mirrored, value)


def _lgamma_positive(xp: ModuleType, x: Array) -> Array:
    low, factor = xp.minimum(x, ASYMPTOTIC), xp.ones_like(x)
    for _ in range(7):  # from below ASYMPTOTIC to below 3
        large = low >= 3.0
        low = xp.where(large, low - 1.0, low)
        factor = xp.where(large, factor * low, factor)
    below = low < 1.0
    t = low - xp.where(below, 1.0, 2.0)
    near = t * (t + 1.0) * chebyshev(xp, LGAMMA, t)
    near = near + xp.where(below, -xp.log(low), xp.log(factor))
    high = xp.maximum(x, ASYMPTOTIC)
    far = (high - 0.5) * (xp.log(high) - 1.0) + (0.5 * log(2 * pi) - 0.5)
    far = far + stirling_correction(xp, high)
    far = xp.where(xp.isinf(x), x, far)
    return xp.where(x < ASYMPTOTIC, near, far)


def stirling_correction(xp: ModuleType, x: Array) -> Array:
    """lgamma(x) minus (x - 1/2) * log(x) - x + log(2 * pi) / 2, for x >= 10 (DLMF 5.11.1)."""
    inverse = 1.0 / x
    return inverse * horner(xp, STIRLING, inverse * inverse)


def _digamma(xp: ModuleType, x: Array) -> Array:
    """The derivative of lgamma; NaN at 0, -1, -2, ... A series in [1, 2] keeps the zero; numbers up
    to 10 are brought there by 5.5.2 of DLMF. Above it is 5.11.2, below 0 the reflection formula
    5.5.4."""
    reflected = x <= 0.0
    positive = xp.where(reflected, 1.0 - x, x)
    low = xp.minimum(positive, ASYMPTOTIC)
    total = xp.where(low < 1.0, -1.0 / low, 0.0)
    low = xp.where(low < 1.0, low + 1.0, low)
    for _ in range(8):  # from below ASYMPTOTIC to below 2
        large = low > 2.0
        low = xp.where(large, low - 1.0, low)
        total = xp.where(large, total + 1.0 / low, total)
    # The zero in two parts: near it the first is subtracted without rounding.
    near = total + (low - ROOT - ROOT_REST) * chebyshev(xp, DIGAMMA, 2.0 * low - 3.0)
    high = xp.maximum(positive, ASYMPTOTIC)
    square = 1.0 / (high * high)
    far = xp.log(high) - 0.5 / high + square * horner(xp, DIGAMMA_FAR, square)
    value = xp.where(positive < ASYMPTOTIC, near, far)
    offset = x - xp.rint(x)
    pole = pi / xp.tan(pi * offset)
    pole = xp.where((offset == 0.0) & (x <= 0.0), xp.nan, pole)
    return xp.where(reflected, value - pole, value)


def _sin_pi(xp: ModuleType, x: Array) -> Array:
    """sin(pi * x) up to its sign, exactly 0 at integers."""
    return xp.sin(pi * (x - xp.rint(x)))


def _polygamma(xp: ModuleType, n: Array, x: Array) -> Array:
    """The n-th derivative of digamma: (-1)**(n + 1) * n! * zeta(n + 1, x), n = 0, 1, 2, ... NaN for
    other n. Below 0 the sum of zeta is split at 0 (DLMF 25.11.3), in zeta(s, f) + (-1)**s *
    (zeta(s, 1 - f) - zeta(s, 1 - x)) with the fractional part f of x."""
    sign = xp.where(n % 2.0 == 0.0, -1.0, 1.0)
    whole = xp.clip(xp.nan_to_num(n), 0.0, LAST_FACTORIAL).astype(int)
    factorials = xp.where(n > LAST_FACTORIAL, xp.inf, xp.asarray(_factorials())[whole])
    value = sign * factorials * _zeta_of_whole(xp, n + 1.0, x)
    value = xp.where(n == 0.0, _digamma(xp, x), value)
    return xp.where((n < 0.0) | (n != xp.floor(n)), xp.nan, value)


@cache
def _factorials() -> list[float]:
    return [float(factorial(n)) for n in range(LAST_FACTORIAL + 1)]


def _zeta_of_whole(xp: ModuleType, s: Array, q: Array) -> Array:
    """zeta for s = 2, 3, ..., below 0 too."""
    offset = q - xp.rint(q)
    mirrored = (q < 0.0) & (offset != 0.0)
    if not bool(mirrored.any()):
        return _zeta(xp, s, q)
    above = xp.where(offset > 0.0, offset, 1.0 + offset)
    below = xp.where(offset > 0.0, 1.0 - offset, -offset)
    inner, outer = xp.where(mirrored, below, 1.0), xp.where(mirrored, 1.0 - q, 1.0)
    rest = _zeta(xp, s, inner) - _zeta(xp, s, outer)
    rest = xp.where(s % 2.0 == 0.0, rest, -rest)
    # At q = 0, -1, ... zeta knows the poles.
    value = _zeta(xp, s, xp.where(mirrored, above, q))
    return xp.where(mirrored, value + rest, value)


def _zeta(xp: ModuleType, s: Array, q: Array) -> Array:
    """The Hurwitz zeta function: sum over k >= 0 of (q + k)**-s. Infinite at s = 1 and at q = 0,
    -1, ... for even s; NaN for s < 1, for q <= 0 with a power that is not defined there, and for q
    < -1000. Euler-Maclaurin summation, DLMF 25.11.28."""
    lowest = float(xp.clip(xp.where(q > ZETA_LIMIT, q, 0.0), ZETA_LIMIT, 0.0).min())
    total, base = xp.zeros_like(q), q.copy()
    for term in range(ZETA_TERMS + 1 + int(-lowest)):
        low = (base < ZETA_TERMS) | (term < ZETA_TERMS)
        total = xp.where(low, total + base**-s, total)
        base = xp.where(low, base + 1.0, base)
    power = base**-s
    total = total + power * (base / (s - 1.0) + 0.5)
    factor = s * power / base
    for k, bernoulli in enumerate(BERNOULLI, 1):
        total = total + factor * (bernoulli / factorial(2 * k))
        factor = factor * ((s + (2 * k - 1)) / base) * ((s + 2 * k) / base)
    return _zeta_special(xp, s, q, total)


def _zeta_special(xp: ModuleType, s: Array, q: Array, total: Array) -> Array:
    """`total` with the values of the limits and of the poles."""
    pole = (q <= 0.0) & (q == xp.floor(q))
    total = xp.where(xp.isinf(q) & (q > 0.0) & (s > 1.0), 0.0, total)
    at_infinity = xp.where(q > 1.0, 0.0, xp.where(q == 1.0, 1.0, xp.inf))
    total = xp.where(xp.isinf(s) & (q > 0.0), at_infinity, total)
    total = xp.where(pole, xp.where(s % 2.0 == 0.0, xp.inf, xp.nan), total)
    total = xp.where(q <= ZETA_LIMIT, xp.nan, total)
    total = xp.where(s == 1.0, xp.inf, total)
    return xp.where((s < 1.0) | xp.isnan(s) | xp.isnan(q), xp.nan, total)


def lbeta64(xp: ModuleType, a: Array, b: Array) -> Array:
    """log(gamma(a) * gamma(b) / gamma(a + b)) for a, b > 0. Where an argument is at least 10 the
    large terms of Stirling's series cancel on paper and not in the sum. Didonato & Morris 1992,
    "Algorithm 708"."""
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    direct = lgamma64(xp, small) + lgamma64(xp, large) - lgamma64(xp, small + large)
    big, total = xp.maximum(large, ASYMPTOTIC), xp.maximum(large, ASYMPTOTIC) + small
    correction = stirling_correction(xp, big) - stirling_correction(xp, total)
    log_ratio = xp.log1p(small / big)
    one_large = lgamma64(xp, small) - (big - 0.5) * log_ratio - small * (xp.log(total) - 1.0)
    both = xp.maximum(small, ASYMPTOTIC)
    both_large = 0.5 * log(2 * pi) - 0.5 * xp.log(both) - (big - 0.5) * log_ratio
    both_large = both_large - both * xp.log1p(big / both) + stirling_correction(xp, both)
    stirling = xp.where(small < ASYMPTOTIC, one_large, both_large) + correction
    return xp.where(large < ASYMPTOTIC, direct, stirling)


lgamma, lbeta = over_arrays(lgamma64), over_arrays(lbeta64)
digamma, polygamma, zeta = over_arrays(_digamma), over_arrays(_polygamma), over_arrays(_zeta)
