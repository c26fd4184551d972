"""gather and gather_nd: rows of a table picked by index."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.devices.cuda.runtime.executor import Executor, Grid
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

INDICES = ("int32", "int64")
BLOCK = 256
#: The longest index tuples.
_DEPTH = 6
#: The largest size of a grid along y.
_CHUNKS = 65535


def instances() -> Iterator[Kernel]:
    for size in (1, 2, 4, 8):
        for index in INDICES:
            yield shipped_kernel("gather.cu", "gather_rows", size, index)
    for index in INDICES:
        yield shipped_kernel("gather.cu", "flatten_indices", index)


def gather(gpu: Executor, table: Any, indices: Any, axis: int = 0) -> Any:
    """y[o, *I, k] = table[o, indices[I], k] with o and k the axes before and after `axis`; zeros
    where an index is outside the axis.

    Args:
        table: any dtype.
        indices: int32 or int64, any shape.

    Returns:
        table.shape[:axis] + indices.shape + table.shape[axis + 1:], or None for other indices.
    """
    if dtype_name(indices.dtype) not in INDICES:
        return None
    shape = table.shape
    y = gpu.empty((*shape[:axis], *indices.shape, *shape[axis + 1:]), table.dtype)
    if not y.size:
        return y
    outer, rows, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])
    size = table.dtype.itemsize
    # complex128 moves as pairs of 8 bytes: the kernels have no element of 16.
    if size == 16:
        size, inner = 8, 2 * inner
    kernel = shipped_kernel("gather.cu", "gather_rows", size, dtype_name(indices.dtype))
    grid, lanes = row_geometry(gpu, outer * indices.size, words(inner, size))
    gpu.launch(kernel, grid, (BLOCK, 1, 1), (gpu.contiguous(table), gpu.contiguous(indices), y,
                                             outer, rows, indices.size, inner, lanes))
    return y


def gather_nd(gpu: Executor, params: Array, indices: Array) -> Any:
    """y[*I, …] = params[indices[I, 0], …, indices[I, depth - 1], …]; zeros where out of range.

    Args:
        params: any dtype.
        indices: int32 or int64 [*I, depth].

    Returns:
        indices.shape[:-1] + params.shape[depth:], or None for other indices.
    """
    depth = indices.shape[-1]
    flat = flat_rows(gpu, indices, params.shape)
    if flat is None:
        return None
    table = params.reshape((math.prod(params.shape[:depth]), *params.shape[depth:]))
    return gather(gpu, table, flat)


def flat_rows(gpu: Executor, indices: Array, shape: tuple[int, ...]) -> Any:
    """Index tuples [*I, depth] as int64 numbers [*I] of rows of the first `depth` axes of
    `shape`, flattened; -1 where out of range. None for more than 6 axes or other dtypes."""
    depth = indices.shape[-1]
    if dtype_name(indices.dtype) not in INDICES or depth > _DEPTH:
        return None
    flat = gpu.empty(indices.shape[:-1], np.dtype(np.int64))
    if flat.size:
        kernel = shipped_kernel("gather.cu", "flatten_indices", dtype_name(indices.dtype))
        sizes = (*shape[:depth], *(1,) * (_DEPTH - depth))
        gpu.launch(kernel, gpu.blocks(flat.size, BLOCK), (BLOCK, 1, 1),
                   (gpu.contiguous(indices), flat, flat.size, depth, *sizes))
    return flat


def words(inner: int, size: int) -> int:
    """How many pieces a row of `inner` elements of `size` bytes moves in: of 16 bytes if it can."""
    return inner * size // 16 if inner * size % 16 == 0 else inner


def row_geometry(gpu: Executor, rows: int, pieces: int, each: int = 4) -> tuple[Grid, int]:
    """The grid and the number of lanes that share a row of `pieces`.

    A lane takes about `each` pieces of a long row: several, where it only moves them, so that
    as many loads are in flight. Blocks along y share long rows where there are few rows.
    """
    lanes = min(BLOCK, max(min(32, _power(pieces)), _power(-(-pieces // each))))
    across = max(1, min(-(-rows * lanes // BLOCK), gpu.multiprocessors * 32))
    chunks = -(-pieces // (each * lanes))
    along = max(1, min(chunks, -(-gpu.multiprocessors * 8 // across), _CHUNKS))
    return (across, along, 1), lanes


def _power(count: int) -> int:
    """The least power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()
