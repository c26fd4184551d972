"""The dtype in which a computation on small floats is carried out."""

from types import ModuleType
from typing import TypeAlias

import numpy as np

#: An array of NumPy or of CuPy, which has NumPy's interface and no types, or the scalar that either
#: gives in place of one.
Array: TypeAlias = np.ndarray


def working(xp: ModuleType, x: Array) -> Array:
    """x itself, or x in float32 where its own float is too short to compute in (float16)."""
    return x.astype(xp.float32) if is_short(x.dtype) else x


def is_short(dtype: np.dtype) -> bool:
    """Whether `dtype` is a float of fewer than 32 bits (float16, bfloat16)."""
    return dtype.itemsize < 4 and dtype.kind in "fV"
