"""What all algorithms share: the array type, the dtype that small floats are computed in, and the
cutting of work along its first axis so that temporaries stay small."""

from collections.abc import Iterator
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


#: A small part of any card's memory, in as few launches as that allows.
DEVICE_LIMIT = 1 << 30


def blocks(xp: ModuleType, count: int, bytes_each: int, host_limit: int) -> Iterator[slice]:
    """Slices of `count` rows, of which each slice needs at most `host_limit` bytes on the host,
    or DEVICE_LIMIT on a device, where a launch costs more than a cache miss."""
    limit = host_limit if xp.__name__ == "numpy" else DEVICE_LIMIT
    step = max(limit // max(bytes_each, 1), 1)
    for start in range(0, count, step):
        yield slice(start, start + step)
