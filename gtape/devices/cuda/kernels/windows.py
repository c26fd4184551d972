"""Pooling, convolution and their gradients, channels last, over 1 to 3 spatial axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.gemm import contractions
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.numerics.windows import Pads, out_sizes
from gtape.opdef.cuda_text import compute_dtype

if TYPE_CHECKING:
    from gtape.core.device import Array

Sizes = Sequence[int]


class Axes(NamedTuple):
    """Three spatial axes, the missing ones first, of size 1."""

    ins: tuple[int, ...]
    outs: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments of a kernel, in its order."""
        return tuple(n for axes in self for n in axes)


def axes(ins: Sizes, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> Axes | None:
    """The axes of windows over `ins`; None where an index within one does not fit 32 bits."""
    outs = out_sizes(ins, size, strides, dilations, pads)
    windows = Axes(*(_three(part, fill) for part, fill in (
        (ins, 1), (outs, 1), (size, 1), (strides, 1), (dilations, 1),
        ([before for before, _ in pads], 0))))
    # Kernels compute places within an image in 32 bits, which GPUs divide and multiply faster than
    # 64.
    reach = max(n + sum(pair) for n, pair in zip(ins, pads)) if ins else 0
    reach = max(reach, *windows.strides, *windows.dilations, *windows.size)
    return windows if reach < 1 << 30 else None


def _three(values: Sizes, fill: int) -> tuple[int, ...]:
    return (fill,) * (3 - len(values)) + tuple(int(v) for v in values)


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
        for scale, together in _tiles(dtype):
            yield shipped_kernel("convolution.cu", "convolve", dtype, scale, together, False)
            yield shipped_kernel("convolution.cu", "convolve", dtype, scale, together, True)
            yield shipped_kernel("convolution_filter.cu", "filter_gradient", dtype, scale, together)
        yield shipped_kernel("convolution_filter.cu", "sum_splits", dtype)


# ---------------------------------------------------------------- pooling
# All give None for a dtype that is not in FLOATS, or for max_pool in ORDERED.
def max_pool(gpu: Executor, x: Any, size: Sizes, strides: Sizes, dilations: Sizes,
             pads: Pads) -> Any:
    """The largest value of each window of x [N, *in, C], as [N, *out, C]; padding never wins, a
    nan always does."""
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "max_pool", (x,), x.shape, over, None, ORDERED)


def max_pool_grad(gpu: Executor, a: object, x: Any, y: object, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Any:
    """a [N, *out, C] added where the winner of each window of x lies; y is the pooled x."""
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "max_pool_grad", (a, x, y), x.shape, over, x.shape)


def max_pool_pick(gpu: Executor, a: Array, x: Array, y: Array, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Any:
    """The values of a [N, *in, C] where the winners of the windows of x lie, like y."""
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "max_pool_pick", (a, x, y), x.shape, over, y.shape)


def max_pool_index(gpu: Executor, x: Array, y: Array, size: Sizes, strides: Sizes, dilations: Sizes,
                   pads: Pads, batch: bool) -> Any:
    """Where the winners lie in each flattened image, or in the whole batch where `batch` holds, as
    int64 of the shape of y."""
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "max_pool_index", (x, y), x.shape, over, y.shape, FLOATS, int(batch))


def average_pool(gpu: Executor, x: Array, size: Sizes, strides: Sizes, dilations: Sizes,
                 pads: Pads) -> Any:
    """The mean of each window of x [N, *in, C] over the cells that are not padding."""
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "average_pool", (x,), x.shape, over, None)


def average_pool_grad(gpu: Executor, a: Array, shape: Sizes, size: Sizes, strides: Sizes,
                      dilations: Sizes, pads: Pads) -> Any:
    """The adjoint of `average_pool`: a [N, *out, C] to `shape` [N, *in, C]."""
    over = axes(shape[1:-1], size, strides, dilations, pads)
    return _pooled(gpu, "average_pool_grad", (a,), shape, over, shape)


