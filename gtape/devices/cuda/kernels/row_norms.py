"""Normalisation of rows, forward and backward: what layer_norm and rms_norm share.

The kernels are those of `kernels/norm_rows.cuh` (a row in registers) and `norm_streams.cuh`
(longer rows).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.devices.cuda.kernels.column_tiles import COMPUTE, finish, finishing, width
from gtape.devices.cuda.runtime.executor import Executor, Grid
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

_GROUPED_THREADS = 128
#: Threads that a multiprocessor surely holds, by the registers that the launch bounds leave them.
_RESIDENT = {"forward": 1024, "backward": 512}
_STREAM_THREADS = 512


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


def geometry(cols: int, dtype: str, direction: str) -> NormGeometry | None:
    """How to hold rows of `cols` values; None where registers do not."""
    for held in _INSTANCES[direction][dtype]:
        threads = -(-cols // (held.pieces * width(dtype)))
        if threads <= 32:
            return NormGeometry(held, 1 << max(0, threads - 1).bit_length(), _GROUPED_THREADS)
        if threads <= held.threads:
            group = -(-threads // 32) * 32
            return NormGeometry(held, group, group)
    return None


def _share(count: int) -> float:
    """1 / count, as NumPy has it."""
    return 1 / count if count else math.inf


class RowNorm(NamedTuple):
    """The kernels of one normalisation: `name` is that of the file and begins those of the
    kernels; `statistics` counts what is kept of a row, which is also how many gradients of
    parameters there are."""

    name: str
    statistics: int

    def forward(self, gpu: Executor, x: Any, params: tuple[object, ...],
                eps: float) -> tuple[Any, ...]:
        """(y, *statistics) of x [..., cols]; the statistics are [...]."""
        x, *given = (gpu.contiguous(a) for a in (x, *params))
        dtype, cols = dtype_name(x.dtype), x.shape[-1]
        y = gpu.empty(x.shape, x.dtype)
        kept = [gpu.empty(x.shape[:-1], COMPUTE[dtype]) for _ in range(self.statistics)]
        rows = kept[0].size
        args = (x, *given, y, *kept, rows, cols)
        if rows == 0:
            return (y, *kept)
        held, share = geometry(cols, dtype, "forward"), _share(cols)
        if held is None:
            self._stream(gpu, "forward_stream", dtype, gpu.blocks(rows, 1), (*args, share, eps))
        else:
            grid = gpu.blocks(rows, held.rows, 4 * _RESIDENT["forward"] // held.threads)
            gpu.launch(self._instance("forward", dtype, held.held), grid, (held.threads, 1, 1),
                       (*args, held.group, share, eps))
        return (y, *kept)

    def backward(self, gpu: Executor, g: object, x: Array, scale: object,
                 statistics: tuple[object, ...]) -> tuple[object, ...]:
        """(dx, *gradients of the parameters) for the cotangent g of y."""
        g, x, scale, *kept = (gpu.contiguous(a) for a in (g, x, scale, *statistics))
        dtype, cols = dtype_name(x.dtype), x.shape[-1]
        dx, rows = gpu.empty(x.shape, x.dtype), kept[0].size
        held, share = geometry(cols, dtype, "backward"), _share(cols)
        grid = (gpu.blocks(rows, 1, 2) if held is None else
                gpu.blocks(rows, held.rows, _RESIDENT["backward"] // held.threads))
        partial = gpu.empty((self.statistics, grid[0], cols), COMPUTE[dtype])
        args = (g, x, scale, *kept, dx, partial, rows, cols)
        if held is None:
            self._stream(gpu, "backward_stream", dtype, grid, (*args, share))
        else:
            gpu.launch(self._instance("backward", dtype, held.held), grid, (held.threads, 1, 1),
                       (*args, held.group, share))
        return (dx, *finish(gpu, partial, x.dtype))

    def _stream(self, gpu: Executor, what: str, dtype: str, grid: Grid,
                args: tuple[object, ...]) -> None:
        gpu.launch(self._kernel(what, dtype), grid, (_STREAM_THREADS, 1, 1), args)

    def _instance(self, direction: str, dtype: str, held: _Held) -> Kernel:
        bound = (held.threads,) if direction == "backward" else ()
        return self._kernel(direction, dtype, held.pieces, *bound)

    def _kernel(self, what: str, dtype: str, *template: int) -> Kernel:
        return shipped_kernel(f"{self.name}.cu", f"{self.name}_{what}", dtype, width(dtype),
                              *template)

    def instances(self) -> Iterator[Kernel]:
        """Every instance that can be launched."""
        for dtype in COMPUTE:
            for direction, held in _INSTANCES.items():
                for one in held[dtype]:
                    yield self._instance(direction, dtype, one)
                yield self._kernel(f"{direction}_stream", dtype)
        yield from finishing()
