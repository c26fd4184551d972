"""Sums of floats, and means of integers, that lose nothing.

NumPy adds in pairs along the axis that lies together in memory, and one by one along all others:
of 10^6 float32 numbers near 1000 in a column it leaves two digits. Here only blocks of terms are
added one after another: the rows of a matrix in blocks of rows far from each other, which are
long vectors, and what comes of these in blocks again. A block is a product with ones, for which
BLAS takes less than half of the time that NumPy takes for sums of columns.

A running sum in one float32 loses a digit for every power of ten of its length. NumPy's own takes
the time of one addition after another for each element; here blocks of STEPS elements are summed
side by side in float64, and then moved by the sums of those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from .arrays import Array, is_short

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


# Up to this length a running sum in float32 is exact enough, and faster.
SHORT = 256
STEPS = 16
# Elements in a row from which one call for each row costs less than blocks.
_WIDE = 512
# Elements up to which calls cost more than they save; elements of float64 that stay in the cache.
_FEW, _CHUNK = 1 << 14, 1 << 17


def running_sum(x: Array, axis: int) -> Array:
    """y[j] = sum of x[k] over k <= j along `axis`, in the dtype of x: float32 is added in float64
    and rounded once, where more than SHORT are added, and complex64 in complex128."""
    if x.dtype.char not in "fF" or x.shape[axis] <= SHORT:
        return np.cumsum(x, axis, x.dtype)
    if x.size < _FEW or x.dtype.char == "F":
        return np.cumsum(x, axis, "f8" if x.dtype.char == "f" else "c16").astype(x.dtype)
    return _in_blocks(x, axis)


def _in_blocks(x: Array, axis: int) -> Array:
    shape = x.shape
    outer, length, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    source, sums = x.reshape(outer, length, inner), np.empty((outer, length, inner), x.dtype)
    rows = max(_CHUNK // max(length * inner, 1), 1)
    steps = max(_CHUNK // max(inner, 1) // STEPS, 1) * STEPS
    for row in range(0, outer, rows):
        before = np.zeros((1, inner))
        for start in range(0, length, steps):
            part = slice(row, row + rows), slice(start, start + steps)
            wide = source[part].astype(np.float64)
            wide[:, 0] += before
            _accumulate(wide)
            sums[part] = wide
            before = wide[:, -1]
    return sums.reshape(shape)


def _accumulate(x: Array) -> None:
    """The running sum of x [outer, length, inner] along its middle axis, in its place."""
    outer, length, inner = x.shape
    count = length // STEPS
    if inner >= _WIDE or count < 2:
        for j in range(1, length):
            x[:, j] += x[:, j - 1]
        return
    whole = count * STEPS
    blocks = x[:, :whole].reshape(outer, count, STEPS, inner)
    for j in range(1, STEPS):
        blocks[:, :, j] += blocks[:, :, j - 1]
    blocks[:, 1:] += np.cumsum(blocks[:, :-1, -1], axis=1)[:, :, None]
    for j in range(whole, length):
        x[:, j] += x[:, j - 1]


_LOWER = 2**32 - 1


def integer_mean(xp: ModuleType, x: Array, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """The mean of x over `axes`, rounded towards zero; 0 for no elements. Numbers of 64 bits are
    added as their upper and their lower halves, each of which fits for less than 2^32 elements, and
    long division puts them together."""
    count = max(prod([x.shape[a] for a in axes]), 1)
    if _fits(xp, x, count):
        wide = np.uint64 if x.dtype.kind == "u" else np.int64
        sums = x.sum(axis=axes, keepdims=keepdims, dtype=wide)
        whole, rest = sums // wide(count), sums % wide(count)
    else:
        wide = x.dtype.type
        high = (x >> wide(32)).sum(axis=axes, keepdims=keepdims, dtype=wide)
        low = (x & wide(_LOWER)).sum(axis=axes, keepdims=keepdims, dtype=wide)
        high += low >> wide(32)
        left = (high % wide(count)).astype(np.uint64) << np.uint64(32)
        left += (low & wide(_LOWER)).astype(np.uint64)
        whole = (high // wide(count) << wide(32)) + (left // np.uint64(count)).astype(wide)
        rest = left % np.uint64(count)
    # Both quotients are rounded down.
    return xp.asarray(whole + ((whole < 0) & (rest != 0))).astype(x.dtype)


def _fits(xp: ModuleType, x: Array, count: int) -> bool:
    """Whether sums of `count` of the elements are known to fit into 64 bits."""
    if x.dtype.itemsize < 8 or not x.size:
        return True
    if xp is not np:  # looking would wait for the device
        return False
    return count * max(int(x.max()), -int(x.min())) < 2**63
