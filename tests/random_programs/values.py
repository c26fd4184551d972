"""What programs compute with: dtypes, shapes that nobody would choose, and numbers."""

from __future__ import annotations

import math
import random

import ml_dtypes
import numpy as np

HALVES = ("float16", "bfloat16")
FLOATS = ("float32", "float64", *HALVES)
SIGNED = ("int32", "int64")
INTEGERS = (*SIGNED, "uint8")
COMPLEX = ("complex64", "complex128")
NUMBERS = (*FLOATS, *INTEGERS, *COMPLEX)
DTYPES = (*NUMBERS, "bool")

#: What a value's numbers are: continuous, small multiples of 1/2 (ties, and sums without
#: rounding), or what is at the edges of a type.
KINDS = ("smooth", "exact", "special")

#: 0, 1, primes, 2^k and its neighbours, and channels that are no multiple of a vector.
_LENGTHS = (1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 10, 13, 15, 16, 17, 31, 33)
_LONG = (63, 64, 65, 127, 129, 255, 257, 1023, 1025, 4099, 16385, 70001)
#: No sum of the large ones overflows unless its result does, so that its order does not matter.
_SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-3, 300.0,
            70000.0, 1e-5, 1e-40, -1e-40, 1e30, -3e30)


def numpy_dtype(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number of a float or complex type; 0 for others."""
    if dtype == "bfloat16":
        return 2.0 ** -7
    kind = np.dtype(dtype)
    return float(np.finfo(kind).eps) if kind.kind in "fc" else 0.0


def shape(rng: random.Random, most: int = 2048, ranks: tuple[int, ...] = (0, 1, 1, 2, 2, 3, 4),
          ) -> tuple[int, ...]:
    """A shape of at most `most` elements."""
    while True:
        rank = rng.choice(ranks)
        made = [length(rng) for _ in range(rank)]
        if rank and rng.random() < 0.08:
            made[rng.randrange(rank)] = rng.choice(_LONG)
        if rank and rng.random() < 0.03:
            made[rng.randrange(rank)] = 0
        if math.prod(made) <= most or (rank == 1 and rng.random() < 0.3):
            return tuple(made)


def length(rng: random.Random) -> int:
    return rng.choice(_LENGTHS)


def partner(rng: random.Random, other: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with `other`: lengths of 1 in every position, axes left out."""
    if rng.random() < 0.4:
        return other
    made = [1 if rng.random() < 0.3 else n for n in other]
    return tuple(made[rng.randrange(len(made) + 1):] if rng.random() < 0.4 else made)


def array(given: tuple[int, ...], dtype: str, kind: str, seed: int, limit: int = 0) -> np.ndarray:
    """Numbers of a dtype; integers below `limit`, from 0, where one is given."""
    rng = np.random.default_rng(seed)
    if limit:
        return rng.integers(0, limit, given).astype(dtype)
    if dtype == "bool":
        return np.asarray(rng.random(given) < 0.5)
    if dtype in INTEGERS:
        low, high = (0, 251) if dtype == "uint8" else (-9, 10)
        return rng.integers(low, high, given).astype(dtype)
    if dtype in COMPLEX:
        made = np.empty(given, np.complex128)
        made.real, made.imag = _floats(rng, given, kind), _floats(rng, given, kind)
        return made.astype(dtype)
    with np.errstate(over="ignore"):
        return np.asarray(_floats(rng, given, kind)).astype(numpy_dtype(dtype))


def _floats(rng: np.random.Generator, given: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "exact":
        return np.asarray(rng.integers(-4, 5, given) * 0.5)
    made = np.asarray(rng.normal(size=given))
    if kind == "special":
        return np.where(rng.random(given) < 0.4, rng.choice(_SPECIAL, given), made)
    return made


def is_short(given: np.ndarray) -> np.ndarray:
    """Where numbers are small multiples of 1/256, which ops most likely do not round."""
    with np.errstate(all="ignore"):
        scaled = given * 256.0
        return (scaled == np.rint(scaled)) & (np.abs(scaled) < 65536.0)
