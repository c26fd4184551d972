"""The nearest point that has a form: a monotone sequence, a grid of few numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gtape.autodiff.custom_gradient import custom_gradient
from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int
from gtape.ops.elementwise import scalars as s
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
        # Means compared by products: no quotient is rounded, and equal ones stay apart.
        while len(sums) > 1 and sums[-1] * counts[-2] > sums[-2] * counts[-1]:
            total, count = sums.pop(), counts.pop()
            sums[-1] += total
            counts[-1] += count
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


@primitive(linear="x")
def piece_means_(xp: ArrayModule, x: Array, pieces: Array) -> Array:
    """Each value of [rows, n] replaced by the mean of its piece; self-adjoint."""
    rows, length = x.shape
    # One count for all rows, each with numbers of its own; float64, since pieces may be long.
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

    Raises InvalidArgumentError: a scalar, not real floating numbers, or no such axis."""
    x = convert(inputs)
    if not x.ndim or not x.dtype.is_floating:
        raise InvalidArgumentError(f"isotonic_regression takes real floating tensors of rank 1 or "
                                   f"more; got {x.spec}")
    (at,) = normal_axes("isotonic_regression", as_int(axis, "axis"), x.ndim)
    # Exchanged with the last axis, which is its own way back.
    perm = list(range(x.ndim))
    perm[at], perm[-1] = perm[-1], perm[at]
    moved = transpose_(x, perm=tuple(perm))
    shape = moved.spec.shape
    flat = reshape_(moved, shape=(math.prod(shape[:-1]), shape[-1]))
    # The pieces are found on the host, value by value: each step depends on all before it.
    host = flat._peek() if decreasing else -flat._peek()
    numbers = np.array([_pieces(row) for row in host], np.int32).reshape(flat.spec.shape)
    pieces = EagerTensor(x._t.xp.asarray(numbers), x._t.device.typed(dtypes.int32))
    return IsotonicRegression(*[transpose_(reshape_(y, shape=shape), perm=tuple(perm))
                                for y in (piece_means_(flat, pieces), pieces)])


@primitive(outputs="bottom top step", nondifferentiable=True)
def nudge_(xp: ArrayModule, low: Array, high: Array, *, levels: int, first: int,
           ) -> tuple[Array, Array, Array]:
    """The range moved so that 0 is on its grid, and the step of the grid."""
    # Zero must be on the grid, since paddings and relu make exact zeros (arXiv:1712.05877); halves
    # are rounded up, as TensorFlow does, not to even.
    step = (high - low) / (levels - first)
    zero = xp.floor(xp.clip(first - low / step, first, levels) + 0.5).astype(low.dtype)
    return (first - zero) * step, (levels - zero) * step, step


@nudge_.infer
def _(low: Spec, high: Spec, *, levels: int, first: int) -> tuple[Spec, Spec, Spec]:
    if low != high or low.dtype is not float32 or low.ndim > 1:
        raise InvalidArgumentError(f"fake_quant: min and max must be float32 scalars, or vectors "
                                   f"with a number for each channel; got {low}, {high}")
    return low, low, low


def _snap(xp: ArrayModule, x: Array, low: Array, step: Array) -> Array:
    return xp.floor((x - low) * (1 / step) + xp.asarray(0.5, x.dtype)) * step + low


snap = s.scalar_op("snap(x, low, step)", numpy=_snap, names=("x", "low", "step"), domain=None,
                   types="real_float", cuda="floor((x - low) * (1 / step) + 0.5) * step + low",
                   doc="The nearest point low + n step. Not differentiable.",
                   d_x=None, d_low=None, d_step=None)


def _fake_quant(inputs: TensorLike, low: TensorLike, high: TensorLike, num_bits: int,
                narrow_range: bool) -> Tensor:
    x = convert(inputs)
    if x.dtype is not float32:
        raise InvalidArgumentError(f"fake_quant takes float32; got {x.spec}. Use tf.cast")
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"fake_quant: num_bits must lie in [2, 16]; got {num_bits}")
    bounds = [convert(v, float32, x._t.device) for v in (low, high)]
    levels, first = 2 ** int(num_bits) - 1, 1 if narrow_range else 0

    # Straight through: what clips x sends its cotangents to the bounds as they were given.
    @custom_gradient
    def grid(low: Tensor, high: Tensor) -> Any:
        return nudge_(low, high, levels=levels, first=first), lambda bottom, top, _: (bottom, top)

    bottom, top, step = grid(*bounds)
    return _snapped(s.clip(x, bottom, top), bottom, step)


@custom_gradient
def _snapped(x: Tensor, low: Tensor, step: Tensor) -> Any:
    """`snap`, through which the gradient of x passes straight."""
    return snap(x, low, step), lambda g: (g, None, None)


def fake_quant_with_min_max_args(inputs: TensorLike, min: float = -6, max: float = 6,
                                 num_bits: int = 8, narrow_range: bool = False,
                                 name: str | None = None) -> Tensor:
    """`inputs` on a grid of 2^num_bits points between `min` and `max`, moved so that 0 is on it.

    The gradient passes unchanged between the bounds and is 0 outside (Bengio, Léonard &
    Courville 2013, arXiv:1308.3432; the grid: Jacob et al. 2017, arXiv:1712.05877).

    Raises InvalidArgumentError: not float32, min >= max, or num_bits outside [2, 16]."""
    if not min < max:
        raise InvalidArgumentError(f"fake_quant: min must be less than max; got {min}, {max}")
    return _fake_quant(inputs, float(min), float(max), num_bits, narrow_range)


def fake_quant_with_min_max_vars(inputs: TensorLike, min: TensorLike, max: TensorLike,
                                 num_bits: int = 8, narrow_range: bool = False,
                                 name: str | None = None) -> Tensor:
    """As `fake_quant_with_min_max_args`; `min` and `max` get the gradients of what they cut off."""
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel(
        inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: int = 8,
        narrow_range: bool = False, name: str | None = None) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with vectors of bounds for the channels (last axis).

    Raises:
        InvalidArgumentError: not float32, or the vectors do not have a number for each channel.
    """
    return _fake_quant(inputs, min, max, num_bits, narrow_range)
