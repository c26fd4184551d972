"""dropout in one launch, its random words drawn where they are used and never stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gtape.devices.cuda.kernels.random_numbers import FLOATS, Key, counter, threshold
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

_BLOCK = 256


def instances() -> Iterator[Kernel]:
    for dtype in FLOATS:
        yield shipped_kernel("dropout.cu", "dropout", dtype)


def dropout(gpu: Executor, x: Any, key: Key, offset: int, rate: float) -> Any:
    """0 with probability `rate`, else x / (1 - rate).

    The choice is that of `bernoulli(key, offset, x.shape, 1 - rate)`. The gradient of x is the same
    function of the gradient of y.

    Args:
        rate: in [0, 1].

    Returns:
        An array like x, or None for another dtype than those of FLOATS.
    """
    dtype = dtype_name(x.dtype)
    if dtype not in FLOATS:
        return None
    x = gpu.contiguous(x)
    y = gpu.empty(x.shape, x.dtype)
    share = 1 - rate
    # Rounded to the dtype, so that both backends multiply by the same number.
    scale = float(x.dtype.type(1 / share if share else 0.0))
    per_thread = max(16 // x.dtype.itemsize, 4)
    if x.size:
        gpu.launch(shipped_kernel("dropout.cu", "dropout", dtype),
                   gpu.blocks(x.size, _BLOCK * per_thread), (_BLOCK, 1, 1),
                   (x, y, x.size, *counter(key, offset), threshold(share), scale))
    return y