def _pooled(gpu: Executor, name: str, arrays: tuple[Any, ...], ins: Sizes, over: Axes | None,
            result: Sizes | None, served: tuple[str, ...] = FLOATS, *more: int) -> Any:
    """One launch for inputs of shape `ins`. `result` is the shape of what it gives, one value for
    each window where it is None."""
    dtype = arrays[0].dtype
    if over is None or dtype_name(dtype) not in served:
        return None
    shape = _outputs(ins, over) if result is None else tuple(result)
    out = gpu.empty(shape, np.dtype(np.int64) if name == "max_pool_index" else dtype)
    if not out.size:
        return out
    # 16 bytes of channels at once; a pixel whose channels do not end there goes one by one.
    pieces = out.size * dtype.itemsize // 16 if ins[-1] * dtype.itemsize % 16 == 0 else out.size
    file = "average_pooling.cu" if name.startswith("average") else "max_pooling.cu"
    gpu.launch(shipped_kernel(file, name, dtype_name(dtype)), gpu.blocks(pieces, _BLOCK, 32),
               (_BLOCK, 1, 1), (*map(gpu.contiguous, arrays), out, ins[0], ins[-1],
                                *over.numbers, *more))
    return out


def _outputs(shape: Sizes, over: Axes) -> tuple[int, ...]:
    rank = len(shape) - 2
    return (shape[0], *over.outs[3 - rank:], shape[-1])


# ---------------------------------------------------------------- convolution
#: The side of a tile of results, for G = 1.
_SIDE = 64
#: Positions that a block sums over at least before they are split further.
_POSITIONS = 256
#: The largest grid along y and z, by the CUDA programming guide's table of technical
#: specifications.
_LIMIT = 65535


def convolve(gpu: Executor, x: Any, filters: Any, strides: Sizes, dilations: Sizes, pads: Pads,
             groups: int = 1) -> Any:
    """y[n, o, f] = Σ x[n, o · stride + k · dilation - pad, c] filters[k, c, f].

    Args:
        x: [N, *in, C] of a dtype in FLOATS.
        filters: [*size, C / groups, F] of the same dtype.

    Returns:
        [N, *out, F], summed in float32 for floats of two bytes; None for what is not served.
    """
    if contractions.is_pointwise(filters.shape[:-2], strides, pads, groups):
        product = contractions.convolve(gpu, x, filters)
        if product is not None:
            return product
    over = axes(x.shape[1:-1], filters.shape[:-2], strides, dilations, pads)
    if over is None or dtype_name(x.dtype) not in FLOATS:
        return None
    rank = len(x.shape) - 2
    shape = (x.shape[0], *over.outs[3 - rank:], filters.shape[-1])
    rows = math.prod(shape[:-1])
    return _product(gpu, x, filters, shape, rows, over, (x.shape[-1], shape[-1], groups), 1, False)


