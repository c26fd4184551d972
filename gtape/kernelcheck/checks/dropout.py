"""Checks of kernels/dropout.cu."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import dropout as kernels
from gtape.devices.cuda.kernels.random_numbers import uniform
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn

KEY = (0xDEADBEEF, 7)
#: A counter whose lower half overflows within the draw.
OFFSET = 5 << 64 | 0xFFFFFFFFFFFFFFFF


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        for size in (0, 1, 3, 31, 33, 1001, 4096):
            for misaligned in (False, True):
                yield Check(f"dropout {dtype} [{size}]{' misaligned' * misaligned}",
                            partial(_dropout, dtype=dtype, size=size, misaligned=misaligned))


def _dropout(bench: Bench, dtype: str, size: int, misaligned: bool) -> None:
    values = drawn((size,), dtype=dtype)
    values[::7] = np.inf
    values[::5] = np.nan
    # Kept is what a float32 of the same stream says; that stream has checks of its own.
    unit = bench.host(uniform(bench.gpu, KEY, OFFSET, (size,), np.float32))
    for rate in (0.0, 0.25, 0.9):
        got = kernels.dropout(bench.gpu, bench.array(values, dtype, misaligned), KEY, OFFSET, rate)
        scale = np.float64(numpy_dtype(dtype).type(1 / (1 - rate)))
        kept = unit >= round(rate * 2**23) / 2**23
        bench.same(f"rate {rate}", got, np.where(kept, values * scale, 0.0))
