"""Sums, products and extrema of rows that share an id (unsorted segments), along axis 0.

Ids outside [0, count) are dropped.  Every function keeps the dtype of its rows.
"""

from collections.abc import Callable
from math import prod
from types import ModuleType

import numpy as np

from .arrays import Array, blocks, working

# One int64 position per element is made for each block of rows.
HOST_BLOCK = 1 << 25
# That many bytes of positions stay in the cache with what is added there: faster, and so free.
CACHE_BLOCK = 1 << 17
# From more rows than these, of which the result has at most one for every DENSE, sums are float64:
# one to which so many are added loses digits in float32.
CROWD, DENSE = 1 << 10, 4
# Columns up to which one after another is faster than rows.
NARROW = 4


def segment_sum(xp: ModuleType, rows: Array, ids: Array, count: int, wide: bool = False) -> Array:
    """out[j] = sum of rows[i] over ids[i] == j; rows [n, ...], ids [n] -> [count, ...]. This is
    scatter-add. Elements are added through flat positions, which NumPy does 1.5 to 4 times faster
    than rows; the order of the sum on a device is not fixed. On the host, many rows in few sums are
    added in float64 where they are shorter, and where `wide` all are."""
    row_shape = rows.shape[1:]
    flat = _addable(xp, rows.reshape(rows.shape[0], prod(row_shape)))
    ids = _kept(xp, ids, count)
    crowded = ids.size > CROWD and ids.size >= DENSE * count
    if xp is np and flat.dtype == np.float32 and (wide or crowded):
        total = _wide_sum(flat, ids, count)
    else:
        total = _added(xp, flat, ids, count, flat.dtype, HOST_BLOCK)
    return _restored(total[:count].reshape(-1), rows.dtype).reshape(count, *row_shape)


def _added(xp: ModuleType, rows: Array, ids: Array, count: int, dtype: np.dtype,
           host_block: int) -> Array:
    """[count + 1, width]: the rows of each id, added one after another in `dtype`."""
    height, width = rows.shape
    total = xp.zeros((count + 1) * width, dtype)
    first, columns = ids[:, None] * width, xp.arange(width)
    for block in blocks(xp, height, 8 * width, host_block):
        added = rows[block].astype(dtype, copy=False)
        xp.add.at(total, (first[block] + columns).ravel(), added.ravel())
    return total.reshape(count + 1, width)


def _wide_sum(rows: Array, ids: Array, count: int) -> Array:
    """`_added` in float64, of float32 and for float32."""
    # `bincount` adds in float64 and in one pass of C, a column at a time.
    if 0 < rows.shape[1] <= NARROW:
        columns = [np.bincount(ids, column, count + 1) for column in rows.T]
        return np.stack(columns, axis=1, dtype=np.float32, casting="same_kind")
    return _added(np, rows, ids, count, np.dtype(np.float64), CACHE_BLOCK).astype(np.float32)


def segment_prod(xp: ModuleType, rows: Array, ids: Array, count: int) -> Array:
    """out[j] = product of rows[i] over ids[i] == j, 1 where there is none."""
    return _reduce(xp, xp.multiply, rows, ids, count, 1)


def segment_max(xp: ModuleType, rows: Array, ids: Array, count: int) -> Array:
    """out[j] = largest rows[i] over ids[i] == j, the least finite value where there is none. A NaN
    wins."""
    return _reduce(xp, xp.maximum, rows, ids, count, _limits(xp, rows.dtype).min)


def segment_min(xp: ModuleType, rows: Array, ids: Array, count: int) -> Array:
    """out[j] = least rows[i] over ids[i] == j, the largest finite value where there is none. A NaN
    wins."""
    return _reduce(xp, xp.minimum, rows, ids, count, _limits(xp, rows.dtype).max)


def segment_count(xp: ModuleType, ids: Array, count: int) -> Array:
    """out[j] = how many ids equal j, int64."""
    return xp.bincount(_kept(xp, ids, count), minlength=count + 1)[:count]


def _reduce(xp: ModuleType, combine: Callable[[Array, Array], Array], rows: Array, ids: Array,
            count: int, empty: float | np.floating) -> Array:
    """Rows of one id combined as a balanced tree: after a stable sort by id, every round
    combines each even row of a segment with the next, so ceil(log2 of the longest segment)
    rounds over halving data are enough."""
    ids = _kept(xp, ids, count)
    # Stable: rows of one id are combined in the order in which they stand.
    order = xp.argsort(ids, kind="stable")
    ids, values = ids[order], working(xp, rows)[order]
    rank = xp.arange(ids.size) - xp.searchsorted(ids, ids)
    while int((rank > 0).any()):
        odd = xp.flatnonzero(rank % 2)
        values[odd - 1] = combine(values[odd - 1], values[odd])
        even = xp.flatnonzero(rank % 2 == 0)
        ids, values, rank = ids[even], values[even], rank[even] // 2
    total = xp.full((count + 1, *rows.shape[1:]), empty, rows.dtype)
    total[ids] = values.astype(rows.dtype, copy=False)
    return total[:count]


def _kept(xp: ModuleType, ids: Array, count: int) -> Array:
    """ids with each one outside [0, count) replaced by `count`, a row that is thrown away."""
    return xp.where((ids >= 0) & (ids < count), ids, count).astype(xp.int64, copy=False)


def _addable(xp: ModuleType, flat: Array) -> Array:
    """The matrix in a dtype that devices add atomically: complex numbers as pairs of reals,
    integers modulo 2^64 or in 32 bits, short floats in float32."""
    flat = xp.ascontiguousarray(working(xp, flat))
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype)
    if flat.dtype == xp.int64:
        return flat.view(xp.uint64)
    if flat.dtype.kind in "iub" and flat.dtype.itemsize < 4:
        return flat.astype(xp.int32)
    return flat


def _restored(total: Array, dtype: np.dtype) -> Array:
    """Sums made by `_addable` in the rows' dtype again."""
    if dtype.kind == "c" or (dtype.kind == "i" and dtype.itemsize == 8):
        return total.view(dtype)
    return total.astype(dtype, copy=False)


class _Bfloat16:
    """The finite limits of the one dtype that NumPy does not know: 8 bits of a float32's 24."""

    max = (2 - 2.0**-7) * 2.0**127
    min = -max


def _limits(xp: ModuleType, dtype: np.dtype) -> np.iinfo | np.finfo | type[_Bfloat16]:
    if dtype.kind in "iu":
        return xp.iinfo(dtype)
    return xp.finfo(dtype) if dtype.kind == "f" else _Bfloat16
