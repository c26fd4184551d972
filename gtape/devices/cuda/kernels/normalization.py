"""Normalisations of rows and of channels, forward and backward, as the ops have them.

Each function gives None where no kernel serves these arrays, axes and parameters. Sums over rows
are deterministic: parts of `kernels/column_sums.cuh`, added in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.devices.cuda.runtime.executor import Executor, Grid, power_of_two
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.annotations import DTypeLike
    from gtape.core.device import Array

Axes = tuple[int, ...]

_THREADS = 256
_BLOCK = (_THREADS, 1, 1)
#: The dtype to compute in: the squares of float16 leave its range at 256, and bfloat16 counts no
#: further than that.
COMPUTE = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}
#: 1024 threads on each, which have enough loads in flight; more would leave more parts to add up.
_BLOCKS_PER_MULTIPROCESSOR = 4
_FINISHED_COLUMNS = 32
_GROUPED_THREADS = 128
#: Threads that a multiprocessor surely holds, by the registers that the launch bounds leave them.
_RESIDENT = {"forward": 1024, "backward": 512}
_STREAM_THREADS = 512


def instances() -> Iterator[Kernel]:
    for dtype, compute in COMPUTE.items():
        yield _finish(compute, dtype)
        for what in ("moments", "sums", "backward"):
            yield _batch_kernel(what, dtype)
        for of in sorted({dtype, compute}):
            yield _batch_apply(dtype, of)
    for compute in sorted(set(COMPUTE.values())):
        yield _batch_merge(compute)
    yield from LAYER_NORM.instances()
    yield from RMS_NORM.instances()


def _width(dtype: str) -> int:
    """How many values a thread moves at once: 16 bytes, the widest load there is."""
    return {"float16": 8, "bfloat16": 8, "float32": 4, "float64": 2}[dtype]


def _served(x: Any, params: tuple[object, ...], shape: tuple[int, ...]) -> bool:
    """Whether x is of a float dtype and each parameter of it, and of `shape` after axes of
    length 1."""
    def fits(p: Any) -> bool:
        before = p.ndim - len(shape)
        return (0 <= before <= x.ndim - len(shape) and p.shape == (1,) * before + shape
                and p.dtype == x.dtype)

    return dtype_name(x.dtype) in COMPUTE and all(fits(p) for p in params)


def _kept(x: Any, axes: Axes) -> tuple[int, ...]:
    """The shape of x with `axes` of length 1."""
    return tuple(1 if i in axes else n for i, n in enumerate(x.shape))


def _statistics(x: Any, *kept: Any) -> bool:
    """Whether saved values are of the dtype that the kernels compute in."""
    return all(dtype_name(a.dtype) == COMPUTE[dtype_name(x.dtype)] for a in kept)


class Tiles(NamedTuple):
    """Blocks of threads over [rows, cols]: tiles of columns, `lanes` wide loads across, times
    chunks of `each` rows."""

    lanes: int
    each: int
    grid: Grid

    @property
    def chunks(self) -> int:
        return self.grid[1]


def _tiles(gpu: Executor, rows: int, cols: int, dtype: str) -> Tiles:
    """As many chunks as fill the device, and no more than leave each walker a few rows."""
    vectors = -(-cols // _width(dtype))
    lanes = min(32, power_of_two(vectors))
    across = -(-vectors // lanes)
    wanted = gpu.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR // max(across, 1)
    most = -(-rows // (_THREADS // lanes * 4))
    each = -(-rows // max(1, min(wanted, most)))
    return Tiles(lanes, each, (across, max(1, -(-rows // max(each, 1))), 1))


def _finished(gpu: Executor, partial: Any, dtype: DTypeLike) -> Any:
    """The sums over the parts of `partial` [quantities, parts, cols], as [quantities, cols] of
    `dtype`."""
    quantities, parts, cols = partial.shape
    sums = gpu.empty((quantities, cols), dtype)
    gpu.launch(_finish(dtype_name(partial.dtype), dtype_name(sums.dtype)),
               (-(-cols // _FINISHED_COLUMNS), quantities, 1), (32 * min(parts, 32), 1, 1),
               (partial, sums, parts, cols))
    return sums


def _finish(compute: str, dtype: str) -> Kernel:
    return shipped_kernel("column_finish.cu", "column_finish", compute, dtype)


# ---------------------------------------------------------------- channels
def batch_norm_training(gpu: Executor, x: Any, scale: object, shift: object, axes: Axes,
                        eps: float) -> tuple[Any, ...] | None:
    """(y, μ, σ²) with y = (x - μ) / √(σ² + eps) · scale + shift, and μ and σ² of each channel.
    Ioffe & Szegedy 2015, arXiv:1502.03167. μ and σ² are float64 for float64 and else float32."""
    if not _channels_last(x, axes, (scale, shift)):
        return None
    x = gpu.contiguous(x)
    kept = _moments(gpu, x, _kept(x, axes))
    return (_normalized(gpu, x, *kept, scale, shift, eps), *kept)


def batch_norm(gpu: Executor, x: Any, mean: object, variance: object, offset: object, scale: object,
               eps: float) -> Any:
    """y = (x - mean) / √(variance + eps) · scale + offset, as in inference."""
    if not _channels_last(x, tuple(range(x.ndim - 1)), (mean, variance, scale, offset)):
        return None
    return _normalized(gpu, x, mean, variance, scale, offset, eps)


def batch_norm_grad(gpu: Executor, g: object, x: Any, scale: Any, mean: object, variance: object,
                    axes: Axes, eps: float,
                    shift_shape: tuple[int, ...]) -> tuple[object, ...] | None:
    """The gradients of x, scale and shift for the cotangent g of y in training. With n = (x - μ) f,
    f = 1 / √(σ² + eps) and N values in a channel: dshift = Σ g, dscale = Σ g n and dx = scale f (g
    - dshift / N - n dscale / N)."""
    if not (_channels_last(x, axes, (scale,)) and _statistics(x, mean, variance)
            and math.prod(shift_shape) == x.shape[-1]):
        return None
    g, x, factors, mean, variance = (gpu.contiguous(a) for a in (g, x, scale, mean, variance))
    rows, cols, dtype = *_matrix(x), dtype_name(x.dtype)
    over = _tiles(gpu, rows, cols, dtype)
    partial = gpu.empty((2, over.chunks, cols), COMPUTE[dtype])
    gpu.launch(_batch_kernel("sums", dtype), over.grid, _BLOCK,
               (g, x, mean, variance, partial, rows, cols, over.lanes, over.each, eps))
    # dx needs both sums over the whole channel, so x and g are read twice; a channel is too long to
    # be held meanwhile.
    sums = _finished(gpu, partial, COMPUTE[dtype])
    gradients = tuple(gpu.empty(s, x.dtype) for s in (x.shape, scale.shape, shift_shape))
    gpu.launch(_batch_kernel("backward", dtype), over.grid, _BLOCK,
               (g, x, factors, mean, variance, sums, *gradients, rows, cols, over.lanes,
                over.each, eps))
    return gradients


def _channels_last(x: Any, axes: Axes, params: tuple[object, ...]) -> bool:
    # Without rows the gradient of scale would be 0 · nan; the definition gives a sum of nothing.
    return (x.ndim > 1 and x.size > 0 and axes == tuple(range(x.ndim - 1))
            and _served(x, params, x.shape[-1:]))


def _normalized(gpu: Executor, *given: Any) -> Any:
    """y of x, mean, variance, scale, shift and eps; both statistics of the dtype of x or of the
    one to compute in."""
    x, *params = (gpu.contiguous(a) for a in given[:-1])
    rows, cols, dtype = *_matrix(x), dtype_name(x.dtype)
    y = gpu.empty(x.shape, x.dtype)
    over = _tiles(gpu, rows, cols, dtype)
    gpu.launch(_batch_apply(dtype, dtype_name(params[0].dtype)), over.grid, _BLOCK,
               (x, *params, y, rows, cols, over.lanes, over.each, given[-1]))
    return y


def _moments(gpu: Executor, x: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The mean and the variance of each channel, as arrays of `shape`."""
    rows, cols, dtype = *_matrix(x), dtype_name(x.dtype)
    compute = COMPUTE[dtype]
    over = _tiles(gpu, rows, cols, dtype)
    partial = gpu.empty((2, over.chunks, cols), compute)
    gpu.launch(_batch_kernel("moments", dtype), over.grid, _BLOCK,
               (x, partial, rows, cols, over.lanes, over.each))
    mean, variance = gpu.empty(shape, compute), gpu.empty(shape, compute)
    # Parts are merged by Chan's rule about their own means: the mean of squares less the square of
    # the mean would cancel where the mean is large.
    gpu.launch(_batch_merge(compute), (-(-cols * 32 // _THREADS), 1, 1), _BLOCK,
               (partial, mean, variance, over.chunks, rows, cols, over.each))
    return mean, variance


def _matrix(x: Any) -> tuple[int, int]:
    """Rows and channels."""
    cols = x.shape[-1]
    return x.size // max(cols, 1), cols


def _batch_kernel(what: str, dtype: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", f"batch_norm_{what}", dtype, _width(dtype))


def _batch_apply(dtype: str, of: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", "batch_norm_apply", dtype, of, _width(dtype))


def _batch_merge(compute: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", "batch_norm_merge", compute)


# ---------------------------------------------------------------- rows
class _Held(NamedTuple):
    """An instance that holds rows in registers: `pieces` wide loads in each of at most `threads`
    threads. Which there are is how far no architecture spills."""

    pieces: int
    threads: int


_INSTANCES = {
    "forward": {
        "float16": (_Held(2, 256), _Held(4, 1024)), "bfloat16": (_Held(2, 256), _Held(4, 1024)),
        "float32": (_Held(4, 1024),), "float64": (_Held(4, 1024),)},
    "backward": {
        "float16": (_Held(2, 512), _Held(4, 384)), "bfloat16": (_Held(2, 512), _Held(4, 384)),
        "float32": (_Held(4, 512),), "float64": (_Held(4, 512),)}}


class NormGeometry(NamedTuple):
    """How rows are held: by the instance `held`, in groups of `group` threads."""

    held: _Held
    group: int
    threads: int

    @property
    def rows(self) -> int:
        """The rows that a block has at once."""
        return self.threads // self.group


def _geometry(cols: int, dtype: str, direction: str) -> NormGeometry | None:
    """How to hold rows of `cols` values; None where registers do not."""
    for held in _INSTANCES[direction][dtype]:
        threads = -(-cols // (held.pieces * _width(dtype)))
        if threads <= 32:
            return NormGeometry(held, power_of_two(threads), _GROUPED_THREADS)
        if threads <= held.threads:
            group = -(-threads // 32) * 32
            return NormGeometry(held, group, group)
    return None


class RowNorm(NamedTuple):
    """The kernels of one normalisation over last axes: `name` is that of the file and begins those
    of the kernels; `statistics` counts what is kept of a row, which is also how many gradients of
    parameters there are. They are those of `kernels/norm_rows.cuh` (a row in registers) and
    `norm_streams.cuh` (longer rows)."""

    name: str
    statistics: int

    def forward(self, gpu: Executor, x: Any, params: tuple[object, ...], axes: Axes,
                eps: float) -> tuple[Any, ...] | None:
        """(y, *statistics), of the shape of x with `axes` of length 1."""
        cols = _columns(x, axes, params)
        if cols is None:
            return None
        x, *given = (gpu.contiguous(a) for a in (x, *params))
        dtype = dtype_name(x.dtype)
        y = gpu.empty(x.shape, x.dtype)
        kept = [gpu.empty(_kept(x, axes), COMPUTE[dtype]) for _ in range(self.statistics)]
        rows = kept[0].size
        args = (x, *given, y, *kept, rows, cols)
        if rows == 0:
            return (y, *kept)
        held, share = _geometry(cols, dtype, "forward"), _share(cols)
        if held is None:
            gpu.launch(self._kernel("forward_stream", dtype), gpu.blocks(rows, 1),
                       (_STREAM_THREADS, 1, 1), (*args, share, eps))
        else:
            grid = gpu.blocks(rows, held.rows, 4 * _RESIDENT["forward"] // held.threads)
            gpu.launch(self._instance("forward", dtype, held.held), grid, (held.threads, 1, 1),
                       (*args, held.group, share, eps))
        return (y, *kept)

    def backward(self, gpu: Executor, g: object, x: Any, scale: Any, statistics: tuple[object, ...],
                 axes: Axes, *shapes: tuple[int, ...]) -> tuple[Any, ...] | None:
        """(dx, dscale, *gradients of the other parameters, of `shapes`) for the cotangent g of
        y."""
        cols = _columns(x, axes, (scale,))
        if cols is None or not _statistics(x, *statistics) or any(
                math.prod(shape) != cols for shape in shapes):
            return None
        shapes = (scale.shape, *shapes)
        g, x, scale, *kept = (gpu.contiguous(a) for a in (g, x, scale, *statistics))
        dtype = dtype_name(x.dtype)
        dx, rows = gpu.empty(x.shape, x.dtype), kept[0].size
        held, share = _geometry(cols, dtype, "backward"), _share(cols)
        # Each block leaves a row of partial sums: so many blocks as run at once, and no more.
        grid = (gpu.blocks(rows, 1, 2) if held is None else
                gpu.blocks(rows, held.rows, _RESIDENT["backward"] // held.threads))
        partial = gpu.empty((self.statistics, grid[0], cols), COMPUTE[dtype])
        args = (g, x, scale, *kept, dx, partial, rows, cols)
        if held is None:
            gpu.launch(self._kernel("backward_stream", dtype), grid, (_STREAM_THREADS, 1, 1),
                       (*args, share))
        else:
            gpu.launch(self._instance("backward", dtype, held.held), grid, (held.threads, 1, 1),
                       (*args, held.group, share))
        sums = _finished(gpu, partial, x.dtype)
        return (dx, *[total.reshape(shape) for total, shape in zip(sums, shapes)])

    def _instance(self, direction: str, dtype: str, held: _Held) -> Kernel:
        bound = (held.threads,) if direction == "backward" else ()
        return self._kernel(direction, dtype, held.pieces, *bound)

    def _kernel(self, what: str, dtype: str, *template: int) -> Kernel:
        return shipped_kernel(f"{self.name}.cu", f"{self.name}_{what}", dtype, _width(dtype),
                              *template)

    def instances(self) -> Iterator[Kernel]:
        for dtype in COMPUTE:
            for direction, held in _INSTANCES.items():
                yield from (self._instance(direction, dtype, one) for one in held[dtype])
                yield self._kernel(f"{direction}_stream", dtype)


LAYER_NORM, RMS_NORM = RowNorm("layer_norm", 2), RowNorm("rms_norm", 1)


def layer_norm(gpu: Executor, x: object, scale: object, shift: object, axes: Axes,
               eps: float) -> tuple[Any, ...] | None:
    """(y, μ, f) with y = (x - μ) f · scale + shift, and μ and f = 1 / √(σ² + eps) of each row. Ba,
    Kiros & Hinton 2016, arXiv:1607.06450. μ and f are float64 for float64 and else float32."""
    return LAYER_NORM.forward(gpu, x, (scale, shift), axes, eps)


def layer_norm_grad(gpu: Executor, g: Array, x: Array, scale: Array, mean: Array, factor: object,
                    axes: Axes, shift_shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The gradients of x, scale and shift for the cotangent g of y. With n = (x - μ) f and a = g ·
    scale: dx = f (a - mean a - n mean(a n)) in each row, dscale = Σ g n and dshift = Σ g over the
    rows."""
    return LAYER_NORM.backward(gpu, g, x, scale, (mean, factor), axes, shift_shape)


def rms_norm(gpu: Executor, x: Array, scale: Array, axes: Axes,
             eps: float) -> tuple[Any, ...] | None:
    """(y, f) with y = x f · scale and f = 1 / √(mean x² + eps) of each row. Zhang & Sennrich 2019,
    arXiv:1910.07467. f is float64 for float64 and else float32."""
    return RMS_NORM.forward(gpu, x, (scale,), axes, eps)


def rms_norm_grad(gpu: Executor, g: Array, x: Array, scale: Array, factor: object,
                  axes: Axes) -> tuple[Any, ...] | None:
    """The gradients of x and scale for the cotangent g of y. With n = x f and a = g · scale: dx = f
    (a - n mean(a n)) in each row, and dscale = Σ g n over the rows."""
    return RMS_NORM.backward(gpu, g, x, scale, (factor,), axes)


def _columns(x: Any, axes: Axes, params: tuple[object, ...]) -> int | None:
    """How long a row is where the kernels of rows serve these axes and parameters."""
    first = x.ndim - len(axes)
    if not axes or axes != tuple(range(first, x.ndim)) or not _served(x, params, x.shape[first:]):
        return None
    return math.prod(x.shape[first:])


def _share(count: int) -> float:
    """1 / count, as NumPy has it."""
    return 1 / count if count else math.inf
