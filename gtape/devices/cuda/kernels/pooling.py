"""Max and average pooling and their gradients, channels last, over 1 to 3 spatial axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.window_axes import Axes, Sizes, axes
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.numerics.windows import Pads

if TYPE_CHECKING:
    from gtape.core.device import Array

#: What has a largest value.
ORDERED = (*FLOATS, "int32", "int64")
_BLOCK = 256


def instances() -> Iterator[Kernel]:
    for dtype in ORDERED:
        yield shipped_kernel("max_pooling.cu", "max_pool", dtype)
    for dtype in FLOATS:
        for name in ("max_pool_grad", "max_pool_pick", "max_pool_index"):
            yield shipped_kernel("max_pooling.cu", name, dtype)
        for name in ("average_pool", "average_pool_grad"):
            yield shipped_kernel("average_pooling.cu", name, dtype)


def max_pool(gpu: Executor, x: Any, size: Sizes, strides: Sizes, dilations: Sizes,
             pads: Pads) -> Any:
    """The largest value of each window of x [N, *in, C]; padding never wins, a nan always does.

    Returns:
        [N, *out, C], or None for a dtype that is not in ORDERED.
    """
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in ORDERED:
        return None
    y = gpu.empty(_outputs(x.shape, over), x.dtype)
    _launch(gpu, "max_pooling.cu", "max_pool", (x, y), x.shape, over, y)
    return y


def max_pool_grad(gpu: Executor, a: object, x: Any, y: object, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Any:
    """a [N, *out, C] added where the winner of each window of x lies; y is the pooled x.

    Returns:
        An array like x, or None for a dtype that is not in FLOATS.
    """
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in FLOATS:
        return None
    dx = gpu.empty(x.shape, x.dtype)
    _launch(gpu, "max_pooling.cu", "max_pool_grad", (a, x, y, dx), x.shape, over, dx)
    return dx


def max_pool_pick(gpu: Executor, a: Array, x: Array, y: Array, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Any:
    """The values of a [N, *in, C] where the winners of the windows of x lie.

    Returns:
        An array like y, or None for a dtype that is not in FLOATS.
    """
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in FLOATS:
        return None
    b = gpu.empty(y.shape, y.dtype)
    _launch(gpu, "max_pooling.cu", "max_pool_pick", (a, x, y, b), x.shape, over, b)
    return b


def max_pool_index(gpu: Executor, x: Array, y: Array, size: Sizes, strides: Sizes, dilations: Sizes,
                   pads: Pads, batch: bool) -> Any:
    """Where the winners lie in each flattened image, or in the whole batch where `batch` holds.

    Returns:
        int64, of the shape of y, or None for a dtype that is not in FLOATS.
    """
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in FLOATS:
        return None
    index = gpu.empty(y.shape, np.dtype(np.int64))
    _launch(gpu, "max_pooling.cu", "max_pool_index", (x, y, index), x.shape, over, index,
            int(batch))
    return index


def average_pool(gpu: Executor, x: Array, size: Sizes, strides: Sizes, dilations: Sizes,
                 pads: Pads) -> Any:
    """The mean of each window of x [N, *in, C] over the cells that are not padding.

    Returns:
        [N, *out, C], or None for a dtype that is not in FLOATS.
    """
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in FLOATS:
        return None
    y = gpu.empty(_outputs(x.shape, over), x.dtype)
    _launch(gpu, "average_pooling.cu", "average_pool", (x, y), x.shape, over, y)
    return y


def average_pool_grad(gpu: Executor, a: Array, shape: Sizes, size: Sizes, strides: Sizes,
                      dilations: Sizes, pads: Pads) -> Any:
    """The adjoint of `average_pool`: a [N, *out, C] to `shape` [N, *in, C].

    Returns:
        An array of `shape`, or None for a dtype that is not in FLOATS.
    """
    over = axes(shape[1:-1], size, strides, dilations, pads)
    if over is None or dtype_name(a.dtype) not in FLOATS:
        return None
    dx = gpu.empty(tuple(shape), a.dtype)
    _launch(gpu, "average_pooling.cu", "average_pool_grad", (a, dx), shape, over, dx)
    return dx


def _outputs(shape: Sizes, over: Axes) -> tuple[int, ...]:
    rank = len(shape) - 2
    return (shape[0], *over.outs[3 - rank:], shape[-1])


def _launch(gpu: Executor, file: str, name: str, arrays: tuple[Any, ...], shape: Sizes,
            over: Axes, out: Array, *more: int) -> None:
    """Launch over the items of `out`, the last of `arrays`."""
    if not out.size:
        return
    dtype = arrays[0].dtype
    pieces = out.size * dtype.itemsize // 16 if shape[-1] * dtype.itemsize % 16 == 0 else out.size
    inputs = [gpu.contiguous(a) for a in arrays[:-1]]
    gpu.launch(shipped_kernel(file, name, dtype_name(dtype)), gpu.blocks(pieces, _BLOCK, 32),
               (_BLOCK, 1, 1),
               (*inputs, out, math.prod(shape[:1]), shape[-1], *over.numbers, *more))
