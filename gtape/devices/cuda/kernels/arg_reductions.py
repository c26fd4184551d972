"""Host functions of `kernels/arg_reduce.cu`: positions of the largest and smallest elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import DType
from gtape.devices.cuda.kernels.reduction_geometry import Form, columns, plan
from gtape.devices.cuda.kernels.reductions import SERVED, kernel_dtypes, read_as, running
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

#: Bytes of an element's value with its index: Indexed<A> of the kernels.
_PAIR = 16


@cache
def kernel_of(template: str, operation: str, dtype: str) -> Kernel:
    """The kernel that reads an array of `dtype`."""
    return shipped_kernel("arg_reduce.cu", f"arg_{template}", operation, dtype, _width(dtype))


@cache
def finishing(operation: str, dtype: str) -> Kernel:
    """The kernel that reads the pairs that `kernel_of` wrote for parts of an axis."""
    return shipped_kernel("arg_reduce.cu", "arg_finish", operation, running(dtype))


def instances() -> Iterator[Kernel]:
    """Every kernel that these functions can launch."""
    for operation in ("Max", "Min"):
        dtypes = kernel_dtypes(operation)
        for dtype in dtypes:
            yield kernel_of("rows", operation, dtype)
            yield kernel_of("columns", operation, dtype)
        for dtype in dict.fromkeys(running(d) for d in dtypes):
            yield finishing(operation, dtype)


def arg_extreme(gpu: Executor, x: Any, axis: int, largest: bool, dtype: DType) -> Any:
    """The position of the first largest or smallest element along `axis`, which is not empty; a nan
    is both. None where no kernel serves: `dtype`, that of the result, is int32 or int64.
    """
    operation = "Max" if largest else "Min"
    if dtype_name(x.dtype) not in SERVED[operation] or dtype.name not in ("int32", "int64"):
        return None
    shape = x.shape
    form = Form(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
    result = (*shape[:axis], *shape[axis + 1:])
    positions = gpu.empty(result, np.dtype(dtype.name))
    if positions.size:
        name = read_as(operation, dtype_name(x.dtype))
        array = x if name == dtype_name(x.dtype) else x.view(name)
        _launch(gpu, operation, gpu.contiguous(array), form, positions)
    return positions


def _launch(gpu: Executor, operation: str, x: Array, form: Form, positions: Array) -> None:
    source = dtype_name(x.dtype)
    bytes_of = positions.dtype.itemsize
    first = plan(*form, 16 // _width(source), gpu, _PAIR).first
    cut = first.parts > 1
    out = gpu.empty((first.results * _PAIR,), np.dtype(np.uint8)) if cut else positions
    gpu.launch(kernel_of(first.template, operation, source), first.grid, first.block,
               (x, out, *first.sizes, 0 if cut else bytes_of))
    if cut:
        rest = Form(form.outer, first.parts, form.inner)
        second = columns(rest, 1, gpu.multiprocessors, False)
        gpu.launch(finishing(operation, source), second.grid, second.block,
                   (out, positions, *rest, second.lanes, form.reduced, bytes_of))


def _width(dtype: str) -> int:
    """How many elements a thread loads at once: 16 bytes of them, but four of one byte, since
    sixteen pairs of value and index would not fit into its registers."""
    size = numpy_dtype(dtype).itemsize
    return 4 if size == 1 else 16 // size
