"""The host function of `kernels/variance.cu`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.reduction_geometry import Form, Stage, columns, plan, steps
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

Axes = tuple[int, ...]


def kernel_of(template: str, dtype: str) -> Kernel:
    """The kernel that reads an array of `dtype`."""
    width = 16 // numpy_dtype(dtype).itemsize
    return shipped_kernel("variance.cu", f"variance_{template}", dtype, width)


def finishing(dtype: str) -> Kernel:
    """The kernel that reads moments and whose variances are of `dtype`."""
    return shipped_kernel("variance.cu", "variance_finish", dtype)


def instances() -> Iterator[Kernel]:
    """Every kernel that `variance` can launch."""
    for dtype in FLOATS:
        yield from (kernel_of("rows", dtype), kernel_of("columns", dtype), finishing(dtype))


def variance(gpu: Executor, x: Array, axis: Axes, keepdims: bool = False) -> Any:
    """Σ (x - mean)² / n over `axis`, nan for no elements; None where x is not of real floats.

    x is read once. Two-byte floats are computed in float32.
    """
    dtype = dtype_name(x.dtype)
    if dtype not in FLOATS:
        return None
    kept = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    result = kept if keepdims else tuple([n for i, n in enumerate(x.shape) if i not in axis])
    if 0 in x.shape:
        return gpu.xp.full(result, np.nan, x.dtype)
    launches = _launches(gpu, x, steps(x.shape, axis))
    count = math.prod(x.shape[a] for a in axis)
    # Count, mean and squares about the mean of a part: what can be merged without cancellation.
    moments = 3 * (8 if dtype == "float64" else 4)
    array = gpu.contiguous(x)
    for k, (kernel, stage) in enumerate(launches):
        last = k == len(launches) - 1
        out = (gpu.empty((stage.results,), x.dtype) if last
               else gpu.empty((stage.results * moments,), np.dtype(np.uint8)))
        gpu.launch(kernel, stage.grid, stage.block,
                   (array, out, *stage.sizes, count if last else 0))
        array = out
    return array.reshape(result)


def _launches(gpu: Executor, x: Array, forms: tuple[Form, ...]) -> list[tuple[Kernel, Stage]]:
    """The first reads x; each other one, by columns of moments, what the one before made."""
    dtype = dtype_name(x.dtype)
    first = plan(*forms[0], x.dtype.itemsize, gpu).first
    rest = list(forms[1:])
    if first.parts > 1:
        rest.insert(0, Form(forms[0].outer, first.parts, forms[0].inner))
    launches = [(kernel_of(first.template, dtype), first)]
    launches += [(finishing(dtype), columns(form, 1, gpu.multiprocessors, False)) for form in rest]
    return launches
