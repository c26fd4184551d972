"""Pairs of standard normal values from pairs of uniform ones, bit for bit the same everywhere.

Only additions, products, quotients and roots are used, each rounded once, so that NumPy on every
machine and compiled programs (kernels/cpu_random.h, the same formulas) give the same numbers; the
logarithms and sines of libraries differ in their last bits.
"""

from math import log, pi
from types import ModuleType

from .precision import Array

# Values of a block, whose temporaries stay in the cache.
_BLOCK = 1 << 13
# By itemsize: the integer of the same width, the bits of sqrt(1/2), those of the mantissa, and the
# terms of the series of log, sin and cos that are below half an ulp.
_FORMS = {4: ("int32", 0x3F3504F3, 23, 4, 4, 5), 8: ("int64", 0x3FE6A09E667F3BCD, 52, 10, 8, 9)}


def normal_pairs(xp: ModuleType, u: Array, v: Array) -> Array:
    """[n, 2]: sqrt(-2 log u) (sin, cos)(2 pi v), u raised to 1e-7: Box & Muller 1958, "A note on
    the generation of random normal deviates"."""
    pairs = xp.empty((u.size, 2), u.dtype)
    step = _BLOCK if xp.__name__ == "numpy" else max(u.size, 1)
    for start in range(0, u.size, step):
        block = slice(start, start + step)
        # log 0 is infinite; TensorFlow draws the line here too.
        radius = xp.sqrt(_log(xp, xp.maximum(u[block], u.dtype.type(1e-7))) * u.dtype.type(-2))
        sine, cosine = _sine_and_cosine(xp, v[block])
        xp.multiply(radius, sine, out=pairs[block, 0])
        xp.multiply(radius, cosine, out=pairs[block, 1])
    return pairs


def _log(xp: ModuleType, x: Array) -> Array:
    """log x of positive normal x = m 2^e with m in [sqrt(1/2), sqrt(2)): e log 2 + 2 artanh s with
    s = (m - 1) / (m + 1)."""
    real = x.dtype.type
    name, root, digits, terms, _, _ = _FORMS[x.dtype.itemsize]
    bits = x.view(name)
    exponent = (bits - bits.dtype.type(root)) >> digits
    m = (bits - (exponent << digits)).view(x.dtype)
    s = (m - real(1)) / (m + real(1))
    double = s + s
    tail = _series(s * s, [real(1 / (2 * k + 1)) for k in range(1, terms + 1)])
    # Not double * (1 + tail), where the rounding of the sum would reach the last digits.
    return exponent.astype(x.dtype) * real(log(2)) + (double + double * tail)


def _sine_and_cosine(xp: ModuleType, turns: Array) -> tuple[Array, Array]:
    """sin and cos of 2 pi turns, turns in [0, 1): exact quarters, and Taylor's series in between.
    """
    real = turns.dtype.type
    name, _, _, _, odd, even = _FORMS[turns.dtype.itemsize]
    quarters = turns * real(4)
    nearest = xp.rint(quarters)
    x = (quarters - nearest) * real(pi / 2)
    z = x * x
    sine = x + x * _series(z, _taylor(real, 1, odd))
    cosine = _series(z, _taylor(real, 0, even)) + real(1)
    quadrant = nearest.astype(name)
    turned = (quadrant & 1) != 0
    sign = real(1) - (quadrant & 2).astype(turns.dtype)
    other = real(1) - ((quadrant + 1) & 2).astype(turns.dtype)
    return (xp.where(turned, cosine, sine) * sign, xp.where(turned, sine, cosine) * other)


def _taylor(real: type, first: int, count: int) -> list[Array]:
    """The coefficients of x^(first + 2), x^(first + 4), ... in the series of sin (1) or cos (0)."""
    terms, value = [], 1.0
    for k in range(first + 2, first + 2 * count + 2, 2):
        value /= -(k * (k - 1))
        terms.append(real(value))
    return terms


def _series(z: Array, coefficients: list[Array]) -> Array:
    """z (c_0 + z (c_1 + ...)), every product and sum rounded."""
    total = coefficients[-1] * z
    for c in coefficients[-2::-1]:
        total += c
        total *= z
    return total
