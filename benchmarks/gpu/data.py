"""Inputs that every peer gets alike, and where a sample of large results is looked at."""

from __future__ import annotations

from math import prod

import numpy as np

#: So many numbers are drawn; larger arrays repeat them. It is prime, so rows differ.
_DRAWN = 4_194_301


def numpy_type(name: str) -> np.dtype:
    """The NumPy dtype of this name, bfloat16 too, which needs ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def normal(
    shape: tuple[int, ...], seed: int, dtype: str = "float32", scale: float = 1.0
) -> np.ndarray:
    """Normal numbers of mean 0 and deviation `scale`."""
    count = prod(shape)
    drawn = np.random.default_rng(seed).standard_normal(min(count, _DRAWN), np.float32)
    drawn *= np.float32(scale)
    return np.resize(drawn.astype(numpy_type(dtype)), shape)


def some(length: int, count: int, seed: int = 0) -> list[int]:
    """At most `count` positions below `length`, in order, the first and the last among them."""
    inner = np.random.default_rng(seed).choice(length, min(count, length), replace=False)
    return sorted({0, length - 1, *inner.tolist()})
