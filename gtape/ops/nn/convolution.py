"""Convolution over 1 to 3 spatial axes, depthwise and separable, and the bias of each channel.

Convolution is linear in the images and in the filters: the two adjoints are its rules, and the
rules of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import convolution as numerics
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_shape, named, one_dtype
from gtape.ops.elementwise.scalars import add
from gtape.ops.linalg.products import pair
from gtape.ops.nn.window_arguments import (
    CHANNELS_FIRST,
    Sizes,
    Windows,
    require_rank,
    spatial_rank,
    window_outputs,
)
from gtape.ops.shape.layout import reshape_


def _checked(x_shape: Sizes, f_shape: Sizes, groups: int) -> None:
    try:
        numerics.check_channels(x_shape, f_shape, groups)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


def _floating(name: str, *specs: Spec, besides: str = "") -> None:
    dtype = one_dtype(name, specs)
    if not dtype.is_floating and dtype.name != besides:
        raise InvalidArgumentError(f"{name} takes real floating tensors; got "
                                   f"{', '.join(map(str, specs))}. Write tf.cast(x, tf.float32)")


@primitive(tf_name="Conv2D")
def convolution_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
                 pads: Pads, groups: int = 1) -> Array:
    """y[n, o, f] = Σ x[n, o · stride + k · dilation, c] filters[k, c, f], channels last."""
    return numerics.conv_forward(xp, x, filters, strides, dilations, pads, groups)


@convolution_.infer
def _(x: Spec, filters: Spec, *, groups: int, **windows: Any) -> Spec:
    # int32 because TensorFlow registers Conv2D and its adjoints for it; depthwise it does not.
    _floating("convolution", x, filters, besides="int32")
    _checked(x.shape, filters.shape, groups)
    outs = window_outputs("convolution", x.shape[1:-1], filters.shape[:-2], **windows)
    return x.reshaped((x.shape[0], *outs, filters.shape[-1]))


convolution_.on_cuda("kernels.windows.convolve")
convolution_.vjp(x=lambda g, x_spec, filters, **attrs:
                 input_grad_(g, filters, shape=x_spec.shape, **attrs))
convolution_.vjp(filters=lambda g, x, filters_spec, **attrs:
                 filter_grad_(x, g, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="Conv2DBackpropInput")
def input_grad_(xp: ArrayModule, a: Array, filters: Array, *, shape: Sizes, strides: Sizes,
                dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of the convolution in x: a [N, *out, F] to `shape` [N, *spatial, C]."""
    return numerics.conv_input_grad(xp, a, filters, shape, strides, dilations, pads, groups)


@input_grad_.infer
def _(a: Spec, filters: Spec, *, shape: Sizes, groups: int, **windows: Any) -> Spec:
    name = "transposed convolution"
    _floating(name, a, filters, besides="int32")
    _checked(shape, filters.shape, groups)
    # Several input shapes have one result where strides leave a rest: so `shape` is an attribute,
    # and the forward sizes are computed from it to be compared.
    outs = window_outputs(name, shape[1:-1], filters.shape[:-2], **windows)
    wanted = (shape[0], *outs, filters.shape[-1])
    if a.shape != wanted:
        raise InvalidArgumentError(
            f"{name}: a convolution of the output shape {list(shape)} (channels "
            f"last) would have shape {list(wanted)}, which the input must have; got {a}")
    return a.reshaped(shape)


