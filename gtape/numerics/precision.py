"""The dtype in which a computation on small floats is carried out."""

from types import ModuleType
from typing import Any

Array = Any


def working(xp: ModuleType, x: Array) -> Array:
    """x itself, or x in float32 where its own float is too short to compute in (float16)."""
    return x.astype(xp.float32) if is_short(x.dtype) else x


def is_short(dtype: Any) -> bool:
    """Whether `dtype` is a float of fewer than 32 bits (float16, bfloat16)."""
    return dtype.itemsize < 4 and dtype.kind in "fV"
