"""Grayscale dilation and erosion: convolution with max and + in place of + and ×."""

from __future__ import annotations

from typing import Any

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import pooling
from gtape.numerics.windows import Pads, cells, out_sizes, pad
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import one_dtype, taken
from gtape.ops.linalg.products import pair
from gtape.ops.nn.window_arguments import (
    Sizes,
    Windows,
    is_channels_first,
    require_rank,
    window_outputs,
)


@primitive(outputs="best winners", tf_name="Dilation2D")
def dilation_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
              pads: Pads) -> tuple[Array, ...]:
    """y[n, o, c] = max over k of x[n, o · stride + k · dilation, c] + filters[k, c], and that k."""
    size = filters.shape[:-1]
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    padded = pad(xp, x, pads, -float("inf"))
    best = xp.full((x.shape[0], *outs, x.shape[-1]), -float("inf"), x.dtype)
    winners = xp.zeros(best.shape, xp.int32)
    for number, (cell, where) in enumerate(cells(size, outs, strides, dilations)):
        value = padded[where] + filters[cell]
        better = value > best
        best = xp.where(better, value, best)
        winners = xp.where(better, xp.int32(number), winners)
    return best, winners


@dilation_.infer
def _(x: Spec, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads) -> tuple[Spec, ...]:
    one_dtype("dilation2d", (x, filters))
    taken("dilation2d", "real floating tensors", x)
    if x.shape[-1] != filters.shape[-1]:
        raise InvalidArgumentError(f"dilation2d: the filter must be [h, w, C] with the channels of "
                                   f"the input; got input {x}, filter {filters}")
    outs = window_outputs("dilation2d", x.shape[1:-1], filters.shape[:-1], strides, dilations, pads)
    shape = (x.shape[0], *outs, x.shape[-1])
    return x.reshaped(shape), Spec(shape, dtypes.int32)


dilation_.vjp(x=lambda gs, x_spec, filters_spec, winners, **attrs:
              put_winners_(gs[0], winners, shape=x_spec.shape, size=filters_spec.shape[:-1],
                           **attrs))
dilation_.vjp(filters=lambda gs, filters_spec, winners:
              put_cells_(gs[0], winners, size=filters_spec.shape[:-1]))


@primitive(linear="a")
def put_winners_(xp: ArrayModule, a: Array, winners: Array, *, shape: Sizes, size: Sizes,
                 strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    """a added to the cell that won in each window, in zeros of `shape`."""
    return pooling.unpool(xp, a, winners, shape, size, strides, dilations, pads)


put_winners_.infer(lambda a, winners, *, shape, **_: a.reshaped(shape))
put_winners_.vjp(a=lambda g, winners, *, shape, **attrs: pick_winners_(g, winners, **attrs))


@primitive(linear="x")
def pick_winners_(xp: ArrayModule, x: Array, winners: Array, *, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Any:
    """The values of x where each window was won: the adjoint of put_winners_."""
    return pooling.pick(xp, x, winners, size, strides, dilations, pads)


pick_winners_.infer(lambda x, winners, **_: x.reshaped(winners.shape))
pick_winners_.vjp(x=lambda g, x_spec, winners, **attrs:
                  put_winners_(g, winners, shape=x_spec.shape, **attrs))


@primitive(linear="a")
def put_cells_(xp: ArrayModule, a: Array, winners: Array, *, size: Sizes) -> Any:
    """y[k, c]: the sum of a[n, o, c] where cell k won."""
    axes = tuple(range(a.ndim - 1))
    numbers = range(size[0] * size[1])
    sums = [xp.sum(xp.where(winners == n, a, 0), axis=axes, dtype=a.dtype) for n in numbers]
    return xp.stack(sums).reshape((*size, a.shape[-1]))


put_cells_.infer(lambda a, winners, *, size: a.reshaped((*size, a.shape[-1])))
put_cells_.vjp(a=lambda g, winners: pick_cells_(g, winners))


@primitive(linear="filters")
def pick_cells_(xp: ArrayModule, filters: Array, winners: Array) -> Any:
    """y[n, o, c] = filters[k, c] for the cell k that won: the adjoint of put_cells_."""
    channels = filters.shape[-1]
    return filters.reshape(-1, channels)[winners, xp.arange(channels)]


pick_cells_.infer(lambda filters, winners: filters.reshaped(winners.shape))
pick_cells_.vjp(filters=lambda g, filters_spec, winners:
                put_cells_(g, winners, size=filters_spec.shape[:-1]))


_ATTRS: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1))}
dilation_.cases = [case((2, 4, 3, 2), (2, 2, 2), **_ATTRS)]
put_winners_.cases = [case((2, 4, 2, 2), ints(2, 4, 2, 2, below=4), shape=(2, 4, 3, 2),
                           size=(2, 2), **_ATTRS)]
pick_winners_.cases = [case((2, 4, 3, 2), ints(2, 4, 2, 2, below=4), size=(2, 2), **_ATTRS)]
put_cells_.cases = [case((2, 4, 2, 2), ints(2, 4, 2, 2, below=4), size=(2, 2))]
pick_cells_.cases = [case((2, 2, 2), ints(2, 4, 2, 2, below=4))]


def dilation2d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: str,
               data_format: str = "NHWC", dilations: IntsLike = 1, name: str | None = None,
               ) -> Tensor:
    """y[n, i, j, c] = max over a, b of x[n, i s + a d, j s + b d, c] + filters[a, b, c].

    A tie's gradient goes to the first cell.

    Raises:
        InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit.
        ValueError: a layout other than 'NHWC'.
    """
    name = "dilation2d"
    x, kernel = pair(name, input, filters)
    require_rank(name, "the input", x.spec, 4)
    require_rank(name, "the filter", kernel.spec, 3)
    if is_channels_first(name, data_format, 2):
        raise ValueError("dilation2d: data_format must be 'NHWC'; got 'NCHW'")
    windows = Windows(name, x.spec.shape, kernel.spec.shape[:2], strides, padding, None, dilations)
    return dilation_(x, kernel, **windows.attrs)[0]


def erosion2d(value: TensorLike, filters: TensorLike, strides: IntsLike, padding: str,
              data_format: str = "NHWC", dilations: IntsLike = 1, name: str | None = None,
              ) -> Tensor:
    """y[n, i, j, c] = min over a, b of x[n, i s + a d, j s + b d, c] - filters[a, b, c], with the
    filter mirrored as TensorFlow does: the negative of the dilation of -x.

    Raises:
        InvalidArgumentError, ValueError: as `dilation2d`.
    """
    x, kernel = pair("erosion2d", value, filters)
    require_rank("erosion2d", "the filter", kernel.spec, 3)
    mirrored = kernel[::-1, ::-1]
    return -dilation2d(-x, mirrored, strides, padding, data_format, dilations)
