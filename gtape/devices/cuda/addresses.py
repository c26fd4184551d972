"""Where arrays lie in their device's memory."""

from __future__ import annotations

from typing import Any

import numpy as np


def address(array: Any) -> int:
    """The address of an array's first element: CuPy's, or NumPy's under the emulator."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def span(array: Any) -> tuple[int, int]:
    """The addresses at which an array without gaps begins and ends."""
    start = address(array)
    return start, start + array.nbytes
