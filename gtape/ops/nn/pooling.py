"""Max and average pooling over 1 to 3 spatial axes."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import pooling as numerics
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import taken
from gtape.ops.elementwise.scalars import zero
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


def _pooled(name: str, x: Spec, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> Spec:
    taken(name, "real numbers", x)
    outs = window_outputs(name, x.shape[1:-1], size, strides, dilations, pads)
    return x.reshaped((x.shape[0], *outs, x.shape[-1]))


# ---------------------------------------------------------------- maximum
@primitive(tf_name="MaxPool")
def max_pool_(xp: ArrayModule, x: Array, *, size: Sizes, strides: Sizes, dilations: Sizes,
              pads: Pads) -> Array:
    """The largest value of each window; padding never wins."""
    return numerics.max_pool(xp, x, size, strides, dilations, pads)


max_pool_.infer(lambda x, **attrs: _pooled("max_pool", x, **attrs))
max_pool_.on_cuda("kernels.pooling.max_pool")
max_pool_.vjp(x=lambda g, x, y, **attrs: max_pool_grad_(g, x, y, **attrs))


@primitive(linear="a", outputs="total", tf_name="MaxPoolGrad")
def max_pool_grad_(xp: ArrayModule, a: Array, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """a added where the first cell of each window of x holds its largest value, y."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.unpool(xp, a, winners, x.shape, size, strides, dilations, pads)


max_pool_grad_.infer(lambda a, x, y, **_: x)
max_pool_grad_.on_cuda("kernels.pooling.max_pool_grad")
max_pool_grad_.vjp(a=lambda g, x, y, **attrs: max_pool_pick_(g, x, y, **attrs))


@max_pool_grad_.vjp("x")
def _(g: Tensor) -> Tensor:
    # The winners do not move smoothly: zeros, and connected.
    return zero(g)


@primitive(linear="a", outputs="values", tf_name="MaxPoolGradGrad")
def max_pool_pick_(xp: ArrayModule, a: Array, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """The values of a where the windows of x have their largest values y."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.pick(xp, a, winners, size, strides, dilations, pads)


max_pool_pick_.infer(lambda a, x, y, **_: y)
max_pool_pick_.on_cuda("kernels.pooling.max_pool_pick")
max_pool_pick_.vjp(a=lambda g, x, y, **attrs: max_pool_grad_(g, x, y, **attrs))


@primitive(nondifferentiable=True, outputs="index", tf_name="MaxPoolWithArgmax")
def max_pool_index_(xp: ArrayModule, x: Array, y: Array, *, size: Sizes, strides: Sizes,
                    dilations: Sizes, pads: Pads, batch: bool) -> Array:
    """Where the largest values lie in each flattened image, or in the whole batch."""
    winners = numerics.winners(xp, x, y, size, strides, dilations, pads)
    return numerics.flat_index(xp, winners, x.shape, size, strides, dilations, pads, batch)


max_pool_index_.infer(lambda x, y, **_: Spec(y.shape, dtypes.int64))
max_pool_index_.on_cuda("kernels.pooling.max_pool_index")


# ---------------------------------------------------------------- average
@primitive(linear="x", tf_name="AvgPool")
def avg_pool_(xp: ArrayModule, x: Array, *, size: Sizes, strides: Sizes, dilations: Sizes,
              pads: Pads) -> Array:
    """The mean of each window over the cells that are not padding."""
    return numerics.avg_pool(xp, x, size, strides, dilations, pads)


avg_pool_.infer(lambda x, **attrs: _pooled(
    "avg_pool", taken("avg_pool", "real floating tensors", x), **attrs))
avg_pool_.on_cuda("kernels.pooling.average_pool")
avg_pool_.vjp(x=lambda g, x_spec, **attrs: avg_pool_grad_(g, shape=x_spec.shape, **attrs))


@primitive(linear="a", tf_name="AvgPoolGrad")
def avg_pool_grad_(xp: ArrayModule, a: Array, *, shape: Sizes, size: Sizes, strides: Sizes,
                   dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of avg_pool_: each value shared out among the cells of its window."""
    return numerics.avg_pool_grad(xp, a, shape, size, strides, dilations, pads)


avg_pool_grad_.infer(lambda a, *, shape, **_: a.reshaped(shape))
avg_pool_grad_.on_cuda("kernels.pooling.average_pool_grad")
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
          data_format: str | None, dilations: Any, rank: int, maximum: bool) -> Tensor:
    x = convert(input)
    require_rank(name, "the input", x.spec, rank + 2)
    first = is_channels_first(name, data_format, rank)
    size = spatial_sizes(name, "ksize", ksize, rank, first)
    windows = Windows(name, x.spec.shape, size, strides, padding, data_format, dilations, rank)
    _check_pads(name, size, **windows.attrs)
    op = max_pool_ if maximum else avg_pool_
    return windows.laid_out(op(windows.last(x), size=size, **windows.attrs))


