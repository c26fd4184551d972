"""Philox4x32-10: random words as a pure function of a key and a counter.

Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC'11).  Each
128-bit counter gives four uint32 words; different keys give independent streams.
"""

from types import ModuleType

import numpy as np

from .precision import Array

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
        key_a, key_c = (
            xp.uint64((word + turn * weyl) & MASK32) for word, weyl in zip(key, WEYL, strict=True)
        )
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
