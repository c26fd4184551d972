"""Sums of floats in blocks, so that rounding errors do not grow with the number of terms.

NumPy adds in pairs along the axis that lies together in memory, and one by one along all others:
of 10^6 float32 numbers near 1000 in a column it leaves two digits. Here only blocks of terms are
added one after another: the rows of a matrix in blocks of rows far from each other, which are
long vectors, and what comes of these in blocks again. A block is a product with ones, for which
BLAS takes less than half of the time that NumPy takes for sums of columns.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .precision import Array, is_short

# Terms that are added one after another, or up to twice as many where there are no more. Longer
# blocks were not faster.
BLOCK = 256
_ONES = {kind: np.ones(2 * BLOCK, kind) for kind in "fd"}
# Elements of a product, and terms of a dot product, up to which BLAS works in this thread alone:
# where another program has the other cores, waiting for them costs more than all of the sum.
_ALONE, _DOT = 3 << 16, 1 << 13
# Rows of the lowest block for which a product is faster.
_LOW = 32
_FLOATS = "fdFD"
_reduce: Any = np.add.reduce


def total(x: Array, axes: Sequence[int], keepdims: bool = False) -> Array:
    """The sum of x over `axes`, not negative and in order, in the dtype of x; short floats are
    added in float32."""
    if x.dtype.itemsize == 2 and is_short(x.dtype):
        wide = total(x.astype(np.float32), axes, keepdims)
        return wide.astype(x.dtype)
    if type(x) is not np.ndarray:  # a number, or an array of a device, which adds in trees itself
        return x.sum(axis=axes, keepdims=keepdims, dtype=x.dtype)
    if x.size > BLOCK and x.dtype.char in _FLOATS:
        if x.ndim == 2 and axes == (0,) and x.dtype.char in _ONES and x.flags.c_contiguous:
            sums = columns(x)
            return sums[None] if keepdims else sums
        if _one_by_one(x, axes) > BLOCK:
            sums = _ordered(x, axes)
            return sums if not keepdims else np.reshape(
                sums, [1 if a in axes else n for a, n in enumerate(x.shape)])
    return _reduce(x, axes, x.dtype, None, keepdims)


def _one_by_one(x: Array, axes: Sequence[int]) -> int:
    """How many terms of a sum NumPy would add one by one."""
    last = x.ndim - 1 if x.flags.c_contiguous or x.ndim == 1 else -1
    count = 1
    if not axes or axes[0] == last + 1 - len(axes):
        return count
    for axis in reversed(axes):
        if axis == last:
            last -= 1
        else:
            count *= x.shape[axis]
    return count


def columns(x: Array) -> Array:
    """The sum of each column of a matrix of float32 or float64 that lies together in memory."""
    rows, width = x.shape
    ones = _ONES[x.dtype.char]
    height = min(BLOCK, _ALONE // max(width, 1))
    if rows < 2 * height:
        return ones[:rows].dot(x)
    if width == 1:
        return _reduce(x, 0)
    if height < _LOW:  # long rows, which NumPy adds as fast
        parts = [_reduce(x[i : i + BLOCK], 0)[None] for i in range(0, rows, BLOCK)]
        return parts[0][0] if len(parts) == 1 else columns(np.concatenate(parts))
    parts = []
    far = _ALONE // (height * width)
    for start in range(0, rows, far * height):
        piece = x[start : start + far * height]
        high = len(piece) // height
        if high:
            block = piece[: high * height].reshape(height, high * width)
            parts.append(ones[:height].dot(block).reshape(high, width))
        if high * height < len(piece):
            rest = piece[high * height :]
            parts.append(ones[: len(rest)].dot(rest)[None])
    return columns(np.concatenate(parts))


def _ordered(x: Array, axes: Sequence[int]) -> Array:
    """The sum over `axes`, taken in the order in which the axes lie in memory."""
    repeated = [a for a in axes if x.strides[a] == 0 and x.shape[a] > 1]
    if repeated:
        count = x.dtype.type(prod([x.shape[a] for a in repeated]))
        once = x[tuple([slice(1) if a in repeated else slice(None) for a in range(x.ndim)])]
        return total(once, axes) * count
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))
    sums = _runs(np.ascontiguousarray(x.transpose(order)), [a in axes for a in order])
    kept = [a for a in order if a not in axes]
    if not kept:
        return sums[()]
    return sums.reshape([x.shape[a] for a in kept]).transpose(np.argsort(kept))


def _runs(x: Array, summed: Sequence[bool]) -> Array:
    """The sum over the axes that are `summed`, of an array that lies together in memory, with the
    other axes joined: the last of neighbouring axes first, each run of them at once."""
    runs: list[list[int]] = []
    for length, gone in zip(x.shape, summed, strict=True):
        if length == 1:
            continue
        if runs and runs[-1][1] == gone:
            runs[-1][0] *= length
        else:
            runs.append([length, gone])
    while any(gone for _, gone in runs):
        at = max(i for i, (_, gone) in enumerate(runs) if gone)
        count, _ = runs.pop(at)
        inner = prod([length for length, _ in runs[at:]])
        x = _middle(x.reshape(-1, count, inner))
        if 0 < at < len(runs):
            runs[at - 1 : at + 1] = [[runs[at - 1][0] * runs[at][0], False]]
    return x.reshape([length for length, _ in runs])


def _middle(x: Array) -> Array:
    """The sum [outer, inner] over the middle axis of an array that lies together in memory."""
    outer, count, inner = x.shape
    if inner == 1 or count <= BLOCK:
        return np.add.reduce(x, axis=1)
    if x.dtype.kind == "c":
        part = x.real.dtype
        return _middle(x.view(part).reshape(outer, count, 2 * inner)).view(x.dtype)
    if count * inner > _ALONE or outer == 1:
        return np.stack([columns(matrix) for matrix in x])
    far = count // BLOCK
    whole = far * BLOCK
    blocks = x[:, :whole].reshape(outer, BLOCK, far * inner)
    sums = _middle((_ONES[x.dtype.char][:BLOCK] @ blocks).reshape(outer, far, inner))
    if whole < count:
        sums += _reduce(x[:, whole:], 1)
    return sums


def squares(x: Array) -> Array:
    """Σ x² over all elements of x, real floats."""
    flat = x.reshape(-1)
    if type(x) is not np.ndarray or flat.size <= _DOT:
        return flat.dot(flat)
    count = flat.size // _DOT
    whole, rest = flat[: count * _DOT], flat[count * _DOT :]
    parts = whole.reshape(count, 1, _DOT) @ whole.reshape(count, _DOT, 1)
    return total(parts.reshape(count), (0,)) + rest.dot(rest)