def _check_pads(name: str, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> None:
    """Raises InvalidArgumentError where a window could lie in the padding altogether."""
    for pair, cells, gap in zip(pads, size, dilations, strict=True):
        if max(pair) > (cells - 1) * gap:
            raise InvalidArgumentError(f"{name}: the padding must be smaller than the window; got "
                                       f"padding {pads} and windows {size}")


def max_pool1d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
               data_format: str = "NWC", name: str | None = None) -> Tensor:
    """Max pooling of [N, W, C]; see `max_pool2d`."""
    return _pool("max_pool1d", input, ksize, strides, padding, data_format, None, 1, True)


def max_pool2d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: TensorLike,
               data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The largest value of each window of [N, H, W, C]; a tie's gradient goes to the first cell.

    Args:
        ksize, strides: one number, one per spatial axis, or one per axis.
        padding: 'VALID', 'SAME', or pairs (before, after) for each axis; padding never wins.

    Raises:
        InvalidArgumentError: ranks, windows, strides or paddings that do not fit.
    """
    return _pool("max_pool2d", input, ksize, strides, padding, data_format, None, 2, True)


def max_pool3d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
               data_format: str = "NDHWC", name: str | None = None) -> Tensor:
    """Max pooling of [N, D, H, W, C]; see `max_pool2d`."""
    return _pool("max_pool3d", input, ksize, strides, padding, data_format, None, 3, True)


def max_pool(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
             data_format: str | None = None, name: str | None = None) -> Tensor:
    """Max pooling over the 1 to 3 spatial axes of `input`; see `max_pool2d`."""
    x = convert(input)
    rank = spatial_rank("max_pool", x.spec)
    return _pool("max_pool", x, ksize, strides, padding, data_format, None, rank, True)


def avg_pool1d(input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC",
               name: str | None = None) -> Tensor:
    """Average pooling of [N, W, C]; see `avg_pool2d`."""
    return _pool("avg_pool1d", input, ksize, strides, padding, data_format, None, 1, False)


def avg_pool2d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
               data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """The mean of each window of [N, H, W, C], padded cells not counted.

    Args as `max_pool2d`.

    Raises:
        InvalidArgumentError: ranks, windows, strides or paddings that do not fit.
    """
    return _pool("avg_pool2d", input, ksize, strides, padding, data_format, None, 2, False)


def avg_pool3d(input: TensorLike, ksize: Any, strides: Any, padding: Any,
               data_format: str = "NDHWC", name: str | None = None) -> Tensor:
    """Average pooling of [N, D, H, W, C]; see `avg_pool2d`."""
    return _pool("avg_pool3d", input, ksize, strides, padding, data_format, None, 3, False)


def avg_pool(input: TensorLike, ksize: Any, strides: Any, padding: Any,
             data_format: str | None = None, name: str | None = None) -> Tensor:
    """Average pooling over the 1 to 3 spatial axes of `input`; see `avg_pool2d`."""
    x = convert(input)
    rank = spatial_rank("avg_pool", x.spec)
    return _pool("avg_pool", x, ksize, strides, padding, data_format, None, rank, False)


def pool(input: TensorLike, window_shape: IntsLike, pooling_type: str, strides: Any = None,
         padding: str = "VALID", data_format: str | None = None, dilations: IntsLike | None = None,
         name: str | None = None) -> Tensor:
    """Pooling of type 'MAX' or 'AVG' over the 1 to 3 spatial axes of `input`, windows dilated.

    Raises:
        ValueError: another pooling type.
        InvalidArgumentError: as `max_pool2d`.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pool: pooling_type must be 'MAX' or 'AVG'; got {shown(pooling_type)}")
    x = convert(input)
    rank = spatial_rank("pool", x.spec)
    return _pool("pool", x, window_shape, strides, padding, data_format, dilations, rank,
                 pooling_type == "MAX")


def max_pool_with_argmax(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str,
                         data_format: str = "NHWC", output_dtype: object = dtypes.int64,
                         include_batch_in_index: bool = False, name: str | None = None,
                         ) -> MaxPoolWithArgmax:
    """`max_pool2d`, and the positions (y W + x) C + c of the largest values in each image.

    Args:
        include_batch_in_index: positions in the whole batch: ((n H + y) W + x) C + c.

    Raises:
        ValueError: a layout other than 'NHWC'.
        InvalidArgumentError: as `max_pool2d`.
    """
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
    wanted = as_dtype(output_dtype)
    if wanted is not dtypes.int64:
        index = cast(index, wanted)
    return MaxPoolWithArgmax(y, index)
