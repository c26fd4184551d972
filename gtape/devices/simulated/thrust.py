"""CuPy's module cupy.cuda.thrust by NumPy: sorts of device memory, in NumPy's order, NaN last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.devices.simulated.device_arrays import array, current_stream, later

available = True


def get_build_version() -> int:
    """The version of Thrust: none."""
    return 0



def _supported(dtype: Any) -> np.dtype:
    kind = np.dtype(dtype)
    if kind.char not in "bBhHiIlLqQefdFD?":
        raise NotImplementedError(f"Sorting arrays with dtype '{kind}' is not supported")
    return kind


def sort(dtype: Any, data_start: int, keys_start: int, shape: Sequence[int]) -> None:
    """Sort the rows of an array, along its last axis, where they lie."""
    kind = _supported(dtype)

    def run() -> None:
        # Stable: equal keys must give one order on every host, -0.0 and 0.0 too.
        array(data_start, shape, kind, written=True).sort(axis=-1, kind="stable")

    later(current_stream(), run)


def argsort(dtype: Any, idx_start: int, data_start: int, keys_start: int,
            shape: Sequence[int]) -> None:
    """Where the elements of sorted rows come from; the rows are sorted as well, as Thrust does."""
    kind = _supported(dtype)

    def run() -> None:
        data = array(data_start, shape, kind, written=True)
        order = np.argsort(data, axis=-1, kind="stable")
        array(idx_start, shape, np.dtype(np.int64), written=True)[...] = order
        data[...] = np.take_along_axis(data, order, -1)

    later(current_stream(), run)


def lexsort(dtype: Any, idx_start: int, keys_start: int, k: int, n: int) -> None:
    """The order of `n` elements by `k` keys, of which the last one counts first."""
    kind = np.dtype(dtype)
    if kind.char not in "bBhHiIlLqQefdFD?":
        # As CuPy's own lexsort, unlike its sort.
        raise TypeError(f"Sorting keys with dtype '{kind}' is not supported")

    def run() -> None:
        keys = array(keys_start, (k, n), kind)
        array(idx_start, (n,), np.dtype(np.int64), written=True)[...] = np.lexsort(keys)

    later(current_stream(), run)
