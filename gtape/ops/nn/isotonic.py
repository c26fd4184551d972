"""Isotonic regression: the nearest monotone sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import normal_axes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int
from gtape.ops.shape.layout import reshape_, transpose_


class IsotonicRegression(NamedTuple):
    """The monotone values, and the number of the constant piece that each belongs to."""

    output: Tensor
    segments: Tensor


def _pieces(row: np.ndarray) -> np.ndarray:
    """The piece of each element, by pooling adjacent violators of a decreasing order."""
    sums: list[float] = []
    counts: list[int] = []
    for value in row.tolist():
        sums.append(value)
        counts.append(1)
        while len(sums) > 1 and sums[-1] * counts[-2] > sums[-2] * counts[-1]:
            total, count = sums.pop(), counts.pop()
            sums[-1] += total
            counts[-1] += count
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


@primitive(linear="x")
def piece_means_(xp: ArrayModule, x: Array, pieces: Array) -> Array:
    """Each value of [rows, n] replaced by the mean of its piece; self-adjoint."""
    rows, length = x.shape
    flat = (pieces + xp.arange(rows)[:, None] * length).reshape(-1)
    sums = xp.bincount(flat, weights=x.reshape(-1).astype(xp.float64), minlength=rows * length)
    counts = xp.bincount(flat, minlength=rows * length)
    means = sums / xp.maximum(counts, 1)
    return means[flat].reshape(x.shape).astype(x.dtype)


piece_means_.infer(lambda x, pieces: x)
piece_means_.vjp(x=lambda g, pieces: piece_means_(g, pieces))
piece_means_.cases = [case((2, 4), ints(2, 4, below=3))]


def isotonic_regression(inputs: TensorLike, decreasing: bool = True, axis: IntsLike = -1,
                        ) -> IsotonicRegression:
    """The decreasing (or increasing) sequence nearest to `inputs` along `axis`, and its pieces.

    Pool adjacent violators: Ayer et al. 1955, "An empirical distribution function for sampling
    with incomplete information". The gradient is averaged over each piece.

    Raises:
        InvalidArgumentError: a scalar, not real floating numbers, or no such axis.
    """
    x = convert(inputs)
    if not x.ndim or not x.dtype.is_floating:
        raise InvalidArgumentError(f"isotonic_regression takes real floating tensors of rank 1 or "
                                   f"more; got {x.spec}")
    (at,) = normal_axes("isotonic_regression", as_int(axis, "axis"), x.ndim)
    perm = (*(i for i in range(x.ndim) if i != at), at)
    moved = transpose_(x, perm=perm)
    shape = moved.spec.shape
    flat = reshape_(moved, shape=(int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]))
    host = flat._peek() if decreasing else -flat._peek()
    starts = np.array([_pieces(row) for row in host], np.int32).reshape(flat.spec.shape)
    pieces = EagerTensor(x._t.xp.asarray(starts), x._t.device.typed(dtypes.int32))
    back = tuple(int(i) for i in np.argsort(perm))
    output = reshape_(piece_means_(flat, pieces), shape=shape)
    segments = reshape_(pieces, shape=shape)
    return IsotonicRegression(transpose_(output, perm=back), transpose_(segments, perm=back))