input_grad_.on_cuda("kernels.windows.input_gradient")
input_grad_.vjp(a=lambda g, filters, *, shape, **attrs: convolution_(g, filters, **attrs))
input_grad_.vjp(filters=lambda g, a, filters_spec, *, shape, **attrs:
                filter_grad_(g, a, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="Conv2DBackpropFilter")
def filter_grad_(xp: ArrayModule, x: Array, a: Array, *, size: Sizes, strides: Sizes,
                 dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of the convolution in its filters: x and a [N, *out, F] to [*size, C, F]."""
    return numerics.conv_filter_grad(xp, x, a, size, strides, dilations, pads, groups)


@filter_grad_.infer
def _(x: Spec, a: Spec, *, size: Sizes, groups: int, **windows: Any) -> Spec:
    name = "filter gradient"
    _floating(name, x, a, besides="int32")
    outs = window_outputs(name, x.shape[1:-1], size, **windows)
    if a.shape[:-1] != (x.shape[0], *outs):
        raise InvalidArgumentError(f"{name}: the cotangent of a convolution of {x} must "
                                   f"have shape {[x.shape[0], *outs, 'F']}; got {a}")
    return x.reshaped((*size, x.shape[-1] // groups, a.shape[-1]))


filter_grad_.on_cuda("kernels.windows.filter_gradient")
filter_grad_.vjp(x=lambda g, x_spec, a, *, size, **attrs:
                 input_grad_(a, g, shape=x_spec.shape, **attrs))
filter_grad_.vjp(a=lambda g, x, *, size, **attrs: convolution_(x, g, **attrs))


_ONE: dict[str, Any] = {"strides": (2,), "dilations": (1,), "pads": ((1, 0),)}
_TWO: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1))}
convolution_.cases = [case((2, 5, 2), (2, 2, 3), **_ONE),
                      case((1, 4, 3, 4), (2, 2, 2, 2), groups=2, **_TWO)]
input_grad_.cases = [case((2, 3, 3), (2, 2, 3), shape=(2, 5, 2), **_ONE)]
filter_grad_.cases = [case((2, 5, 2), (2, 3, 3), size=(2,), **_ONE)]


# ---------------------------------------------------------------- depthwise
# Its own ops, not convolutions of as many groups as channels: a group of one channel is no matrix
# product, and the depthwise filter [*size, C, M] has no groups to be counted.
_DEPTHWISE = "depthwise convolution"


def _check_depths(x_shape: Sizes, f_shape: Sizes) -> None:
    if x_shape[-1] != f_shape[-2]:
        raise InvalidArgumentError(
            f"{_DEPTHWISE}: the filter must be [*size, channels, multiplier] with the "
            f"channels of the input; got input {list(x_shape)} (channels last), filter "
            f"{list(f_shape)}")


@primitive(tf_name="DepthwiseConv2dNative")
def depthwise_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
               pads: Pads) -> Array:
    """y[n, o, c M + m] = Σ x[n, o · stride + k · dilation, c] filters[k, c, m], channels last."""
    return numerics.depthwise_forward(xp, x, filters, strides, dilations, pads)


@depthwise_.infer
def _(x: Spec, filters: Spec, **windows: Any) -> Spec:
    _floating(_DEPTHWISE, x, filters)
    _check_depths(x.shape, filters.shape)
    outs = window_outputs(_DEPTHWISE, x.shape[1:-1], filters.shape[:-2], **windows)
    return x.reshaped((x.shape[0], *outs, filters.shape[-2] * filters.shape[-1]))


depthwise_.vjp(x=lambda g, x_spec, filters, **attrs:
               depthwise_input_grad_(g, filters, shape=x_spec.shape, **attrs))
depthwise_.vjp(filters=lambda g, x, filters_spec, **attrs:
               depthwise_filter_grad_(x, g, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="DepthwiseConv2dNativeBackpropInput")
def depthwise_input_grad_(xp: ArrayModule, a: Array, filters: Array, *, shape: Sizes,
                          strides: Sizes, dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of the depthwise convolution in x: a [N, *out, C M] to `shape`."""
    return numerics.depthwise_input_grad(xp, a, filters, shape, strides, dilations, pads)


@depthwise_input_grad_.infer
def _(a: Spec, filters: Spec, *, shape: Sizes, **windows: Any) -> Spec:
    _floating(_DEPTHWISE, a, filters)
    _check_depths(shape, filters.shape)
    outs = window_outputs(_DEPTHWISE, shape[1:-1], filters.shape[:-2], **windows)
    wanted = (shape[0], *outs, filters.shape[-2] * filters.shape[-1])
    if a.shape != wanted:
        raise InvalidArgumentError(f"{_DEPTHWISE}: the cotangent must have shape "
                                   f"{list(wanted)} (channels last); got {a}")
    return a.reshaped(shape)


depthwise_input_grad_.vjp(a=lambda g, filters, *, shape, **attrs: depthwise_(g, filters, **attrs))
depthwise_input_grad_.vjp(filters=lambda g, a, filters_spec, *, shape, **attrs:
                          depthwise_filter_grad_(g, a, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter_grad_(xp: ArrayModule, x: Array, a: Array, *, size: Sizes, strides: Sizes,
                           dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of the depthwise convolution in its filter: to [*size, C, M]."""
    return numerics.depthwise_filter_grad(xp, x, a, size, strides, dilations, pads)


@depthwise_filter_grad_.infer
def _(x: Spec, a: Spec, *, size: Sizes, **windows: Any) -> Spec:
    _floating(_DEPTHWISE, x, a)
    outs = window_outputs(_DEPTHWISE, x.shape[1:-1], size, **windows)
    channels = x.shape[-1]
    if a.shape[:-1] != (x.shape[0], *outs) or not channels or a.shape[-1] % channels:
        raise InvalidArgumentError(
            f"{_DEPTHWISE}: the cotangent must have shape {[x.shape[0], *outs]} and a "
            f"multiple of {channels} channels (channels last); got {a}")
    return x.reshaped((*size, channels, a.shape[-1] // channels))


depthwise_filter_grad_.vjp(x=lambda g, x_spec, a, *, size, **attrs:
                           depthwise_input_grad_(a, g, shape=x_spec.shape, **attrs))
depthwise_filter_grad_.vjp(a=lambda g, x, *, size, **attrs: depthwise_(x, g, **attrs))


depthwise_.cases = [case((2, 4, 3, 2), (2, 2, 2, 2), **_TWO)]
depthwise_input_grad_.cases = [case((2, 4, 2, 4), (2, 2, 2, 2), shape=(2, 4, 3, 2), **_TWO)]
depthwise_filter_grad_.cases = [case((2, 4, 3, 2), (2, 4, 2, 4), size=(2, 2), **_TWO)]


# ---------------------------------------------------------------- public functions
def _operands(name: str, input: TensorLike, filters: TensorLike, rank: int | None,
              ) -> tuple[Tensor, Tensor, int]:
    """Images, filters, and the number of spatial axes: `rank`, or that of the images."""
    x, kernel = pair(name, input, filters)
    if rank is None:
        rank = spatial_rank(name, x.spec)
    require_rank(name, "the input", x.spec, rank + 2)
    require_rank(name, "the filter", kernel.spec, rank + 2)
    return x, kernel, rank


def _convolve(name: str, input: TensorLike, filters: TensorLike, strides: IntsLike,
              padding: TensorLike, data_format: str | None, dilations: IntsLike | None,
              rank: int | None) -> Tensor:
    x, kernel, rank = _operands(name, input, filters, rank)
    size = kernel.spec.shape
    windows = Windows(name, x.spec.shape, size[:-2], strides, padding, data_format, dilations, rank)
    # No channels, or fewer than the filter takes: one group, for which the op reports them.
    groups = windows.shape[-1] // size[-2] if size[-2] else 1
    return windows.laid_out(
        convolution_(windows.last(x), kernel, **windows.attrs, groups=groups or 1))


def conv1d(input: TensorLike, filters: TensorLike, stride: int, padding: str,
           data_format: str | None = "NWC", dilations: IntsLike | None = None,
           name: str | None = None) -> Tensor:
    """Convolution of [N, W, C] with filters [w, C, F]; see `conv2d`."""
    return _convolve("conv1d", input, filters, stride, padding, data_format, dilations, 1)


def conv2d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: TensorLike,
           data_format: str | None = "NHWC", dilations: IntsLike | None = None,
           name: str | None = None) -> Tensor:
    """y[n, i, j, f] = Σ x[n, i s + a d, j s + b d, c] filters[a, b, c, f], zeros outside x.

    Args:
        input: [N, H, W, C], or [N, C, H, W] for data_format 'NCHW'.
        filters: [h, w, C / groups, F]; the number of groups follows from the shapes.
        strides, dilations: one number, one per spatial axis, or one per axis.
        padding: 'VALID'; 'SAME', which makes the result ceil(size / stride) long with the odd
            cell at the end; or pairs (before, after) for each axis.

    Raises InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit."""
    return _convolve("conv2d", input, filters, strides, padding, data_format, dilations, 2)


def conv3d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: str,
           data_format: str | None = "NDHWC", dilations: IntsLike | None = None,
           name: str | None = None) -> Tensor:
    """Convolution of [N, D, H, W, C] with filters [d, h, w, C, F]; see `conv2d`."""
    return _convolve("conv3d", input, filters, strides, padding, data_format, dilations, 3)


def convolution(input: TensorLike, filters: TensorLike, strides: Any = None, padding: str = "VALID",
                data_format: str | None = None, dilations: IntsLike | None = None,
                name: str | None = None) -> Tensor:
    """Convolution over the 1 to 3 spatial axes of `input`; see `conv2d`."""
    return _convolve("convolution", input, filters, strides, padding, data_format, dilations, None)


def conv(input: TensorLike, filter: TensorLike, strides: IntsLike, padding: str,
         explicit_paddings: TensorLike = (), data_format: str = "CHANNELS_LAST",
         dilations: IntsLike = (), batch_dims: int = 1, groups: int = 1, name: str | None = None,
         ) -> Tensor:
    """`convolution` with the layout as 'CHANNELS_LAST' or 'CHANNELS_FIRST'.
    Raises ValueError: another layout, or batch_dims other than 1;
    InvalidArgumentError: as `conv2d`."""
    if data_format not in ("CHANNELS_LAST", "CHANNELS_FIRST") or batch_dims != 1:
        raise ValueError(f"conv: data_format must be 'CHANNELS_LAST' or 'CHANNELS_FIRST' and "
                         f"batch_dims 1; got {shown(data_format)} and {shown(batch_dims)}")
    x, kernel, rank = _operands("conv", input, filter, None)
    layout = CHANNELS_FIRST[rank] if data_format == "CHANNELS_FIRST" else None
    return _convolve("conv", x, kernel, strides, _explicit(padding, explicit_paddings), layout,
                     dilations or None, rank)


def _explicit(padding: str, explicit: Any) -> Any:
    """The pairs of a flat list (before, after, before, after, …) where padding is 'EXPLICIT'."""
    if padding != "EXPLICIT":
        return padding
    flat = list(explicit)
    return list(zip(flat[0::2], flat[1::2]))


def _transposed(name: str, input: TensorLike, filters: TensorLike, output_shape: IntsLike,
                strides: IntsLike, padding: str, data_format: str | None,
                dilations: IntsLike | None, rank: int | None) -> Tensor:
    x, kernel, rank = _operands(name, input, filters, rank)
    shape = as_shape(output_shape, f"{name}: output_shape")
    if len(shape) != rank + 2:
        raise InvalidArgumentError(f"{name}: output_shape must hold {rank + 2} lengths; got "
                                   f"{list(shape)}")
    windows = Windows(name, shape, kernel.spec.shape[:-2], strides, padding, data_format, dilations,
                      rank)
    # The filter is [*size, F, C]: what the convolution from output to input would use.
    return windows.laid_out(
        input_grad_(windows.last(x), kernel, shape=windows.shape, **windows.attrs))


def _adjoint_of(forward: str, rank: int | None, layout: str | None, doc: str,
                ) -> Callable[..., Tensor]:
    public = f"{forward}_transpose"

    def transpose(input: TensorLike, filters: TensorLike, output_shape: IntsLike,
                  strides: IntsLike, padding: str = "SAME", data_format: str | None = layout,
                  dilations: IntsLike | None = None, name: str | None = None) -> Tensor:
        return _transposed(public, input, filters, output_shape, strides, padding, data_format,
                           dilations, rank)

    return named(transpose, public, doc)


conv1d_transpose = _adjoint_of(
    "conv1d", 1, "NWC", "The adjoint of `conv1d`, to `output_shape`; see `conv2d_transpose`.")
conv2d_transpose = _adjoint_of("conv2d", 2, "NHWC", """\
The adjoint of the `conv2d` that maps `output_shape` to the shape of `input`.

    Args:
        filters: [h, w, output channels, input channels].

    Raises:
        InvalidArgumentError: that convolution does not have the shape of `input`.
    """)
conv3d_transpose = _adjoint_of(
    "conv3d", 3, "NDHWC", "The adjoint of `conv3d`, to `output_shape`; see `conv2d_transpose`.")
conv_transpose = _adjoint_of(
    "conv", None, None, "The adjoint of `convolution`, to `output_shape`; see `conv2d_transpose`.")


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: int, padding: str,
                  name: str | None = None) -> Tensor:
    """`conv2d` with stride 1 and dilation `rate`."""
    return _convolve("atrous_conv2d", value, filters, 1, padding, "NHWC", rate, 2)


def atrous_conv2d_transpose(value: TensorLike, filters: TensorLike, output_shape: IntsLike,
                            rate: int, padding: str, name: str | None = None) -> Tensor:
    """The adjoint of `atrous_conv2d`, to `output_shape`."""
    return _transposed("atrous_conv2d_transpose", value, filters, output_shape, 1, padding, "NHWC",
                       rate, 2)


def conv2d_backprop_input_v2(input: TensorLike, filter: TensorLike, out_backprop: TensorLike,
                             strides: IntsLike, padding: str, use_cudnn_on_gpu: bool = True,
                             explicit_paddings: TensorLike = (), data_format: str = "NHWC",
                             dilations: IntsLike = (1, 1, 1, 1), name: str | None = None) -> Tensor:
    """The gradient of `conv2d` for its input, whose shape `input` has."""
    return _transposed("conv2d_backprop_input", out_backprop, filter, convert(input).spec.shape,
                       strides, _explicit(padding, explicit_paddings), data_format, dilations, 2)


def conv2d_backprop_filter_v2(input: TensorLike, filter: TensorLike, out_backprop: TensorLike,
                              strides: IntsLike, padding: str, use_cudnn_on_gpu: bool = True,
                              explicit_paddings: TensorLike = (), data_format: str = "NHWC",
                              dilations: IntsLike = (1, 1, 1, 1), name: str | None = None,
                              ) -> Tensor:
    """The gradient of `conv2d` for its filter, whose shape `filter` has."""
    name = "conv2d_backprop_filter"
    x, g = pair(name, input, out_backprop)
    shape = convert(filter).spec.shape
    if len(shape) != 4:
        raise InvalidArgumentError(f"{name}: filter must have the shape [height, width, channels, "
                                   f"filters]; it had {list(shape)}")
    *size, channels, _ = shape
    windows = Windows(name, x.spec.shape, tuple(size), strides,
                      _explicit(padding, explicit_paddings), data_format, dilations)
    return filter_grad_(windows.last(x), windows.last(g), size=tuple(size), **windows.attrs,
                        groups=windows.shape[-1] // channels)


def depthwise_conv2d(input: TensorLike, filter: TensorLike, strides: IntsLike, padding: str,
                     data_format: str | None = None, dilations: IntsLike | None = None,
                     name: str | None = None) -> Tensor:
    """Convolution of each channel of [N, H, W, C] with its own filters [h, w, C, M].

    The result has C M channels, the M of one input channel together. Other arguments as `conv2d`.

    Raises InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit."""
    name = "depthwise_conv2d"
    x, kernel, _ = _operands(name, input, filter, 2)
    windows = Windows(name, x.spec.shape, kernel.spec.shape[:2], strides, padding, data_format,
                      dilations)
    return windows.laid_out(depthwise_(windows.last(x), kernel, **windows.attrs))


def separable_conv2d(input: TensorLike, depthwise_filter: TensorLike, pointwise_filter: TensorLike,
                     strides: IntsLike, padding: str, data_format: str | None = None,
                     dilations: IntsLike | None = None, name: str | None = None) -> Tensor:
    """`depthwise_conv2d`, then a convolution with `pointwise_filter` [1, 1, C M, F].
    Raises InvalidArgumentError: as `depthwise_conv2d`, or the pointwise filter is not 1 by 1."""
    name = "separable_conv2d"
    y = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    point = convert_like(pointwise_filter, y._t, name)
    require_rank(name, "the pointwise filter", point.spec, 4)
    if point.spec.shape[:2] != (1, 1):
        raise InvalidArgumentError(f"{name}: the pointwise filter must be [1, 1, C M, F]; got "
                                   f"{point.spec}")
    windows = Windows(name, y.spec.shape, (1, 1), 1, "VALID", data_format, 1)
    return windows.laid_out(convolution_(windows.last(y), point, **windows.attrs))


def depthwise_conv2d_backprop_input(input_sizes: TensorLike, filter: TensorLike,
                                    out_backprop: TensorLike, strides: IntsLike, padding: str,
                                    data_format: str = "NHWC", dilations: IntsLike = (1, 1, 1, 1),
                                    name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its input, of shape `input_sizes`."""
    name = "depthwise_conv2d_backprop_input"
    g, kernel = pair(name, out_backprop, filter)
    shape = as_shape(input_sizes, f"{name}: input_sizes")
    windows = Windows(name, shape, kernel.spec.shape[:2], strides, padding, data_format, dilations)
    return windows.laid_out(
        depthwise_input_grad_(windows.last(g), kernel, shape=windows.shape, **windows.attrs))


def depthwise_conv2d_backprop_filter(input: TensorLike, filter_sizes: TensorLike,
                                     out_backprop: TensorLike, strides: IntsLike, padding: str,
                                     data_format: str = "NHWC", dilations: IntsLike = (1, 1, 1, 1),
                                     name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its filter, of shape `filter_sizes`."""
    name = "depthwise_conv2d_backprop_filter"
    x, g = pair(name, input, out_backprop)
    size = as_shape(filter_sizes, f"{name}: filter_sizes")[:2]
    windows = Windows(name, x.spec.shape, size, strides, padding, data_format, dilations)
    return depthwise_filter_grad_(windows.last(x), windows.last(g), size=size, **windows.attrs)


def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None,
             name: str | None = None) -> Tensor:
    """`value` plus `bias` [C] along the channels: the last axis, or axis 1 for 'NC…'.
    Raises InvalidArgumentError: `bias` has not one number per channel, or `value` has rank below 2;
    ValueError: an unknown layout."""
    x, b = pair("bias_add", value, bias)
    if data_format is not None and not (
            isinstance(data_format, str) and data_format.startswith("N")):
        raise ValueError(f"bias_add: data_format must be None, 'N…C' or 'NC…'; got "
                         f"{shown(data_format)}")
    if x.ndim < 2:
        raise InvalidArgumentError(f"bias_add: the value must have rank 2 or more; got {x.spec}")
    first = data_format is not None and data_format.startswith("NC") and len(data_format) > 2
    channels = x.spec.shape[1 if first else -1]
    if b.spec.shape != (channels,):
        raise InvalidArgumentError(f"bias_add: the bias must have shape [{channels}], one number "
                                   f"per channel of {x.spec}; got {b.spec}")
    if first and x.ndim > 2:
        b = reshape_(b, shape=(channels,) + (1,) * (x.ndim - 2))
    return add(x, b)
