"""cumsum, cumprod and cumulative_logsumexp: running totals along an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.indexing import BITS, DTYPES, words
from gtape.devices.cuda.runtime.executor import Executor, Grid, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.opdef.cuda_text import compute_dtype

if TYPE_CHECKING:
    from gtape.core.device import Array

OPERATIONS = {"sum": "Sum", "product": "Product", "logsumexp": "LogAddExp"}
_BLOCK = 256
#: Rows up to this length are scanned by one thread each.
_SHORT = 16
#: Segments of a row are no shorter and no more than this.
_SEGMENT = 2048
_SEGMENTS = 256


class ScanGeometry(NamedTuple):
    """What is scanned: [outer, n, inner] in segments, in which order and how."""

    outer: int
    n: int
    inner: int
    segment: int
    operation: str
    reverse: bool
    exclusive: bool

    @property
    def segments(self) -> int:
        return -(-self.n // self.segment)


def instances() -> Iterator[Kernel]:
    for operation, function in OPERATIONS.items():
        for dtype in FLOATS if operation == "logsumexp" else DTYPES:
            for name in ("scan_rows", "scan_columns"):
                yield shipped_kernel("cumulative.cu", name, BITS.get(dtype, dtype), function)


def cumulative(gpu: Executor, x: Array, axis: int, operation: str = "sum", *, reverse: bool = False,
               exclusive: bool = False) -> Any:
    """y[j] = Σ, Π or log Σ exp of x[k] over k <= j along `axis` (k >= j when reverse; without
    k = j when exclusive). Floats of two bytes are combined in float32.

    Args:
        x: a dtype in DTYPES; floats for "logsumexp".
        operation: "sum", "product" or "logsumexp".

    Returns:
        An array like x, or None for other dtypes.
    """
    if dtype_name(x.dtype) not in (FLOATS if operation == "logsumexp" else DTYPES):
        return None
    y = gpu.empty(x.shape, x.dtype)
    if not x.size:
        return y
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1:])
    segment = _segment(gpu, outer, n, inner, x.dtype.itemsize)
    scan = ScanGeometry(outer, n, inner, segment, operation, reverse, exclusive)
    bits = BITS.get(dtype_name(x.dtype))
    x = gpu.contiguous(x)
    _scan(gpu, x.view(bits) if bits else x, y.view(bits) if bits else y, scan)
    return y


def _segment(gpu: Executor, outer: int, n: int, inner: int, size: int) -> int:
    """The length of segments: the whole axis where other rows and columns fill the device."""
    wanted = gpu.multiprocessors * 2
    if not _by_rows(n, inner):
        wanted = gpu.multiprocessors * 1024
        outer *= words(inner, size)
    # Segments only where rows alone leave the device idle: x is then read twice.
    segments = min(_SEGMENTS, wanted // outer, n // _SEGMENT if inner == 1 else n // 64)
    if segments < 2:
        return n
    return -(-n // (segments * _SEGMENT)) * _SEGMENT if inner == 1 else -(-n // segments)


def _by_rows(n: int, inner: int) -> bool:
    return inner == 1 and n > _SHORT


def _scan(gpu: Executor, x: Array, y: Array, scan: ScanGeometry) -> None:
    compute = numpy_dtype(compute_dtype(dtype_name(x.dtype)))
    none = gpu.empty((0,), compute)
    if scan.segments == 1:
        _launch(gpu, x, y, none, none, scan, carried=False, write=True)
        return
    shape = (scan.outer, scan.segments, scan.inner)
    totals, carries = gpu.empty(shape, compute), gpu.empty(shape, compute)
    # Three launches: the total of every segment, the totals before each, and the scan that begins
    # there. x is read twice, which costs less than segments that wait for each other.
    _launch(gpu, x, y, none, totals, scan, carried=False, write=False)
    starts = scan._replace(n=scan.segments, segment=scan.segments, reverse=False, exclusive=True)
    _launch(gpu, totals, carries, none, none, starts, carried=False, write=True)
    _launch(gpu, x, y, carries, none, scan, carried=True, write=True)


def _launch(gpu: Executor, x: Array, y: Array, carries: object, totals: Any, scan: ScanGeometry, *,
            carried: bool, write: bool) -> None:
    function = OPERATIONS[scan.operation]
    flags = (int(scan.reverse), int(scan.exclusive), int(carried), int(write))
    if _by_rows(scan.n, scan.inner):
        kernel = shipped_kernel("cumulative.cu", "scan_rows", dtype_name(x.dtype), function)
        jobs = scan.outer * scan.segments
        grid: Grid = (min(jobs, gpu.multiprocessors * 64), 1, 1)
        gpu.launch(kernel, grid, (_row_block(min(scan.n, scan.segment), x.dtype.itemsize), 1, 1),
                   (x, y, carries, totals, scan.outer, scan.n, scan.segment, *flags))
        return
    kernel = shipped_kernel("cumulative.cu", "scan_columns", dtype_name(x.dtype), function)
    jobs = scan.outer * scan.segments * words(scan.inner, x.dtype.itemsize)
    gpu.launch(kernel, gpu.blocks(jobs, _BLOCK, 32), (_BLOCK, 1, 1),
               (x, y, carries, totals, scan.outer, scan.n, scan.inner, scan.segment, *flags))


def _row_block(length: int, size: int) -> int:
    """Threads for a row: one for each 16 bytes, in whole warps."""
    pieces = -(-length * size // 16)
    return min(_BLOCK, -(-pieces // 32) * 32)