def input_gradient(gpu: Executor, g: Any, filters: Any, shape: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads, groups: int = 1) -> Any:
    """The adjoint of `convolve` in x: g [N, *out, F] -> an array of `shape` [N, *in, C]. None for
    what is not served."""
    if contractions.is_pointwise(filters.shape[:-2], strides, pads, groups):
        product = contractions.input_gradient(gpu, g, filters)
        if product is not None:
            return product
    over = axes(shape[1:-1], filters.shape[:-2], strides, dilations, pads)
    if over is None or dtype_name(g.dtype) not in FLOATS:
        return None
    # With steps, input cells of one residue see the same cells of the filter: each residue is a
    # dense product, and no cell between steps is visited for nothing.
    rows = shape[0] * math.prod(-(-n // s) for n, s in zip(over.ins, over.strides))
    return _product(gpu, g, filters, tuple(shape), rows, over, (shape[-1], g.shape[-1], groups),
                    math.prod(over.strides), True)


def filter_gradient(gpu: Executor, x: Any, g: Any, size: Sizes, strides: Sizes, dilations: Sizes,
                    pads: Pads, groups: int = 1) -> Any:
    """The adjoint of `convolve` in the filters: x and g [N, *out, F] -> [*size, C / groups, F].

    Deterministic: the parts of the sum over n and o are added in a fixed order.

    Returns:
        An array like x; None for what is not served.
    """
    if contractions.is_pointwise(size, strides, pads, groups):
        gradient = contractions.filter_gradient(gpu, x, g)
        if gradient is not None:
            return gradient
    over = axes(x.shape[1:-1], size, strides, dilations, pads)
    name = dtype_name(x.dtype)
    if over is None or name not in FLOATS:
        return None
    channels, features = x.shape[-1], g.shape[-1]
    shape = (*size, channels // groups, features)
    if not math.prod(shape) or not g.size or not x.size:
        return gpu.zeros(shape, x.dtype)
    positions = math.prod(g.shape[:-1])
    group = (channels // groups, features // groups)
    tile, grid = _tiling(gpu, name, math.prod(shape[:-1]), group, group[1],
                         groups * -(-positions // _POSITIONS))
    # Filters are small and positions many: few blocks have results to themselves, so the sum over
    # positions is cut, and its parts are added by a second launch, in a fixed order.
    splits = max(1, min(-(-2 * gpu.multiprocessors // (math.prod(grid) * groups)),
                        positions // _POSITIONS))
    if max(grid[1], groups * splits) > _LIMIT:
        return None
    gradient = gpu.empty(shape, x.dtype)
    direct = splits == 1 and name == compute_dtype(name)
    partial = gradient if direct else gpu.empty((splits, *shape), numpy_dtype(compute_dtype(name)))
    kernel = shipped_kernel("convolution_filter.cu", "filter_gradient", name, *tile)
    gpu.launch(kernel, (*grid, groups * splits), (_BLOCK, 1, 1),
               (gpu.contiguous(x), gpu.contiguous(g), partial, x.shape[0], channels, features,
                groups, *over.numbers, splits))
    if not direct:
        kernel = shipped_kernel("convolution_filter.cu", "sum_splits", name)
        gpu.launch(kernel, gpu.blocks(gradient.size, _BLOCK), (_BLOCK, 1, 1),
                   (partial, gradient, splits, gradient.size))
    return gradient


def _product(gpu: Executor, source: Any, filters: Any, shape: tuple[int, ...], rows: int,
             over: Axes, sizes: tuple[int, int, int], residues: int, inputs: bool) -> Any:
    """The result of `shape` in `residues` products of at most `rows` rows each."""
    channels, features, groups = sizes
    name = dtype_name(source.dtype)
    if not math.prod(shape) or not source.size or not filters.size:
        return gpu.zeros(shape, source.dtype)
    group = (channels // groups, features // groups)
    tile, grid = _tiling(gpu, name, rows, group, group[0 if inputs else 1], groups * residues)
    if max(grid[1], groups * residues) > _LIMIT:
        return None
    y = gpu.empty(shape, source.dtype)
    kernel = shipped_kernel("convolution.cu", "convolve", name, *tile, inputs)
    gpu.launch(kernel, (*grid, groups * residues), (_BLOCK, 1, 1),
               (gpu.contiguous(source), gpu.contiguous(filters), y, shape[0], channels, features,
                groups, *over.numbers))
    return y


def _tiles(dtype: str) -> tuple[tuple[int, int], ...]:
    """Tiles that a thread's registers hold, in units of 64 x 64 results, with how many channels
    are loaded together."""
    return ((1, 2), (1, 1)) if dtype == "float64" else ((2, 4), (1, 4), (1, 1))


def _tiling(gpu: Executor, dtype: str, rows: int, channels: tuple[int, int], columns: int,
            times: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Tile and grid: the largest tile with which `times` products of rows x columns fill the
    device, and as many channels together as divide `channels`, those of a group."""
    for scale, together in _tiles(dtype):
        # A larger tile reads each operand less often, and pays only where there are blocks enough.
        side = _SIDE * scale
        grid = (-(-rows // side), -(-columns // side))
        fills = columns > side // 2 and math.prod(grid) * times >= 2 * gpu.multiprocessors
        if not any(n % together for n in channels) and (scale == 1 or fills):
            break
    return (scale, together), grid
