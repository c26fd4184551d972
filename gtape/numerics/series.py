"""Evaluation of approximations: polynomials, Chebyshev series, and functions over whole arrays."""

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from .arrays import Array, blocks

# Functions of tens of passes run fastest on pieces that stay in a core's cache.
HOST_BLOCK = 1 << 17


def horner(xp: ModuleType, coefficients: Sequence[object], x: Array) -> Array:
    """sum of coefficients[k] * x**k."""
    total = xp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


def chebyshev(xp: ModuleType, coefficients: Sequence[float], t: Array) -> Array:
    """sum of coefficients[k] * T_k(t) for t in [-1, 1]. Clenshaw 1955, "A note on the summation of
    Chebyshev series"."""
    twice = t + t
    newer, older = xp.full_like(t, coefficients[-1]), xp.zeros_like(t)
    for coefficient in reversed(coefficients[1:-1]):
        # Into the array that is read last here: two arrays serve the whole recurrence.
        xp.subtract(twice * newer, older, out=older)
        older += coefficient
        newer, older = older, newer
    return t * newer - older + coefficients[0]


def over_arrays(function: Callable[..., Array], single: bool = False) -> Callable[..., Array]:
    """function(xp, *inputs) over broadcast float arrays, in the dtype of the first. `function` gets
    float64 pieces, or float32 ones where `single` holds and the inputs are not float64; NumPy's
    warnings are silent because special values are part of the functions."""
    def over(xp: ModuleType, *inputs: Array) -> Array:
        narrow = single and all(x.dtype != xp.float64 for x in inputs)
        inner = xp.float32 if narrow else xp.float64
        arrays = xp.broadcast_arrays(*inputs)
        flat = [x.ravel() for x in arrays]
        result = xp.empty(flat[0].size, inputs[0].dtype)
        with np.errstate(all="ignore"):
            for block in blocks(xp, result.size, result.dtype.itemsize, HOST_BLOCK):
                result[block] = function(xp, *(x[block].astype(inner) for x in flat))
        return result.reshape(arrays[0].shape)

    return over
