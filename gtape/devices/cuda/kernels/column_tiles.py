"""The geometry of kernels that sum columns of [rows, cols] arrays: `kernels/column_sums.cuh`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.devices.cuda.runtime.executor import Executor, Grid
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.annotations import DTypeLike

THREADS = 256
#: The dtype to compute in.
COMPUTE = {"float16": "float32", "bfloat16": "float32", "float32": "float32",
           "float64": "float64"}
#: 1024 threads on each, which have enough loads in flight; more would leave more parts to add up.
_BLOCKS_PER_MULTIPROCESSOR = 4
_FINISHED_COLUMNS = 32


class Tiles(NamedTuple):
    """Blocks of `THREADS` threads: tiles of columns, `lanes` wide loads across, times chunks of
    `each` rows."""

    lanes: int
    each: int
    grid: Grid

    @property
    def chunks(self) -> int:
        return self.grid[1]


def width(dtype: str) -> int:
    """How many values a thread moves at once."""
    return {"float16": 8, "bfloat16": 8, "float32": 4, "float64": 2}[dtype]


def tiles(gpu: Executor, rows: int, cols: int, dtype: str) -> Tiles:
    """Tiles over [rows, cols]; the chunks are as many as fill the device, and no more than leave
    each walker a few rows."""
    vectors = -(-cols // width(dtype))
    lanes = min(32, 1 << max(0, vectors - 1).bit_length())
    across = -(-vectors // lanes)
    wanted = gpu.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR // max(across, 1)
    most = -(-rows // (THREADS // lanes * 4))
    each = -(-rows // max(1, min(wanted, most)))
    return Tiles(lanes, each, (across, max(1, -(-rows // max(each, 1))), 1))


def finish(gpu: Executor, partial: Any, dtype: DTypeLike) -> Any:
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


def finishing() -> Iterator[Kernel]:
    """Every instance that `finish` launches."""
    for dtype, compute in COMPUTE.items():
        yield _finish(compute, dtype)
