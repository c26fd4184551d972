"""Max and average pooling over 1 to 3 spatial axes; dilation and erosion, maxima of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import pooling as numerics
from gtape.numerics.windows import Pads, cells, out_sizes, pad
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import named, one_dtype, taken
from gtape.ops.elementwise.scalars import zero
from gtape.ops.linalg.products import pair
from gtape.ops.nn.window_arguments import (
    Sizes,
    Windows,
    is_channels_first,
    require_rank,
    spatial_rank,
    spatial_sizes,
    window_outputs,
)
from gtape.ops.shape.casting import cast


class MaxPoolWithArgmax(NamedTuple):
    """The largest values, and where they are in the flattened input."""

    output: Tensor
    argmax: Tensor


def _pooled(name: str, x: Spec, size: Sizes, **windows: Any) -> Spec:
    taken(name, "real numbers", x)
    outs = window_outputs(name, x.shape[1:-1], size, **windows)
    return x.reshaped((x.shape[0], *outs, x.shape[-1]))


# ---------------------------------------------------------------- maximum
@primitive(tf_name="MaxPool")
def max_pool_(xp: ArrayModule, x: Array, *, size: Sizes, strides: Sizes, dilations: Sizes,
              pads: Pads) -> Array:
    """The largest value of each window; padding never wins."""
    return numerics.max_pool(xp, x, size, strides, dilations, pads)


max_pool_.infer(lambda x, **attrs: _pooled("max_pool", x, **attrs))
max_pool_.on_cuda("kernels.windows.max_pool")
# x and y are kept, not where the largest was: the winners are found again in the backward, in
# one pass, and a map of them would be kept for every pooled value.
max_pool_.vjp(x=lambda g, x, y, **attrs: max_pool_grad_(g, x, y, **attrs))


@primitive(linear="a", outputs="total", tf_name="MaxPoolGrad")
def max_pool_grad_(xp: ArrayModule, a: Array, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """a added where the first cell of each window of x holds its largest value, y."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.unpool(xp, a, winners, x.shape, size, strides, dilations, pads)


max_pool_grad_.infer(lambda a, x, y, **_: x)
max_pool_grad_.on_cuda("kernels.windows.max_pool_grad")
max_pool_grad_.vjp(a=lambda g, x, y, **attrs: max_pool_pick_(g, x, y, **attrs))
# The winners do not move smoothly: zeros, and connected.
max_pool_grad_.vjp(x=lambda g: zero(g))


