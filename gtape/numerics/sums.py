"""Sums of floats in blocks, so that rounding errors do not grow with the number of terms.

NumPy adds in pairs along the axis that lies together in memory, and one by one along all others:
of 10^6 float32 numbers near 1000 in a column it leaves two digits. Here no more than BLOCK terms
are added one after another: the rows of a matrix in blocks of rows far from each other, which are
long vectors, and what comes of these in blocks again. A block is a product with ones, for which
BLAS takes less than half of the time that NumPy takes for sums of columns.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .precision import Array, is_short

# Terms that are added one after another. Longer blocks were not faster.
BLOCK = 256
_ONES = {kind: np.ones(BLOCK, kind) for kind in "fd"}
# Terms of a dot product, which BLAS adds in some 32 lanes.
_DOT = 1 << 14
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
            made = columns(x)
            return made[None] if keepdims else made
        if _one_by_one(x, axes) > BLOCK:
            made = _ordered(x, axes)
            return made if not keepdims else np.reshape(
                made, [1 if a in axes else n for a, n in enumerate(x.shape)])
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
    if rows <= BLOCK:
        return ones[:rows].dot(x)
    if width == 1:
        return np.add.reduce(x.reshape(rows), keepdims=True)
    far = rows // BLOCK
    whole = far * BLOCK
    made = columns(ones.dot(x[:whole].reshape(BLOCK, far * width)).reshape(far, width))
    if whole < rows:
        made += ones[: rows - whole].dot(x[whole:])
    return made


def _ordered(x: Array, axes: Sequence[int]) -> Array:
    """The sum over `axes`, taken in the order in which the axes lie in memory."""
    repeated = [a for a in axes if x.strides[a] == 0 and x.shape[a] > 1]
    if repeated:
        count = x.dtype.type(prod([x.shape[a] for a in repeated]))
        once = x[tuple([slice(1) if a in repeated else slice(None) for a in range(x.ndim)])]
        return total(once, axes) * count
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))
    made = _runs(np.ascontiguousarray(x.transpose(order)), [a in axes for a in order])
    kept = [a for a in order if a not in axes]
    if not kept:
        return made[()]
    return made.reshape([x.shape[a] for a in kept]).transpose(np.argsort(kept))


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
    if outer == 1:
        return columns(x[0])[None]
    far = count // BLOCK
    whole = far * BLOCK
    blocks = x[:, :whole].reshape(outer, BLOCK, far * inner)
    made = _middle((_ONES[x.dtype.char] @ blocks).reshape(outer, far, inner))
    if whole < count:
        made += np.add.reduce(x[:, whole:], axis=1)
    return made


def squares(x: Array) -> Array:
    """Σ x² over all elements of x, real floats."""
    flat = x.reshape(-1)
    count = flat.size // _DOT
    if type(x) is not np.ndarray or count < 2:
        return flat.dot(flat)
    whole, rest = flat[: count * _DOT], flat[count * _DOT :]
    parts = whole.reshape(count, 1, _DOT) @ whole.reshape(count, _DOT, 1)
    return total(parts.reshape(count), (0,)) + rest.dot(rest)
