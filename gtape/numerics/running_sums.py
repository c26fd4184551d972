"""Running sums of float32 in float64, in blocks that NumPy adds side by side.

A running sum in one float32 loses a digit for every power of ten of its length: of 10^7 numbers
near 1000 two are left. NumPy's own takes the time of one addition after another for each element;
here blocks of STEPS elements are summed side by side, and then moved by the sums of those before.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .precision import Array

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
    """The running sum of float32, in chunks."""
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
