"""Matrices on which kernels that work row by row are checked: every way to hold a row."""

from __future__ import annotations

import numpy as np

from gtape.devices.cuda.kernels.row_geometry import RowValues, shared_bytes
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.kernelcheck.checks.bench import drawn

#: Short rows, some of them not filling the 16 bytes that a thread moves at once.
SMALL = ((0, 5), (5, 0), (1, 1), (37, 3), (5, 31), (9, 33), (6, 64), (3, 104), (2, 250))


def shapes(gpu: Executor, dtype: str, values: dict[int, RowValues]) -> tuple[tuple[int, int], ...]:
    """SMALL and the shapes around the limits of each way to hold a row of `dtype`, the last of
    them beyond what shared memory holds."""
    size = numpy_dtype(dtype).itemsize
    short, long, shared, stream = values[size]
    return (*SMALL, (3, 32 * short), (2, 32 * long), (3, 32 * long + 8), (2, 128 * long + 1),
            (2, 256 * long), (2, 256 * long + 8), (1, 256 * long + 1),
            (gpu.multiprocessors + 1, 256 * long + 8), (1, 3 * 1024 * shared - 8),
            (1, 2 * 1024 * stream + 1), (1, shared_bytes(gpu) // size + 8),
            (1, shared_bytes(gpu) // size + 1))


def scores(shape: tuple[int, int], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of which every second row grows: its largest element so far is always the last."""
    values = drawn(shape, seed, -20.0, 20.0, dtype)
    values[1::2] = np.sort(values[1::2], axis=1)
    return values


def extremes(dtype: str, cols: int) -> np.ndarray:
    """Rows with nan, with +inf, with both, with some -inf, of -inf alone, and an ordinary one."""
    values = drawn((6, cols), 1, dtype=dtype)
    values[0, cols // 2] = np.nan
    values[1, 1] = np.inf
    values[2, 0], values[2, -1] = np.inf, np.nan
    values[3, ::2] = -np.inf
    values[4] = -np.inf
    return values
