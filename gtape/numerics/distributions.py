"""Random arrays as pure functions of (key, offset, shape, dtype, parameters).

The words are those of Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as
easy as 1, 2, 3", SC'11): each 128-bit counter gives four uint32 words, and different keys give
independent streams.  A draw of n values uses counters offset ... offset + n - 1 at most, in every
64-bit plane above them, so the next draw of a stream starts at offset + n.  Distributions that need
rejection are in rejection.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf as erf_of_number
from math import log, pi, prod, sqrt
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, is_short
from .error_function import erfinv

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Key = tuple[int, int]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
# Six uint64 temporaries of this many counters fit in a core's cache.
HOST_COUNTERS = 1 << 14
# On a device they take 768 MiB, and fewer would be more launches.
DEVICE_COUNTERS = 1 << 24


def words(xp: ModuleType, key: Key, start: int, count: int) -> Array:
    """`count` uint32 words of the counters start, start + 1, ... (each below 2^128), in order."""
    total = -(-count // 4)
    low, high = start & MASK64, start >> 64
    wraps_at = min(total, MASK64 + 1 - low)
    before = xp.arange(wraps_at, dtype=xp.uint64) + xp.uint64(low)
    lanes = counter_words(xp, key, before, high)
    if wraps_at < total:
        after = xp.arange(total - wraps_at, dtype=xp.uint64)
        lanes = xp.concatenate([lanes, counter_words(xp, key, after, high + 1)])
    return lanes.ravel()[:count]


def counter_words(xp: ModuleType, key: Key, counters: Array, high: int = 0) -> Array:
    """The four words [n, 4] of each counter high * 2^64 + counters, counters uint64 [n]."""
    result = xp.empty((counters.size, 4), xp.uint32)
    step = HOST_COUNTERS if xp is np else DEVICE_COUNTERS
    for start in range(0, counters.size, step):
        part = slice(start, start + step)
        _scramble(xp, key, counters[part], high & MASK64, result[part])
    return result


def _scramble(xp: ModuleType, key: Key, counters: Array, high: int, result: Array) -> None:
    """Writes the ten rounds of `counters` to `result`.  Words are held in uint64, where a product
    of two of them is exact."""
    mask, half = xp.uint64(MASK32), xp.uint64(32)
    a, b = counters & mask, counters >> half
    c, d = (xp.full_like(counters, part) for part in (high & MASK32, high >> 32))
    product_a, product_c = xp.empty_like(a), xp.empty_like(a)
    for turn in range(ROUNDS):
        key_a, key_c = (xp.uint64((word + turn * weyl) & MASK32) for word, weyl in zip(key, WEYL))
        # Into arrays that are made once, and not in each of ten rounds.
        xp.multiply(a, xp.uint64(MULTIPLIERS[0]), out=product_a)
        xp.multiply(c, xp.uint64(MULTIPLIERS[1]), out=product_c)
        xp.right_shift(product_c, half, out=a)
        a ^= b
        a ^= key_a
        xp.right_shift(product_a, half, out=c)
        c ^= d
        c ^= key_c
        xp.bitwise_and(product_c, mask, out=b)
        xp.bitwise_and(product_a, mask, out=d)
    for lane, word in enumerate((a, b, c, d)):
        result[:, lane] = word


Shape = Sequence[int]

#: As many bits of a word as TensorFlow takes, so that the seed of an op gives its numbers.
MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


def bits64(xp: ModuleType, key: Key, offset: int, count: int) -> Array:
    """`count` uint64 words."""
    pairs = words(xp, key, offset, 2 * count).astype(xp.uint64)
    return pairs[0::2] | (pairs[1::2] << xp.uint64(32))


def uniform(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, low: float = 0.0,
            high: float = 1.0) -> Array:
    """Floats in [low, high), multiples of (high - low) * 2**-p for a dtype of p mantissa bits: the
    lowest p bits of each word (for float64 20 bits of one and 32 of the next)."""
    dtype = np.dtype(dtype)
    unit = _fraction(xp, key, offset, prod(shape), dtype).astype(dtype).reshape(shape)
    if (low, high) == (0.0, 1.0):
        return unit
    number: type[np.floating] = xp.dtype(dtype).type
    values = unit * number(high - low) + number(low)
    # Rounding may reach `high`, which is outside.
    end = number(high)
    return xp.where(values < end, values, np.nextafter(end, number(low)))


def uniform_int(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, low: int,
                high: int) -> Array:
    """Integers in [low, high): a 64-bit word modulo the range, so each value's probability is
    right to (high - low) * 2**-64.  Raises ValueError for an empty range."""
    if low >= high:
        raise ValueError(f"uniform integers need low < high; got low {low}, high {high}; the range "
                         f"is [low, high), so high is one more than the largest value")
    span = xp.uint64((high - low) % 2**64)
    raw = bits64(xp, key, offset, prod(shape))
    steps = raw % span if span else raw
    # Unsigned arithmetic wraps, so a negative `low` needs no case of its own.
    return (steps + xp.uint64(low % 2**64)).astype(dtype).reshape(shape)


def normal(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, mean: float = 0.0,
           stddev: float = 1.0) -> Array:
    """Normal values by `normal_pairs` of uniform ones.  Reaches 5.6 standard deviations."""
    dtype = np.dtype(dtype)
    count = prod(shape)
    half = (count + 1) // 2
    unit = _fraction(xp, key, offset, 2 * half, _working(xp, dtype))
    values = normal_pairs(xp, unit[0::2], unit[1::2]).ravel()[:count].reshape(shape)
    if (mean, stddev) != (0.0, 1.0):
        values = values * stddev + mean
    return values.astype(dtype, copy=False)


def truncated_normal(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike,
                     mean: float = 0.0, stddev: float = 1.0) -> Array:
    """Normal values within two standard deviations of the mean, by the inverse of their
    distribution function: sqrt(2) * erfinv(u) with u uniform in +-erf(sqrt(2)). Takes one word (two
    in float64) per value, where redrawing would take a random number."""
    dtype = np.dtype(dtype)
    v = _open_fraction(xp, key, offset, prod(shape), _working(xp, dtype))
    reach = erf_of_number(sqrt(2.0))
    standard = sqrt(2.0) * erfinv(xp, (2.0 * v - 1.0) * reach)
    standard = xp.clip(standard, -2.0, 2.0)  # rounding may pass the ends
    return (standard * stddev + mean).astype(dtype).reshape(shape)


def bernoulli(xp: ModuleType, key: Key, offset: int, shape: Shape, probability: float) -> Array:
    """bool: True with `probability`, rounded to a multiple of 2**-23: where a float32 `uniform`
    is at least 1 - probability."""
    threshold = xp.uint32(round((1.0 - min(max(probability, 0.0), 1.0)) * 2**23))
    steps = words(xp, key, offset, prod(shape)) & xp.uint32(2**23 - 1)
    return (steps >= threshold).reshape(shape)


def categorical(xp: ModuleType, key: Key, offset: int, logits: Array, samples: int) -> Array:
    """int64 [batch, samples]: class k of row b with probability softmax(logits[b])[k]. The inverse
    of each row's distribution function by bisection, in float64: memory is batch * (classes +
    samples), where Gumbel noise would need their product. A class of logit -inf is never drawn."""
    batch, classes = logits.shape
    weights = logits.astype(xp.float64)
    weights = xp.exp(weights - weights.max(axis=1, keepdims=True))
    edges = xp.cumsum(weights, axis=1)
    total = edges[:, -1:]
    target = uniform(xp, key, offset, (batch, samples), xp.float64) * total
    # Rounded up to the total it would fall to the last class, whatever that one's weight.
    target = xp.minimum(target, xp.nextafter(total, 0.0))
    low = xp.zeros((batch, samples), xp.int64)
    high = xp.full((batch, samples), classes - 1, xp.int64)
    for _ in range((classes - 1).bit_length()):
        middle = (low + high) // 2
        beyond = xp.take_along_axis(edges, middle, axis=1) <= target
        low = xp.where(beyond, xp.minimum(middle + 1, high), low)
        high = xp.where(beyond, high, middle)
    return low


def permutation(xp: ModuleType, key: Key, offset: int, count: int) -> Array:
    """int64: 0 ... count - 1 in random order, the order of `count` random 64-bit words."""
    return xp.argsort(bits64(xp, key, offset, count)).astype(xp.int64, copy=False)


def _open_fraction(xp: ModuleType, key: Key, offset: int, count: int, dtype: np.dtype) -> Array:
    """`count` uniform numbers in (0, 1)."""
    # Every second word, as the kernels read them: a seed gives the same numbers everywhere.
    if dtype == xp.float64:
        raw, width = bits64(xp, key, offset, 2 * count)[1::2], 64
    else:
        raw, width = words(xp, key, offset, 2 * count)[1::2], 32
    # As many bits as the dtype holds, so that it never rounds up to 1.
    kept = xp.finfo(dtype).nmant
    return ((raw >> raw.dtype.type(width - kept)).astype(dtype) + 0.5) * 2.0**-kept


def _fraction(xp: ModuleType, key: Key, offset: int, count: int, dtype: np.dtype) -> Array:
    """`count` fractions in [0, 1) in the working dtype of `dtype`."""
    kept = MANTISSA_BITS[dtype.name]
    if kept > 23:
        pairs = words(xp, key, offset, 2 * count).astype(xp.uint64)
        steps = ((pairs[0::2] & xp.uint64(2**20 - 1)) << xp.uint64(32)) | pairs[1::2]
    else:
        steps = words(xp, key, offset, count) & xp.uint32(2**kept - 1)
    return steps.astype(_working(xp, dtype)) * 2.0**-kept


def _working(xp: ModuleType, dtype: np.dtype) -> np.dtype:
    return xp.dtype(xp.float32) if is_short(dtype) else dtype


# Values of a block, whose temporaries stay in the cache.
_PAIRS = 1 << 13
# By itemsize: the integer of the same width, the bits of sqrt(1/2), those of the mantissa, and the
# terms of the series of log, sin and cos that are below half an ulp.
_FORMS = {4: ("int32", 0x3F3504F3, 23, 4, 4, 5), 8: ("int64", 0x3FE6A09E667F3BCD, 52, 10, 8, 9)}


def normal_pairs(xp: ModuleType, u: Array, v: Array) -> Array:
    """[n, 2]: sqrt(-2 log u) (sin, cos)(2 pi v), u raised to 1e-7: Box & Muller 1958, "A note on
    the generation of random normal deviates"."""
    pairs = xp.empty((u.size, 2), u.dtype)
    step = _PAIRS if xp.__name__ == "numpy" else max(u.size, 1)
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
    """sin and cos of 2 pi turns in [0, 1): exact quarters, and Taylor's series in between."""
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
