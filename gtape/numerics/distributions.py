"""Random arrays as pure functions of (key, offset, shape, dtype, parameters).

The randomness is Philox (philox.py).  A draw of n values uses counters offset ... offset + n - 1
at most, in every 64-bit plane above them, so the next draw of a stream starts at offset + n.
Distributions that need rejection are in rejection.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf as erf_of_number
from math import prod, sqrt
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .box_muller import normal_pairs
from .error_function import erfinv
from .philox import Key, words
from .precision import Array, is_short

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

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
        raise ValueError(
            f"uniform integers need low < high; got low {low}, high {high}; the range is "
            "[low, high), so high is one more than the largest value"
        )
    span = xp.uint64((high - low) % 2**64)
    raw = bits64(xp, key, offset, prod(shape))
    steps = raw % span if span else raw
    # Unsigned arithmetic wraps, so a negative `low` needs no case of its own.
    return (steps + xp.uint64(low % 2**64)).astype(dtype).reshape(shape)


def normal(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, mean: float = 0.0,
           stddev: float = 1.0) -> Array:
    """Normal values by pairs of uniform ones: see `box_muller`.  Reaches 5.6 standard deviations.
    """
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
    distribution function: sqrt(2) * erfinv(u) with u uniform in +-erf(sqrt(2)).

    Takes one word (two in float64) per value, where redrawing would take a random number.
    """
    dtype = np.dtype(dtype)
    _, v = _unit_pairs(xp, key, offset, prod(shape), _working(xp, dtype))
    reach = erf_of_number(sqrt(2.0))
    standard = sqrt(2.0) * erfinv(xp, (2.0 * v - 1.0) * reach)
    standard = xp.clip(standard, -2.0, 2.0)  # rounding may pass the ends
    return (standard * stddev + mean).astype(dtype).reshape(shape)


def exponential(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike,
                rate: float = 1.0) -> Array:
    """-log(u) / rate, mean 1 / rate."""
    dtype = np.dtype(dtype)
    u, _ = _unit_pairs(xp, key, offset, prod(shape), _working(xp, dtype))
    return (xp.log(u) / -rate).astype(dtype).reshape(shape)


def bernoulli(xp: ModuleType, key: Key, offset: int, shape: Shape, probability: float) -> Array:
    """bool: True with `probability`, rounded to a multiple of 2**-23: where a float32 `uniform`
    is at least 1 - probability."""
    threshold = xp.uint32(round((1.0 - min(max(probability, 0.0), 1.0)) * 2**23))
    return ((words(xp, key, offset, prod(shape)) & xp.uint32(2**23 - 1)) >= threshold
            ).reshape(shape)


def categorical(xp: ModuleType, key: Key, offset: int, logits: Array, samples: int) -> Array:
    """int64 [batch, samples]: class k of row b with probability softmax(logits[b])[k].

    The inverse of each row's distribution function by bisection, in float64: memory is
    batch * (classes + samples), where Gumbel noise would need their product.  A class of logit
    -inf is never drawn.
    """
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


def _unit_pairs(xp: ModuleType, key: Key, offset: int, count: int,
                dtype: np.dtype) -> tuple[Array, Array]:
    """Two uniform arrays: u in (0, 1], safe under log, and v in (0, 1)."""
    if dtype == xp.float64:
        raw, width = bits64(xp, key, offset, 2 * count), 64
    else:
        raw, width = words(xp, key, offset, 2 * count), 32
    scale = 2.0**-width
    u = (raw[0::2].astype(dtype) + 0.5) * scale
    # v keeps as many bits as its dtype holds, so that it never rounds up to 1.
    kept = xp.finfo(dtype).nmant
    v = ((raw[1::2] >> raw.dtype.type(width - kept)).astype(dtype) + 0.5) * 2.0**-kept
    return u, v


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
