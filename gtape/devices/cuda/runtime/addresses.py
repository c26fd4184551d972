"""Where arrays lie in their device's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gtape.core.device import Array


def address(array: Any) -> int:
    """The address of an array's first element: CuPy's, or NumPy's under the emulator."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def span(array: Any) -> tuple[int, int]:
    """The addresses at which an array without gaps begins and ends; a view that repeats or leaves
    out elements may end elsewhere."""
    start = address(array)
    return start, start + array.nbytes


def overlap(a: Array, b: Array) -> bool:
    """Whether the memory between the first and last elements of two arrays overlaps."""
    if not a.size or not b.size:
        return False
    (start, end), (first, last) = _extent(a), _extent(b)
    return start < last and first < end


def _extent(array: Array) -> tuple[int, int]:
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    start = address(array)
    return (start + sum(s for s in steps if s < 0),
            start + sum(s for s in steps if s > 0) + array.dtype.itemsize)
