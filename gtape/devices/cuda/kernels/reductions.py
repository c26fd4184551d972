"""Host functions of `kernels/reduce.cu`, `arg_reduce.cu` and `variance.cu`: sums, means, products,
extremes, their positions, and variances over axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import FLOATS, DType
from gtape.devices.cuda.kernels.reduction_geometry import Form, Stage, columns, plan, steps
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.opdef.numpy_code import axes_to_sum, stretches

if TYPE_CHECKING:
    from gtape.core.device import Array

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
    for operation in SERVED:
        dtypes = kernel_dtypes(operation)
        for dtype in dtypes:
            for source in dict.fromkeys((dtype, running(dtype))):
                for template in ("rows", "columns"):
                    yield kernel_of(template, operation, source, dtype)
        if operation in ("Max", "Min"):
            for dtype in dtypes:
                yield _arg_kernel("rows", operation, dtype)
                yield _arg_kernel("columns", operation, dtype)
            for dtype in dict.fromkeys(map(running, dtypes)):
                yield _arg_finish(operation, dtype)
    for dtype in FLOATS:
        for template in ("rows", "columns"):
            yield _variance_kernel(template, dtype)
        yield _variance_finish(dtype)


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
    shape = x.shape
    result = _shape_without(shape, axis, keepdims)
    if 0 in shape:
        return gpu.xp.full(result, _of_none(operation, dtype, count), x.dtype)
    name = read_as(operation, dtype)
    x, axes, order = _in_memory_order(gpu, x if name == dtype else x.view(name), axis)
    reduced = x
    # Between steps the accumulator's dtype is kept, so that the result is rounded once, at the end.
    forms = steps(x.shape, axes)
    for form in forms:
        reduced = _step(gpu, operation, name, reduced, form, count if form is forms[-1] else 0)
    reduced = reduced if name == dtype else reduced.view(dtype)
    if order is None:
        return reduced.reshape(result)
    laid = reduced.reshape([1 if i in axis else shape[i] for i in order])
    back = [order.index(i) for i in range(len(order))]
    return gpu.contiguous(gpu.xp.transpose(laid, back)).reshape(result)


def _shape_without(shape: Axes, axis: Axes, keepdims: bool) -> Axes:
    if keepdims:
        return tuple([1 if i in axis else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axis])


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
    """x as a C-contiguous array, the axes to reduce in it, and where its axes were in x. A
    transposed array is reduced as it lies in memory, without a copy; its order is then not None."""
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


# ---------------------------------------------------------------- positions of extremes
def arg_extreme(gpu: Executor, x: Any, axis: int, largest: bool, dtype: DType) -> Any:
    """The position of the first largest or smallest element along `axis`, which is not empty; a nan
    is both. None where no kernel serves: `dtype`, that of the result, is int32 or int64."""
    operation, source = "Max" if largest else "Min", dtype_name(x.dtype)
    if source not in SERVED[operation] or dtype.name not in ("int32", "int64"):
        return None
    shape = x.shape
    form = Form(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
    positions = gpu.empty((*shape[:axis], *shape[axis + 1:]), np.dtype(dtype.name))
    if not positions.size:
        return positions
    name = read_as(operation, source)
    array = gpu.contiguous(x if name == source else x.view(name))
    size = positions.dtype.itemsize
    first = plan(*form, 16 // _arg_width(name), gpu, _PAIR).first
    cut = first.parts > 1
    out = gpu.empty((first.results * _PAIR,), np.dtype(np.uint8)) if cut else positions
    gpu.launch(_arg_kernel(first.template, operation, name), first.grid, first.block,
               (array, out, *first.sizes, 0 if cut else size))
    if cut:
        rest = Form(form.outer, first.parts, form.inner)
        second = columns(rest, 1, gpu.multiprocessors, False)
        gpu.launch(_arg_finish(operation, name), second.grid, second.block,
                   (out, positions, *rest, second.lanes, form.reduced, size))
    return positions


#: Bytes of an element's value with its index: Indexed<A> of the kernels.
_PAIR = 16


@cache
def _arg_kernel(template: str, operation: str, dtype: str) -> Kernel:
    """The kernel that reads an array of `dtype`."""
    return shipped_kernel("arg_reduce.cu", f"arg_{template}", operation, dtype, _arg_width(dtype))


@cache
def _arg_finish(operation: str, dtype: str) -> Kernel:
    """The kernel that reads the pairs that `_arg_kernel` wrote for parts of an axis."""
    return shipped_kernel("arg_reduce.cu", "arg_finish", operation, running(dtype))


def _arg_width(dtype: str) -> int:
    """How many elements a thread loads at once: 16 bytes of them, but four of one byte, since
    sixteen pairs of value and index would not fit into its registers."""
    size = numpy_dtype(dtype).itemsize
    return 4 if size == 1 else 16 // size


# ---------------------------------------------------------------- variances
def variance(gpu: Executor, x: Any, axis: Axes, keepdims: bool = False) -> Any:
    """Σ (x - mean)² / n over `axis`, nan for no elements; None where x is not of real floats. x is
    read once. Two-byte floats are computed in float32."""
    dtype = dtype_name(x.dtype)
    if dtype not in FLOATS:
        return None
    result = _shape_without(x.shape, axis, keepdims)
    if 0 in x.shape:
        return gpu.xp.full(result, np.nan, x.dtype)
    launches = _variance_launches(gpu, x, steps(x.shape, axis))
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


def _variance_launches(gpu: Executor, x: Array, forms: tuple[Form, ...],
                       ) -> list[tuple[Kernel, Stage]]:
    """The first reads x; each other one, by columns of moments, what the one before made."""
    dtype = dtype_name(x.dtype)
    first = plan(*forms[0], x.dtype.itemsize, gpu).first
    rest = list(forms[1:])
    if first.parts > 1:
        rest.insert(0, Form(forms[0].outer, first.parts, forms[0].inner))
    return [(_variance_kernel(first.template, dtype), first),
            *((_variance_finish(dtype), columns(form, 1, gpu.multiprocessors, False))
              for form in rest)]


def _variance_kernel(template: str, dtype: str) -> Kernel:
    """The kernel that reads an array of `dtype`."""
    width = 16 // numpy_dtype(dtype).itemsize
    return shipped_kernel("variance.cu", f"variance_{template}", dtype, width)


def _variance_finish(dtype: str) -> Kernel:
    """The kernel that reads moments and whose variances are of `dtype`."""
    return shipped_kernel("variance.cu", "variance_finish", dtype)
