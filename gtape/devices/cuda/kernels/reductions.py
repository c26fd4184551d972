"""Host functions of `kernels/reduce.cu`: sums, means, products and extremes over axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.reduction_geometry import Form, Stage, plan, steps
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.opdef.numpy_code import axes_to_sum, stretches

Axes = tuple[int, ...]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
#: What an operation of `kernels/reduce_types.cuh` gives over no elements; extremes give the dtype's
#: own limits.
_IDENTITY = {"Sum": 0, "Prod": 1}
#: The dtypes that each operation serves.
SERVED = {"Sum": FLOATS + _SIGNED + _UNSIGNED, "Prod": FLOATS + _SIGNED + _UNSIGNED,
          "Max": (*FLOATS, *_SIGNED, *_UNSIGNED, "bool"),
          "Min": (*FLOATS, *_SIGNED, *_UNSIGNED, "bool")}


def read_as(operation: str, dtype: str) -> str:
    """The dtype with the same bits that the kernels read `dtype` as: bools as bytes, and integers
    that wrap around as unsigned ones."""
    if dtype == "bool":
        return "uint8"
    return f"u{dtype}" if operation in _IDENTITY and dtype in _SIGNED else dtype


def running(dtype: str) -> str:
    """The dtype in which kernels that read `dtype` accumulate: `running_t`."""
    if dtype in ("float16", "bfloat16"):
        return "float32"
    if dtype in ("int8", "int16"):
        return "int32"
    return "uint32" if dtype in ("uint8", "uint16") else dtype


def kernel_dtypes(operation: str) -> tuple[str, ...]:
    """The dtypes that the kernels of an operation read."""
    return tuple(dict.fromkeys(read_as(operation, dtype) for dtype in SERVED[operation]))


@cache
def kernel_of(template: str, operation: str, source: str, dtype: str) -> Kernel:
    """The kernel that reduces an array of `source`, which is `dtype` or its accumulator."""
    width = 16 // numpy_dtype(source).itemsize
    return shipped_kernel("reduce.cu", f"reduce_{template}_kernel", operation, source, dtype, width)


def instances() -> Iterator[Kernel]:
    """Every kernel that these functions can launch."""
    for operation in SERVED:
        for dtype in kernel_dtypes(operation):
            for source in dict.fromkeys((dtype, running(dtype))):
                for template in ("rows", "columns"):
                    yield kernel_of(template, operation, source, dtype)


def mean(gpu: Executor, x: Any, axis: Axes, keepdims: bool = False) -> Any:
    """Σ x / n over `axis`, nan for no elements; None for other than real floats, whose sum may not
    fit into their dtype."""
    if dtype_name(x.dtype) not in FLOATS:
        return None
    return reduce(gpu, x, "Sum", axis, keepdims, math.prod(x.shape[a] for a in axis))


def sum_to(gpu: Executor, x: Any, shape: Axes) -> Any:
    """x summed over the axes along which an array of `shape` was broadcast to it; None where
    `reduce` serves no sum, or there is nothing to sum."""
    if stretches(x.shape, shape):
        return None
    axes, _ = axes_to_sum(x.shape, shape)
    summed = reduce(gpu, x, "Sum", axes) if axes else None
    return None if summed is None else summed.reshape(shape)


def reduce(gpu: Executor, x: Any, operation: str, axis: Axes, keepdims: bool = False,
           count: int = 1) -> Any:
    """`operation` ("Sum", "Prod", "Max", "Min") over `axis` of x, divided by `count`; None where
    `SERVED` does not list the dtype.

    Two-byte floats accumulate in float32, and sums and products of integers wrap around. An
    extreme is nan where there is a nan; the largest bool tells whether any is true, the smallest
    whether all are. Without elements: 0, 1, the lowest, and the highest value of the dtype.

    Args:
        x: an array of any layout.
        axis: distinct, not negative.
        count: 1 but for means of floats, where it is the number of elements.
    """
    dtype = dtype_name(x.dtype)
    if dtype not in SERVED[operation]:
        return None
    shape = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    result = shape if keepdims else tuple([n for i, n in enumerate(x.shape) if i not in axis])
    if 0 in x.shape:
        return gpu.xp.full(result, _of_none(operation, dtype, count), x.dtype)
    name = read_as(operation, dtype)
    x, axes, order = _in_memory_order(gpu, x if name == dtype else x.view(name), axis)
    reduced = x
    forms = steps(x.shape, axes)
    for form in forms:
        reduced = _step(gpu, operation, name, reduced, form, count if form is forms[-1] else 0)
    reduced = reduced if name == dtype else reduced.view(dtype)
    if order is None:
        return reduced.reshape(result)
    laid = reduced.reshape([shape[i] for i in order])
    back = [order.index(i) for i in range(len(order))]
    return gpu.contiguous(gpu.xp.transpose(laid, back)).reshape(result)


def _of_none(operation: str, dtype: str, count: int) -> Any:
    """The result over no elements; `count` is 0 for a mean."""
    if operation in _IDENTITY:
        return _IDENTITY[operation] if count else np.nan
    if dtype == "bool":
        return operation == "Min"
    if dtype in FLOATS:
        return np.inf if operation == "Min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if operation == "Min" else limits.min


def _in_memory_order(gpu: Executor, x: Any, axes: Axes) -> tuple[object, Axes, list[int] | None]:
    """x as a C-contiguous array, the axes to reduce in it, and where its axes were in x.

    A transposed array is reduced as it lies in memory, without a copy; its order is then not None.
    """
    if x.flags.c_contiguous:
        return x, axes, None
    order = sorted(range(x.ndim), key=lambda i: -x.strides[i])
    # Only a view: the axes in the order of their strides.
    laid = gpu.xp.transpose(x, order)
    if laid.flags.c_contiguous:
        return laid, tuple([k for k, i in enumerate(order) if i in axes]), order
    return gpu.contiguous(x), axes, None


def _step(gpu: Executor, operation: str, dtype: str, x: Any, form: Form, count: int) -> Any:
    """The launches of one form. The result is of `dtype`, or where `count` is 0 of its
    accumulator."""
    wide = numpy_dtype(running(dtype)).itemsize
    first, second = plan(*form, x.dtype.itemsize, gpu, wide)
    if second is None:
        return launch_stage(gpu, operation, dtype, x, first, count)
    partial = launch_stage(gpu, operation, dtype, x, first, 0)
    return launch_stage(gpu, operation, dtype, partial, second, count)


def launch_stage(gpu: Executor, operation: str, dtype: str, x: Any, stage: Stage,
                 count: int) -> Any:
    """One launch: x is of `dtype` or of its accumulator, the result of `dtype`, divided by
    `count`, or where `count` is 0 of the accumulator."""
    out = gpu.empty((stage.results,), numpy_dtype(dtype if count else running(dtype)))
    kernel = kernel_of(stage.template, operation, dtype_name(x.dtype), dtype)
    gpu.launch(kernel, stage.grid, stage.block, (x, out, *stage.sizes, count))
    return out
