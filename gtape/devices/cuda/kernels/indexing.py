"""Rows picked by index, and rows that share an index combined: gather, scatter, segments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import FLOATS, as_dtype
from gtape.core.modes import Modes
from gtape.devices.cuda.runtime.executor import Executor, Grid, numpy_dtype, power_of_two
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel
from gtape.opdef.cuda_text import compute_dtype

if TYPE_CHECKING:
    from gtape.core.device import Array

INDICES = ("int32", "int64")
BLOCK = 256
#: The longest index tuples.
_DEPTH = 6
#: The largest size of a grid along y.
_MOST_ALONG = 65535


def instances() -> Iterator[Kernel]:
    for size in (1, 2, 4, 8):
        for index in INDICES:
            yield shipped_kernel("gather.cu", "gather_rows", size, index)
    for index in INDICES:
        yield shipped_kernel("gather.cu", "flatten_indices", index)
    for dtype in _ATOMIC:
        for index in INDICES:
            yield shipped_kernel("scatter.cu", "scatter_add", dtype, index)
    for name, function in (
            *((_computed(d, r), f) for r, f in REDUCTIONS.items() for d in DTYPES),
            *((d, "Last") for d in _MOVED.values())):
        yield shipped_kernel("scatter.cu", "segment_reduce", name, function)
        yield shipped_kernel("scatter.cu", "segment_join", name, function)


def gather(gpu: Executor, table: Any, indices: Any, axis: int = 0) -> Any:
    """y[o, *I, k] = table[o, indices[I], k] with o and k the axes before and after `axis`; zeros
    where an index is outside the axis. None for indices that are not int32 or int64."""
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
    """y[*I, …] = params[indices[I, 0], …, indices[I, depth - 1], …] for indices [*I, depth]; zeros
    where out of range. None as in `flat_rows`."""
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
    """The grid and the number of lanes that share a row of `pieces`. A lane takes about `each`
    pieces of a long row: several, where it only moves them, so that as many loads are in flight.
    Blocks along y share long rows where there are few rows."""
    lanes = min(BLOCK, max(min(32, power_of_two(pieces)), power_of_two(-(-pieces // each))))
    across = max(1, min(-(-rows * lanes // BLOCK), gpu.multiprocessors * 32))
    chunks = -(-pieces // (each * lanes))
    along = max(1, min(chunks, -(-gpu.multiprocessors * 8 // across), _MOST_ALONG))
    return (across, along, 1), lanes


DTYPES = (*FLOATS, "int32", "int64")
#: Integers are added and multiplied as unsigned ones: the same bits, and they wrap around, which is
#: undefined for signed ones in C++.
BITS = {"int32": "uint32", "int64": "uint64"}
#: What is added by atomics.
_ATOMIC = ("float32", "float64", *BITS.values())
REDUCTIONS = {"sum": "Sum", "product": "Product", "max": "Max", "min": "Min"}
#: What rows of elements of so many bytes are moved as.
_MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
#: Sorted positions that one group of lanes reduces: few where there is little to do.
_CHUNKS = (32, 16, 8)


def scatter_add(gpu: Executor, x: Any, ids: Any, rows: int,
                deterministic: bool | None = None) -> Any:
    """y[r, …] = Σ x[i, …] over i with ids[i] = r; ids outside [0, rows) are dropped.

    The gradient of an embedding's table for cotangents x and indices ids. Floats of two bytes are
    summed in float32.

    Args:
        x: [count, …] of a dtype in DTYPES.
        ids: int32 or int64 [count].
        deterministic: sums in the order of `ids`, through a sort. Without it float32 and float64
            are added by atomics, in no fixed order. None: what `enable_op_determinism` asks for.

    Returns:
        [rows, …], or None for other dtypes.
    """
    if dtype_name(x.dtype) not in DTYPES or dtype_name(ids.dtype) not in INDICES:
        return None
    name = _computed(dtype_name(x.dtype), "sum")
    if deterministic is None:
        deterministic = Modes.deterministic
    # Sums of two-byte floats are taken in float32, and an atomic would round at every step.
    # Integers give the same bits in any order.
    if name not in _ATOMIC or (deterministic and name in FLOATS):
        return segment_reduce(gpu, x, ids, rows, "sum")
    y = gpu.zeros((rows, *x.shape[1:]), x.dtype)
    if not y.size or not x.size:
        return y
    count, inner = x.shape[0], math.prod(x.shape[1:])
    grid, lanes = row_geometry(gpu, count, words(inner, x.dtype.itemsize))
    kernel = shipped_kernel("scatter.cu", "scatter_add", name, dtype_name(ids.dtype))
    gpu.launch(kernel, grid, (BLOCK, 1, 1), (_as(gpu.contiguous(x), name), gpu.contiguous(ids),
                                             _as(y, name), rows, count, inner, lanes))
    return y


def scatter_nd(gpu: Executor, indices: Array, updates: Array, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` with updates[I] added at indices[I]; tuples out of range are dropped. None
    for updates of a dtype that is not in DTYPES, or as in `flat_rows`."""
    flat = flat_rows(gpu, indices, shape) if dtype_name(updates.dtype) in DTYPES else None
    if flat is None:
        return None
    depth = indices.shape[-1]
    rows = updates.reshape((flat.size, *shape[depth:]))
    table = scatter_add(gpu, rows, flat.reshape(-1), math.prod(shape[:depth]))
    return table.reshape(shape)


