"""Means of integers, exact though their sums may not fit into their dtype."""

from math import prod
from types import ModuleType

import numpy as np

from .precision import Array

_HALF = 2**32 - 1


def integer_mean(xp: ModuleType, x: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """The mean of x over `axes`, rounded towards zero; 0 for no elements.

    Numbers of 64 bits are added as their upper and their lower halves, each of which fits for less
    than 2^32 elements, and long division puts them together.
    """
    count = max(prod([x.shape[a] for a in axes]), 1)
    if _fits(xp, x, count):
        wide = np.uint64 if x.dtype.kind == "u" else np.int64
        sums = x.sum(axis=axes, keepdims=keepdims, dtype=wide)
        whole, rest = sums // wide(count), sums % wide(count)
    else:
        wide = x.dtype.type
        high = (x >> wide(32)).sum(axis=axes, keepdims=keepdims, dtype=wide)
        low = (x & wide(_HALF)).sum(axis=axes, keepdims=keepdims, dtype=wide)
        high += low >> wide(32)
        left = (high % wide(count)).astype(np.uint64) << np.uint64(32)
        left += (low & wide(_HALF)).astype(np.uint64)
        whole = (high // wide(count) << wide(32)) + (left // np.uint64(count)).astype(wide)
        rest = left % np.uint64(count)
    # Both quotients are rounded down.
    return xp.asarray(whole + ((whole < 0) & (rest != 0))).astype(x.dtype)


def _fits(xp: ModuleType, x: Array, count: int) -> bool:
    """Whether sums of `count` of the elements are known to fit into 64 bits."""
    if x.dtype.itemsize < 8 or not x.size:
        return True
    if xp is not np:  # looking would wait for the device
        return False
    return count * max(int(x.max()), -int(x.min())) < 2**63
