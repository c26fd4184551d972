"""Every cast between dtypes of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtape.core.dtypes import FLOATS, as_dtype
from gtape.devices.cuda.kernels.casting import cast, instances
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check
from gtape.opdef.cuda_text import C_TYPES


def checks() -> Iterator[Check]:
    combined = list(instances())
    assert len(combined) == len(C_TYPES) * (len(C_TYPES) - 1)
    for source in C_TYPES:
        yield Check(f"casts of {source}", partial(_check, source=source))


def _check(bench: Bench, source: str) -> None:
    unsigned = source == "bool" or source.startswith("uint")
    values = np.arange(0 if unsigned else -40, 61) * (0.75 if source in FLOATS else 1)
    host = values.astype(numpy_dtype(source))
    for dtype in C_TYPES:
        fits = host if source in ("bool", dtype) or not dtype.startswith("uint") else abs(host)
        wanted = fits.astype(numpy_dtype(dtype))
        for misaligned in (False, True):
            got = cast(bench.gpu, bench.array(fits, source, misaligned), as_dtype(dtype))
            exact = wanted.astype(np.float64) if dtype in FLOATS else wanted
            bench.same(f"{source} to {dtype}", got, exact, 0.0)
