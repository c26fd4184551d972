"""Where arrays lie in their device's memory."""

from __future__ import annotations

from typing import Any

import numpy as np


def address(array: Any) -> int:
    """The address of an array's first element: CuPy's, or NumPy's under the emulator."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def overlap(a: Any, b: Any) -> bool:
    """Whether two arrays without gaps share memory."""
    first, second = address(a), address(b)
    return first < second + b.nbytes and second < first + a.nbytes