def scatter_update(gpu: Executor, out: Array, indices: Array, updates: Array) -> Any:
    """Write updates[I] into `out` at indices[I]; the last of equal tuples stands, and tuples out
    of range are dropped.

    Args:
        out: any dtype of up to 8 bytes, C-contiguous.
        indices: int32 or int64 [*I, depth].
        updates: indices.shape[:-1] + out.shape[depth:], of the dtype of `out`.

    Returns:
        `out`, or None for other dtypes; then it is as it was.
    """
    name = _MOVED.get(out.dtype.itemsize)
    flat = flat_rows(gpu, indices, out.shape) if name else None
    if flat is None or name is None:
        return None
    if not out.size or not updates.size:
        return out
    depth = indices.shape[-1]
    rest = out.shape[depth:]
    table = out.view(name).reshape((math.prod(out.shape[:depth]), *rest))
    values = gpu.contiguous(updates).view(name).reshape((flat.size, *rest))
    _reduce_sorted(gpu, values, flat.reshape(-1), table, "Last")
    return out


def tensor_scatter_update(gpu: Executor, tensor: Array, indices: Array, updates: Array) -> Any:
    """A copy of `tensor` with updates[I] at indices[I]; see `scatter_update`."""
    return scatter_update(gpu, gpu.xp.array(gpu.contiguous(tensor)), indices, updates)


def put_last(gpu: Executor, indices: Array, updates: Array, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` with updates[I] at indices[I]; see `scatter_update`."""
    return scatter_update(gpu, gpu.zeros(shape, updates.dtype), indices, updates)


def segment_extreme(gpu: Executor, x: Array, ids: Array, count: int, largest: bool,
                    zeros: bool) -> Any:
    """The largest or smallest rows of segments; None where what has no rows is 0, which only the
    array function tells from the extremes."""
    return None if zeros else segment_reduce(gpu, x, ids, count, "max" if largest else "min")


def segment_reduce(gpu: Executor, x: Any, ids: object, count: int, reduction: str) -> Any:
    """y[r, …] = the sum, product, max or min of x[i, …] over i with ids[i] = r.

    Deterministic: rows are combined in their order. Where there is none: 0, 1, the lowest and the
    highest finite value. A nan wins. Ids outside [0, count) are dropped.

    Args:
        x: [n, …] of a dtype in DTYPES.
        ids: integers [n].
        reduction: "sum", "product", "max" or "min".

    Returns:
        [count, …], or None for other dtypes.
    """
    if dtype_name(x.dtype) not in DTYPES:
        return None
    out = empty_segments(gpu, (count, *x.shape[1:]), x.dtype, reduction)
    if not out.size or not x.size:
        return out
    name = _computed(dtype_name(x.dtype), reduction)
    _reduce_sorted(gpu, _as(gpu.contiguous(x), name), ids, _as(out, name), REDUCTIONS[reduction])
    return out


def _reduce_sorted(gpu: Executor, x: Any, ids: Any, y: Any, function: str) -> None:
    """Reduce the rows of x by their ids into y, in the order of the rows."""
    rows, count, inner, name = y.shape[0], x.shape[0], math.prod(x.shape[1:]), dtype_name(x.dtype)
    # Stable, so that rows of one id are combined in their order: the same bits every time.
    order = gpu.xp.argsort(ids, kind="stable").astype("int64", copy=False)
    ranked = ids[order].astype("int64", copy=False)
    pieces = words(inner, x.dtype.itemsize)
    chunk = next((c for c in _CHUNKS if count * pieces // c >= gpu.multiprocessors * 1024),
                 _CHUNKS[-1])
    chunks = -(-count // chunk)
    partial = gpu.empty((chunks, 2, inner), numpy_dtype(compute_dtype(name)))
    grid, lanes = row_geometry(gpu, chunks, pieces, each=1)
    gpu.launch(shipped_kernel("scatter.cu", "segment_reduce", name, function), grid, (BLOCK, 1, 1),
               (x, order, ranked, y, partial, rows, count, inner, chunk, lanes))
    if chunks > 1:
        grid, lanes = row_geometry(gpu, chunks, inner, each=1)
        gpu.launch(shipped_kernel("scatter.cu", "segment_join", name, function), grid,
                   (BLOCK, 1, 1), (ranked, partial, y, rows, count, inner, chunk, lanes))


def _computed(dtype: str, reduction: str) -> str:
    """The dtype as which a reduction takes arrays of `dtype`."""
    return BITS.get(dtype, dtype) if reduction in ("sum", "product") else dtype


def _as(array: Any, dtype: str) -> Any:
    """`array`, its memory read as `dtype`."""
    return array if dtype_name(array.dtype) == dtype else array.view(dtype)


def empty_segments(gpu: Executor, shape: tuple[int, ...], dtype: np.dtype, reduction: str) -> Any:
    """What segments without rows hold."""
    if reduction == "sum":
        return gpu.zeros(shape, dtype)
    limits = as_dtype(dtype.name)
    fill = {"product": 1, "max": limits.min, "min": limits.max}[reduction]
    return gpu.xp.full(shape, fill, dtype)