@primitive(linear="a", outputs="values", tf_name="MaxPoolGradGrad")
def max_pool_pick_(xp: ArrayModule, a: Array, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """The values of a where the windows of x have their largest values y."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.pick(xp, a, winners, size, strides, dilations, pads)


max_pool_pick_.infer(lambda a, x, y, **_: y)
max_pool_pick_.on_cuda("kernels.windows.max_pool_pick")
max_pool_pick_.vjp(a=lambda g, x, y, **attrs: max_pool_grad_(g, x, y, **attrs))


@primitive(nondifferentiable=True, outputs="index", tf_name="MaxPoolWithArgmax")
def max_pool_index_(xp: ArrayModule, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                    dilations: Sizes, pads: Pads, batch: bool) -> Array:
    """Where the largest values lie in each flattened image, or in the whole batch."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.flat_index(xp, winners, x.shape, size, strides, dilations, pads, batch)


max_pool_index_.infer(lambda x, y, **_: Spec(y.shape, dtypes.int64))
max_pool_index_.on_cuda("kernels.windows.max_pool_index")


# ---------------------------------------------------------------- average
@primitive(linear="x", tf_name="AvgPool")
def avg_pool_(xp: ArrayModule, x: Array, *, size: Sizes, strides: Sizes, dilations: Sizes,
              pads: Pads) -> Array:
    """The mean of each window over the cells that are not padding."""
    return numerics.avg_pool(xp, x, size, strides, dilations, pads)


avg_pool_.infer(lambda x, **attrs: _pooled(
    "avg_pool", taken("avg_pool", "real floating tensors", x), **attrs))
avg_pool_.on_cuda("kernels.windows.average_pool")
# Linear, so that the shape alone is kept.
avg_pool_.vjp(x=lambda g, x_spec, **attrs: avg_pool_grad_(g, shape=x_spec.shape, **attrs))


@primitive(linear="a", tf_name="AvgPoolGrad")
def avg_pool_grad_(xp: ArrayModule, a: Array, *, shape: Sizes, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of avg_pool_: each value shared out among the cells of its window."""
    return numerics.avg_pool_grad(xp, a, shape, size, strides, dilations, pads)


avg_pool_grad_.infer(lambda a, *, shape, **_: a.reshaped(shape))
avg_pool_grad_.on_cuda("kernels.windows.average_pool_grad")
avg_pool_grad_.vjp(a=lambda g, *, shape, **attrs: avg_pool_(g, **attrs))


_ONE: dict[str, Any] = {"size": (2,), "strides": (2,), "dilations": (1,), "pads": ((0, 1),)}
_TWO: dict[str, Any] = {"size": (2, 3), "strides": (1, 2), "dilations": (2, 1),
                        "pads": ((0, 0), (1, 1))}
max_pool_.cases = avg_pool_.cases = [case((2, 5, 2), **_ONE), case((1, 4, 5, 2), **_TWO)]
avg_pool_grad_.cases = [case((2, 3, 2), shape=(2, 5, 2), **_ONE)]
max_pool_grad_.cases = [case((2, 3, 2), (2, 5, 2), (2, 3, 2), **_ONE)]
max_pool_pick_.cases = [case((2, 5, 2), (2, 5, 2), (2, 3, 2), **_ONE)]


# ---------------------------------------------------------------- public functions
def _pool(name: str, input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: TensorLike,
          data_format: str | None, dilations: Any, rank: int | None, maximum: bool) -> Tensor:
    x = convert(input)
    rank = spatial_rank(name, x.spec) if rank is None else rank
    require_rank(name, "the input", x.spec, rank + 2)
    first = is_channels_first(name, data_format, rank)
    size = spatial_sizes(name, "ksize", ksize, rank, first)
    windows = Windows(name, x.spec.shape, size, strides, padding, data_format, dilations, rank)
    # Of no cells there is neither a largest value nor a mean: it would give -inf or 0 / 0.
    pads, gaps = windows.attrs["pads"], windows.attrs["dilations"]
    if any(max(added) > (n - 1) * gap for added, n, gap in zip(pads, size, gaps, strict=True)):
        raise InvalidArgumentError(f"{name}: the padding must be smaller than the window; got "
                                   f"padding {pads} and windows {size}")
    op = max_pool_ if maximum else avg_pool_
    return windows.laid_out(op(windows.last(x), size=size, **windows.attrs))


def _pooling(public: str, rank: int | None, layout: str | None, maximum: bool, doc: str,
             ) -> Callable[..., Tensor]:
    """The public function that pools over `rank` spatial axes, or those that its input has."""
    def pooling(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: TensorLike,
                data_format: str | None = layout, name: str | None = None) -> Tensor:
        return _pool(public, input, ksize, strides, padding, data_format, None, rank, maximum)

    return named(pooling, public, doc)


max_pool1d = _pooling("max_pool1d", 1, "NWC", True, "Max pooling of [N, W, C]; see `max_pool2d`.")
max_pool2d = _pooling("max_pool2d", 2, "NHWC", True, """\
The largest value of each window of [N, H, W, C]; a tie's gradient goes to the first cell.

    Args:
        ksize, strides: one number, one per spatial axis, or one per axis.
        padding: 'VALID', 'SAME', or pairs (before, after) for each axis; padding never wins.

    Raises:
        InvalidArgumentError: ranks, windows, strides or paddings that do not fit.
    """)
max_pool3d = _pooling("max_pool3d", 3, "NDHWC", True,
                      "Max pooling of [N, D, H, W, C]; see `max_pool2d`.")
max_pool = _pooling("max_pool", None, None, True,
                    "Max pooling over the 1 to 3 spatial axes of `input`; see `max_pool2d`.")
avg_pool1d = _pooling("avg_pool1d", 1, "NWC", False,
                      "Average pooling of [N, W, C]; see `avg_pool2d`.")
avg_pool2d = _pooling("avg_pool2d", 2, "NHWC", False, """\
The mean of each window of [N, H, W, C], padded cells not counted.

    Args as `max_pool2d`.

    Raises:
        InvalidArgumentError: ranks, windows, strides or paddings that do not fit.
    """)
avg_pool3d = _pooling("avg_pool3d", 3, "NDHWC", False,
                      "Average pooling of [N, D, H, W, C]; see `avg_pool2d`.")
avg_pool = _pooling("avg_pool", None, None, False,
                    "Average pooling over the 1 to 3 spatial axes of `input`; see `avg_pool2d`.")


def pool(input: TensorLike, window_shape: IntsLike, pooling_type: str, strides: Any = None,
         padding: str = "VALID", data_format: str | None = None, dilations: IntsLike | None = None,
         name: str | None = None) -> Tensor:
    """Pooling of type 'MAX' or 'AVG' over the 1 to 3 spatial axes of `input`, windows dilated.
    Raises ValueError: another pooling type;
    InvalidArgumentError: as `max_pool2d`."""
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pool: pooling_type must be 'MAX' or 'AVG'; got {shown(pooling_type)}")
    return _pool("pool", input, window_shape, strides, padding, data_format, dilations, None,
                 pooling_type == "MAX")


def max_pool_with_argmax(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
                         data_format: str = "NHWC", output_dtype: object = dtypes.int64,
                         include_batch_in_index: bool = False, name: str | None = None,
                         ) -> MaxPoolWithArgmax:
    """`max_pool2d`, and the positions (y W + x) C + c of the largest values in each image.

    Args:
        include_batch_in_index: positions in the whole batch: ((n H + y) W + x) C + c.

    Raises ValueError: a layout other than 'NHWC';
    InvalidArgumentError: as `max_pool2d`."""
    name = "max_pool_with_argmax"
    if data_format != "NHWC":
        raise ValueError(f"{name}: data_format must be 'NHWC'; got {shown(data_format)}")
    x = convert(input)
    require_rank(name, "the input", x.spec, 4)
    size = spatial_sizes(name, "ksize", ksize, 2, False)
    windows = Windows(name, x.spec.shape, size, strides, padding, data_format, 1)
    attrs = {"size": size, **windows.attrs}
    y = max_pool_(x, **attrs)
    index = max_pool_index_(x, y, batch=bool(include_batch_in_index), **attrs)
    # Counted in int64 always: a batch may have more than 2**31 numbers.
    return MaxPoolWithArgmax(y, cast(index, output_dtype))


@primitive(outputs="best winners", tf_name="Dilation2D")
def dilation_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
              pads: Pads) -> tuple[Array, ...]:
    """y[n, o, c] = max over k of x[n, o · stride + k · dilation, c] + filters[k, c], and that k."""
    size = filters.shape[:-1]
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    # Padding never wins.
    padded = pad(xp, x, pads, -float("inf"))
    best = xp.full((x.shape[0], *outs, x.shape[-1]), -float("inf"), x.dtype)
    winners = xp.zeros(best.shape, xp.int32)
    # Cell by cell over all windows at once: few cells, and long arrays for each.
    for number, (cell, where) in enumerate(cells(size, outs, strides, dilations)):
        value = padded[where] + filters[cell]
        # Not >=: the first cell wins a tie, as in TensorFlow.
        better = value > best
        best = xp.where(better, value, best)
        winners = xp.where(better, xp.int32(number), winners)
    return best, winners


@dilation_.infer
def _(x: Spec, filters: Spec, **windows: Any) -> tuple[Spec, ...]:
    one_dtype("dilation2d", (x, filters))
    taken("dilation2d", "real floating tensors", x)
    if x.shape[-1] != filters.shape[-1]:
        raise InvalidArgumentError(f"dilation2d: the filter must be [h, w, C] with the channels of "
                                   f"the input; got input {x}, filter {filters}")
    outs = window_outputs("dilation2d", x.shape[1:-1], filters.shape[:-1], **windows)
    shape = (x.shape[0], *outs, x.shape[-1])
    return x.reshaped(shape), Spec(shape, dtypes.int32)


dilation_.vjp(x=lambda gs, x_spec, filters_spec, winners, **attrs:
              put_winners_(gs[0], winners, shape=x_spec.shape, size=filters_spec.shape[:-1],
                           **attrs))
dilation_.vjp(filters=lambda gs, filters_spec, winners:
              put_cells_(gs[0], winners, size=filters_spec.shape[:-1]))


@primitive(linear="a")
def put_winners_(xp: ArrayModule, a: Array, winners: Array, *, shape: Sizes, size: Sizes,
                 strides: Sizes, dilations: Sizes, pads: Pads) -> Array:
    """a added to the cell that won in each window, in zeros of `shape`."""
    return numerics.unpool(xp, a, winners, shape, size, strides, dilations, pads)


put_winners_.infer(lambda a, winners, *, shape, **_: a.reshaped(shape))
put_winners_.vjp(a=lambda g, winners, *, shape, **attrs: pick_winners_(g, winners, **attrs))


@primitive(linear="x")
def pick_winners_(xp: ArrayModule, x: Array, winners: Array, *, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Array:
    """The values of x where each window was won: the adjoint of put_winners_."""
    return numerics.pick(xp, x, winners, size, strides, dilations, pads)


pick_winners_.infer(lambda x, winners, **_: x.reshaped(winners.shape))
pick_winners_.vjp(x=lambda g, x_spec, winners, **attrs:
                  put_winners_(g, winners, shape=x_spec.shape, **attrs))


@primitive(linear="a")
def put_cells_(xp: ArrayModule, a: Array, winners: Array, *, size: Sizes) -> Array:
    """y[k, c]: the sum of a[n, o, c] where cell k won."""
    axes = tuple(range(a.ndim - 1))
    # A masked sum for each cell: `np.add.at` would add value by value.
    numbers = range(size[0] * size[1])
    sums = [xp.sum(xp.where(winners == n, a, 0), axis=axes, dtype=a.dtype) for n in numbers]
    return xp.stack(sums).reshape((*size, a.shape[-1]))


put_cells_.infer(lambda a, winners, *, size: a.reshaped((*size, a.shape[-1])))
put_cells_.vjp(a=lambda g, winners: pick_cells_(g, winners))


@primitive(linear="filters")
def pick_cells_(xp: ArrayModule, filters: Array, winners: Array) -> Array:
    """y[n, o, c] = filters[k, c] for the cell k that won: the adjoint of put_cells_."""
    channels = filters.shape[-1]
    return filters.reshape(-1, channels)[winners, xp.arange(channels)]


pick_cells_.infer(lambda filters, winners: filters.reshaped(winners.shape))
pick_cells_.vjp(filters=lambda g, filters_spec, winners:
                put_cells_(g, winners, size=filters_spec.shape[:-1]))


_ATTRS: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1))}
_WINNERS = ints(2, 4, 2, 2, below=4)
dilation_.cases = [case((2, 4, 3, 2), (2, 2, 2), **_ATTRS)]
put_winners_.cases = [case((2, 4, 2, 2), _WINNERS, shape=(2, 4, 3, 2), size=(2, 2), **_ATTRS)]
pick_winners_.cases = [case((2, 4, 3, 2), _WINNERS, size=(2, 2), **_ATTRS)]
put_cells_.cases = [case((2, 4, 2, 2), _WINNERS, size=(2, 2))]
pick_cells_.cases = [case((2, 2, 2), _WINNERS)]


def dilation2d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: str,
               data_format: str = "NHWC", dilations: IntsLike = 1, name: str | None = None,
               ) -> Tensor:
    """y[n, i, j, c] = max over a, b of x[n, i s + a d, j s + b d, c] + filters[a, b, c].

    A tie's gradient goes to the first cell.

    Raises InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit;
    ValueError: a layout other than 'NHWC'."""
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
    Raises InvalidArgumentError, ValueError: as `dilation2d`."""
    x, kernel = pair("erosion2d", value, filters)
    require_rank("erosion2d", "the filter", kernel.spec, 3)
    mirrored = kernel[::-1, ::-1]
    return -dilation2d(-x, mirrored, strides, padding, data_format, dilations)
