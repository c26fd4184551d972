"""Results: the arrays that a program fills. Memory of large ones is used again.

Memory that is new from the operating system has to be cleared page by page, which costs more than
most programs take to fill it. So the last arrays of a large result are kept, and given again once
nobody else holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from sys import getrefcount

import numpy as np

from gtape.core.device import CPU

#: Bytes from which on a result's arrays are kept for later calls.
#: Filling 64 MiB takes 17 ms where the memory is new and 9 where it was used before; smaller arrays
#: mostly lie in memory that the process has kept anyway.
_LARGE = 1 << 20
#: Arrays kept for one result: in `y = f(x)` the last y is still held while the next is made.
_KEPT = 2


def _references(kept: list[object]) -> int:
    held = kept.pop(0)
    return getrefcount(held)


#: What `getrefcount` gives for what one local name holds, which depends on Python's version.
_ALONE = _references([object()])


class Result:
    """One result of a program; `make()` gives the array for a call."""

    __slots__ = ("_kept", "array_type", "dtype", "empty", "large", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype,
                 empty: Callable[..., np.ndarray] = np.empty) -> None:
        self.empty = empty
        self.shape = shape
        self.dtype = dtype
        self.array_type = CPU.type_of(dtype)
        self.large = prod(shape) * dtype.itemsize >= _LARGE
        self._kept: list[np.ndarray] = []

    def make(self) -> np.ndarray:
        """An array that nothing refers to: no tensor, no view, no export, no other thread."""
        kept = self._kept
        for _ in range(len(kept)):
            try:
                held = kept.pop(0)  # in one step: no other thread can take it too
            except IndexError:
                break
            alone = getrefcount(held) == _ALONE
            kept.append(held)
            if alone:
                return held
        array = self.empty(self.shape, self.dtype)
        if self.large:
            kept.append(array)
            del kept[:-_KEPT]
        return array
